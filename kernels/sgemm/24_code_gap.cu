// Rung 24, code gap: the loop of the spare warps keeps out of the hot loop's way in the instruction cache.
//
// New against rung 23:
// - The hot loop is 26 KB of code and the spare warps' 2.4 KB, and both run all the time. An SM keeps 32 KB of code, four lines
//   of 128 bytes for each place modulo 8 KB. The hot loop alone takes three or four of them; where it takes four, a fifth
//   has no room, and there each round fetches again. So where the spare warps' loop lies, modulo 8 KB, is worth up to 2.3%.
//   CODE_GAP instructions that never run put it where the hot loop takes three.
// - What is left outside the loop: tiles inside C are stored without tests (UNGUARDED_INSIDE), shares of k-tiles are longer
//   than a tile, so that nobody waits for what others hand over (SHARED_TILES 2), and tensor maps are fetched while the
//   barriers are made.
// - Of rung 23's settings, those that a search found.

#ifndef BK
#define BK 12 // depth of a k-tile
#endif
#ifndef POLL_AT
#define POLL_AT 6 // k-step of a stage at which the next one is polled
#endif
#ifndef MOVER_REGISTERS
#define MOVER_REGISTERS 40 // registers of a thread of the spare warps
#endif
#ifndef SHARED_TILES
#define SHARED_TILES 2 // tiles whose k-tiles are shared out: those that make no whole wave (0), all (1), those and a wave (2)
#endif
#ifndef QUAD_ORDER
#define QUAD_ORDER 3 // row quads of a k-step: 0 1 2 3 (0), 3 2 1 0 (1), 0 2 1 3 (2), 1 0 3 2 (3), 0 and 1 in turn (4)
#endif
#ifndef LOAD_ORDER
#define LOAD_ORDER 1 // loads of b for the next k-step: before the first row quad (0), after it (1), one after each (2)
#endif
#ifndef PARTIALS
#define PARTIALS 0 // quads handed over: along a row as 1 0 3 2 (0) or 3 2 1 0 (1)
#endif
#ifndef READ_ROWS
#define READ_ROWS 2 // rows of C that a thread reads at a time, where beta != 0
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
#define FFMA_ORDER 1
#define RELEASE_AT 0
#define MOVE_QUADS 1

constexpr int BM = 256, BN = 128; // tile of C per block
constexpr int TM = 16, TN = 8;
constexpr int NT = 256; // threads that multiply; 128 more move

#include "common/code_gap.cuh"
#include "common/guarded.cuh"
#include "common/move_rows.cuh"
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
    const bool beforehand = K % 4 != 0 || M % 4 != 0; // then map_a is AT's
    const unsigned warp = uniform(threadIdx.x / 32);
    if (warp < WARPS) {
        code_gap<CODE_GAP>(epoch == 0); // it counts from 1
        take_registers<MULTIPLIER_REGISTERS>();
        Fed fed;
        persistent(schedule, ring, M, N, alpha, beta, C, partials, flags, epoch, fed);
    } else { // ptxas puts this first
        give_registers_back<MOVER_REGISTERS>();
        RowMover(schedule, ring + RING_BYTES, warp - WARPS).move(ring, warp - WARPS, beforehand, map_a, map_b);
    }
}
