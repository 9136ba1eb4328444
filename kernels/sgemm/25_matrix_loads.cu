// Rung 25, matrix loads: operands come from shared memory by ldmatrix, which was made for matrices of halves.
//
// New against rung 24:
// - A load of 16 bytes a lane writes four registers at once, and for 1.4 cycles no FFMA issues: 72 such loads in a round of the
//   hot loop cost 6%, more than all else that was left to save. ldmatrix writes one register after the other, and costs a
//   third of that or less (docs/frontier.md, "what a load costs").
// - With one row for all lanes, ldmatrix deals out columns of B as they lie there. Rows of A are split into lower and upper
//   halves of their floats, and dealt out by the transposing ldmatrix (common/matrix_tile.cuh). The spare warps split them on
//   the way, by stmatrix, for nothing (common/move_halves.cuh); TMA then brings rows as they are, so M % 4 no longer matters.
// - A thread's columns are four apart, and four threads exchange theirs before they store 16 bytes each.

#ifndef BK
#define BK 12 // depth of a k-tile
#endif
#ifndef POLL_AT
#define POLL_AT 7 // k-step of a stage at which the next one is polled
#endif
#ifndef MOVER_REGISTERS
#define MOVER_REGISTERS 56 // registers of a thread of the spare warps
#endif
#ifndef SHARED_TILES
#define SHARED_TILES 1 // tiles whose k-tiles are shared out: those that make no whole wave (0), all (1), those and a wave (2)
#endif
#ifndef QUAD_ORDER
#define QUAD_ORDER 0 // row quads of a k-step: 0 1 2 3 (0), 3 2 1 0 (1), 0 2 1 3 (2), 1 0 3 2 (3)
#endif
#ifndef FFMA_ORDER
#define FFMA_ORDER 2 // every other row backwards (1), the others at odd k-steps (2), the others (3)
#endif
#ifndef A_LATE
#define A_LATE 3 // rows of the next row quad after which a quad of a is read for the next k-step
#endif
#ifndef LOAD_ORDER
#define LOAD_ORDER 0 // loads of b for the next k-step: before the first row quad (0), after it (1), one after each (2), inside the first two (3) or the next (4)
#endif
#ifndef PARTIALS
#define PARTIALS 0 // quads handed over: along a row as 1 0 3 2 (0) or 3 2 1 0 (1)
#endif
#ifndef READ_ROWS
#define READ_ROWS 4 // rows of C that a thread reads at a time, where beta != 0
#endif
#ifndef CODE_GAP
#define CODE_GAP 320 // instructions between the spare warps' code and the others'
#endif
#ifndef UNGUARDED_INSIDE
#define UNGUARDED_INSIDE 1 // whether tiles that lie inside C are stored without a test for each 16 bytes
#endif
#ifndef SMS
#define SMS 132 // blocks: the SMs of the card
#endif
#define RELEASE_AT 0

constexpr int BM = 256, BN = 128; // tile of C per block
constexpr int TM = 16, TN = 8;
constexpr int NT = 256; // threads that multiply; 128 more move

#include "common/code_gap.cuh"
#include "common/guarded.cuh"
#include "common/move_halves.cuh"
#include "common/transpose.cuh"

extern "C" __global__ void __launch_bounds__(NT + 32 * MOVERS, 1)
sgemm(int M, int N, int K, float alpha, const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
      float beta, float *__restrict__ C, float *__restrict__ partials, unsigned *__restrict__ flags, unsigned epoch)
{
    extern __shared__ __align__(128) float shared[];
    if (threadIdx.x == NT) {
        prefetch_map(map_a);
        prefetch_map(map_b);
    }
    const unsigned ring = make_ring(shared, 2); // a stage is full after what is copied and what a mover stores
    const Schedule schedule(M, N, K);
    const bool beforehand = K % 4 != 0; // then map_a is AT's
    const unsigned warp = uniform(threadIdx.x / 32);
    if (warp < WARPS) {
        code_gap<CODE_GAP>(epoch == 0); // it counts from 1
        take_registers<MULTIPLIER_REGISTERS>();
        Fed fed;
        persistent(schedule, ring, M, N, alpha, beta, C, partials, flags, epoch, fed);
    } else { // ptxas puts this first
        give_registers_back<MOVER_REGISTERS>();
        HalfMover(schedule, ring + RING_BYTES, warp - WARPS).move(ring, warp - WARPS, beforehand, map_a, map_b);
    }
}
