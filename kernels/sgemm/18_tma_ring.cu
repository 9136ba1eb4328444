// Rung 18, TMA ring: the copy engine fills the ring, and the barrier of the whole block is gone from the loop.
//
// New against rung 17 (sm_90): one thread asks for a tile of A and one of B, and TMA computes the addresses, copies,
// and puts zeros where the matrix ends. Copies and warps meet at barriers in shared memory, two a stage
// (common/tma_ring.cuh), so a fast warp may be a stage ahead of a slow one. The producer is always warp 0: before its
// own work on a stage it waits for the stage AHEAD of it to be free and fills it. That makes warp 0 the slowest, and
// the others wait for it: on an H200 this rung is slower than rung 17 (docs/frontier.md).

#ifndef BK
#define BK 8 // depth of a k-tile
#endif
#ifndef STAGES
#define STAGES 8 // k-tiles in the ring
#endif
#ifndef AHEAD
#define AHEAD 6 // stages between the one that is worked on and the one that is filled
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 2 // blocks that must fit on an SM, for __launch_bounds__; 0 leaves it to ptxas
#endif
#ifndef FFMA_ORDER
#define FFMA_ORDER 1 // rows of the thread tile one after the other (0), or every other one backwards (1)
#endif

constexpr int BM = 128, BN = 128; // tile of C per block
constexpr int TM = 16, TN = 8;
constexpr int NT = (BM / 64) * (BN / 64) * 32;

#include "common/guarded.cuh"
#include "common/launch_bounds.cuh"
#include "common/tma_ring.cuh"
#include "common/transpose.cuh"

extern "C" __global__ void LAUNCH_BOUNDS(NT)
sgemm(int M, int N, int K, float alpha, const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
      float beta, float *__restrict__ C)
{
    extern __shared__ __align__(128) float shared[];
    const Ring ring = make_ring(shared);
    const int row = blockIdx.y * BM, col = blockIdx.x * BN;
    const unsigned warp = __shfl_sync(ALL_LANES, threadIdx.x / 32, 0); // a shuffle, for ptxas to know that a warp has one
    const int thread_row = warp / (BN / WARP_N) * WARP_M + lane_row(), thread_col = warp % (BN / WARP_N) * WARP_N + lane_col();
    const unsigned tiles = (K + BK - 1) / BK;

    if (warp == 0)
        for (unsigned tile = 0; tile < min(AHEAD, tiles); tile++)
            fill_stage(ring, tile, map_a, map_b, row, col);

    Accumulators acc = {};
    for (unsigned tile = 0; tile < tiles; tile++) {
        if (warp == 0 && tile + AHEAD < tiles)
            fill_stage(ring, tile + AHEAD, map_a, map_b, row, col);

        const unsigned stage = tile % STAGES;
        wait_barrier(ring.full + stage * 8, tile / STAGES % 2);
        #pragma unroll
        for (int dot = 0; dot < BK; dot++) {
            float a[TM], b[TN];
            load_fragments(a, b, ring.a + stage * A_BYTES + 4 * thread_row, ring.b + stage * B_BYTES + 4 * thread_col, dot);
            multiply(acc, a, b);
        }
        arrive_warp(ring.empty + stage * 8);
    }

    store_quads(acc, C, M, N, row + thread_row, col + thread_col, alpha, beta);
}
