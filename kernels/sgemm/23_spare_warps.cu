// Rung 23, spare warps: nobody transposes A beforehand; four warps more do it for each k-tile, in shared memory.
//
// New against rung 21:
// - The transposition beforehand costs 1.5% at 4096 cubed and a tenth of the time at smaller or skinny problems: it reads
//   and writes all of A, and no FFMA runs meanwhile. Done on the way into the ring it costs 170 of some 13,000 issue slots
//   that an SM has for a k-tile (common/movers.cuh).
// - The warps that multiply do nothing else. Their loop has no turns, and so less code: 12 k-steps are 26 KB.
// - 12 warps share the registers of an SM, 168 each; but the spare ones need few, and lend them (setmaxnreg, sm_90a).

#ifndef BK
#define BK 12 // depth of a k-tile
#endif
#ifndef POLL_AT
#define POLL_AT 8 // k-step of a stage at which the next one is polled
#endif
#ifndef MOVER_REGISTERS
#define MOVER_REGISTERS 56 // registers of a thread of the spare warps
#endif
#ifndef MOVE_QUADS
#define MOVE_QUADS 0 // a spare warp stores single floats (0), or 16 bytes at a time, by ldmatrix (1)
#endif
#ifndef SHARED_TILES
#define SHARED_TILES 1 // tiles of C whose k-tiles are shared out: those that make no whole wave (0), or all (1)
#endif
#ifndef FFMA_ORDER
#define FFMA_ORDER 1 // rows of the thread tile one after the other (0), every other one backwards (1), the others at odd k-steps (2), the others (3)
#endif
#ifndef QUAD_ORDER
#define QUAD_ORDER 3 // row quads of a k-step: 0 1 2 3 (0), 3 2 1 0 (1), 0 2 1 3 (2), 1 0 3 2 (3), 0 and 1 in turn (4)
#endif
#ifndef LOAD_ORDER
#define LOAD_ORDER 0 // loads of b for the next k-step: before the first row quad (0), after it (1), one after each (2), inside the first two (3), inside the next two (4)
#endif
#ifndef A_LATE
#define A_LATE 0 // rows of the next row quad after which a quad of a is read for the next k-step
#endif
#ifndef RELEASE_AT
#define RELEASE_AT 0 // a stage is given free after the last k-step (0), or in it, before its FFMAs (1)
#endif
#ifndef PARTIALS
#define PARTIALS 0 // quads handed over: along a row as 1 0 3 2 (0) or 3 2 1 0 (1), down a column as 1 0 3 2 (2), scaled by alpha (3); single sums (4)
#endif
#ifndef READ_ROWS
#define READ_ROWS 4 // rows of C that a thread reads at a time, where beta != 0
#endif
#ifndef SMS
#define SMS 132 // blocks: the SMs of the card
#endif

constexpr int BM = 256, BN = 128; // tile of C per block
constexpr int TM = 16, TN = 8;
constexpr int NT = 256; // threads that multiply; 128 more move

#include "common/guarded.cuh"
#include "common/move_rows.cuh"
#include "common/transpose.cuh"

extern "C" __global__ void __launch_bounds__(NT + 32 * MOVERS, 1)
sgemm(int M, int N, int K, float alpha, const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
      float beta, float *__restrict__ C, float *__restrict__ partials, unsigned *__restrict__ flags, unsigned epoch)
{
    extern __shared__ __align__(128) float shared[];
    const unsigned ring = make_ring(shared, 2); // a stage is full after what is copied and what a mover stores
    const Schedule schedule(M, N, K);
    const bool beforehand = K % 4 != 0 || (MOVE_QUADS && M % 4 != 0); // then map_a is AT's
    const unsigned warp = uniform(threadIdx.x / 32);
    if (warp >= WARPS) {
        give_registers_back<MOVER_REGISTERS>();
        RowMover(schedule, ring + RING_BYTES, warp - WARPS).move(ring, warp - WARPS, beforehand, map_a, map_b);
    } else {
        take_registers<MULTIPLIER_REGISTERS>();
        Fed fed;
        persistent(schedule, ring, M, N, alpha, beta, C, partials, flags, epoch, fed);
    }
}
