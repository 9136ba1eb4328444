// Rung 21, stream-K: one block per SM that stays, and takes k-tiles instead of tiles of C.
//
// New against rung 20:
// - Blocks of 256 x 128, one per SM, twice as large as before: half the copies, and the ring never runs empty between
//   tiles of C.
// - 4096 x 4096 is 512 such tiles, 3.9 for each of 132 SMs. Whole tiles would leave 16 SMs idle in the last round, 3%
//   of all. Here the last tiles are shared out by k-tiles, to all blocks alike (common/schedule.cuh), and partial
//   sums are handed over.
// - Each warp owns a stage of the ring, and what the loop counts is reduced to an address and a parity
//   (common/persistent.cuh, common/turns.cuh).
// - BK 14: more k-steps to a round of the loop, as many as fit: beyond 32 KB of code the instruction cache runs
//   short.

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
#define SHARED_TILES 0 // tiles of C whose k-tiles are shared out: those that make no whole wave (0), or all (1)
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

#include "common/guarded.cuh"
#include "common/transpose.cuh"
#include "common/turns.cuh"

extern "C" __global__ void __launch_bounds__(NT, 1)
sgemm(int M, int N, int K, float alpha, const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
      float beta, float *__restrict__ C, float *__restrict__ partials, unsigned *__restrict__ flags, unsigned epoch)
{
    extern __shared__ __align__(128) float shared[];
    const unsigned ring = make_ring(shared);
    const Schedule schedule(M, N, K);
    Turns<NoBackground> turns(schedule, ring, map_a, map_b, NoBackground());
    persistent(schedule, ring, M, N, alpha, beta, C, partials, flags, epoch, turns);
}
