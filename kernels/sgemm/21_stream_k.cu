// Rung 21, stream-K: one block per SM that stays, and takes k-tiles instead of tiles of C.
//
// New against rung 20:
// - Blocks of 256 x 128, one per SM, twice as large as before: half the copies, and the ring never runs empty between
//   tiles of C.
// - 4096 x 4096 is 512 such tiles, 3.9 for each of 132 SMs. Whole tiles would leave 16 SMs idle in the last round, 3%
//   of all. Here the last tiles are shared out by k-tiles, to all blocks alike (common/schedule.cuh), and partial
//   sums are handed over.
// - Each warp owns a stage of the ring, and what the loop counts is reduced to an address and a parity
//   (common/persistent.cuh).
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
#ifndef SMS
#define SMS 132 // blocks: the SMs of the card
#endif
#ifndef FFMA_ORDER
#define FFMA_ORDER 1 // rows of the thread tile one after the other (0), or every other one backwards (1)
#endif

constexpr int BM = 256, BN = 128; // tile of C per block
constexpr int TM = 16, TN = 8;
constexpr int NT = 256;

#include "common/guarded.cuh"
#include "common/persistent.cuh"
#include "common/transpose.cuh"

extern "C" __global__ void __launch_bounds__(NT, 1)
sgemm(int M, int N, int K, float alpha, const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
      float beta, float *__restrict__ C, float *__restrict__ partials, unsigned *__restrict__ flags, unsigned epoch)
{
    extern __shared__ __align__(128) float shared[];
    const unsigned ring = make_ring(shared);
    persistent(Schedule(M, N, K), ring, M, N, alpha, map_a, map_b, beta, C, partials, flags, epoch, NoBackground());
}
