// Rung 22, late transposition: most of A is transposed while the GEMM already runs.
//
// New against rung 21: transposing A beforehand takes 1.5% of the time, in which no FFMA runs; it waits for memory,
// and the GEMM, after it, leaves memory idle. But the first tile of C of every block needs only the upper rows of A,
// about a third. These are transposed beforehand, as before. The warps of the GEMM see to the others while they work
// on their first tiles (common/late_rows.cuh), a 32 x 32 block at a time, some ten times each; that should
// cost them next to nothing.

#ifndef BK
#define BK 14 // depth of a k-tile
#endif
#ifndef AHEAD
#define AHEAD 4 // stages between the one that is worked on and the one that is filled
#endif
#ifndef POLL_AT
#define POLL_AT 11 // k-step of a stage at which the next one is polled
#endif
#ifndef FILL_AT
#define FILL_AT -1 // k-step at which a warp whose turn it is fills its stage; -1: the last, in one branch with a late next stage
#endif
#ifndef SHARED_TILES
#define SHARED_TILES 0 // tiles of C whose k-tiles are shared out: those that make no whole wave (0)
#endif
#ifndef FFMA_ORDER
#define FFMA_ORDER 1 // rows of the thread tile one after the other (0), every other one backwards (1), the others at odd k-steps (2)
#endif
#ifndef QUAD_ORDER
#define QUAD_ORDER 0 // row quads of a k-step: 0 1 2 3 (0), 3 2 1 0 (1), 0 2 1 3 (2), 1 0 3 2 (3), 0 and 1 in turn (4)
#endif
#ifndef LOAD_ORDER
#define LOAD_ORDER 0 // loads of b for the next k-step: before the first row quad (0), after it (1), one after each (2)
#endif
#ifndef RELEASE_AT
#define RELEASE_AT 0 // a stage is given free after the last k-step (0), or in it, before its FFMAs (1)
#endif
#ifndef PARTIALS
#define PARTIALS 0 // quads handed over: along a row as 1 0 3 2 (0) or 3 2 1 0 (1), down a column as 1 0 3 2 (2), scaled by alpha (3)
#endif
#ifndef READ_ROWS
#define READ_ROWS 4 // rows of C that a thread reads at a time, where beta != 0
#endif
#ifndef SMS
#define SMS 132 // blocks: the SMs of the card
#endif

constexpr int BM = 256, BN = 128; // tile of C per block
constexpr int TM = 16, TN = 8;
constexpr int NT = 256;
static_assert(SHARED_TILES == 0, "rows of A count as late where no block's first tile of C needs them; shared out, tiles begin anywhere");

#include "common/guarded.cuh"
#include "common/late_rows.cuh"
#include "common/transpose.cuh"
#include "common/turns.cuh"

extern "C" __global__ void __launch_bounds__(NT, 1)
sgemm(int M, int N, int K, float alpha, const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
      const __grid_constant__ TensorMap map_rows, float *__restrict__ AT, float beta, float *__restrict__ C,
      float *__restrict__ partials, unsigned *__restrict__ flags, unsigned *__restrict__ reports, unsigned epoch)
{
    extern __shared__ __align__(1024) float shared[];
    const unsigned ring = make_ring(shared);
    const Schedule schedule(M, N, K);
    const LateRows late(schedule, ring + (RING_BYTES + 1023) / 1024 * 1024, WARPS, uniform(threadIdx.x / 32), M, K, map_rows, AT,
                        reports, epoch);
    Turns<LateRows> turns(schedule, ring, map_a, map_b, late);
    persistent(schedule, ring, M, N, alpha, beta, C, partials, flags, epoch, turns);
}
