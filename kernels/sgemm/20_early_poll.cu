// Rung 20, early poll: a warp finds out in time that the next stage is there, and reads its first fragments ahead.
//
// New against rung 19 are two ways to take a wait out of the path from one stage to the next:
// - POLL_AT: the barrier of the next stage is polled some k-steps before this one ends, when its answer is not yet
//   needed. Only where the answer was no does the warp wait.
// - Fragments have two sets of registers, and the last k-step of a stage already reads the first fragments of the
//   next. So the FFMAs run on across the border.

#ifndef BK
#define BK 8 // depth of a k-tile
#endif
#ifndef STAGES
#define STAGES 8 // k-tiles in the ring
#endif
#ifndef AHEAD
#define AHEAD 6 // stages between the one that is worked on and the one that is filled
#endif
#ifndef POLL_AT
#define POLL_AT 5 // k-step of a stage at which the next one is polled
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

static_assert(BK % 2 == 0 && POLL_AT < BK, "two sets of fragments take turns; the poll is inside a stage");

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
        for (unsigned tile = 0; tile < min(AHEAD, tiles + 1); tile++)
            fill_stage(ring, tile, map_a, map_b, row, col);

    Accumulators acc = {};
    float a[2][TM], b[2][TN]; // of this k-step and the next
    auto load_step = [&](int to, unsigned stage, int dot) {
        load_fragments(a[to], b[to], ring.a + stage * A_BYTES + 4 * thread_row, ring.b + stage * B_BYTES + 4 * thread_col, dot);
    };
    wait_barrier(ring.full, 0);
    load_step(0, 0, 0);
    for (unsigned tile = 0; tile < tiles; tile++) {
        if (tile % WARPS == warp && tile + AHEAD <= tiles) // one past the last, all zeros, for the reads ahead
            fill_stage(ring, tile + AHEAD, map_a, map_b, row, col);

        const unsigned stage = tile % STAGES, next_stage = (tile + 1) % STAGES;
        const unsigned next_full = ring.full + next_stage * 8, next_parity = (tile + 1) / STAGES % 2;
        bool next_ready;
        #pragma unroll
        for (int dot = 0; dot < BK; dot++) {
            if (dot == POLL_AT)
                next_ready = poll_barrier(next_full, next_parity);
            if (dot < BK - 1) {
                load_step((dot + 1) % 2, stage, dot + 1);
            } else {
                if (!__all_sync(ALL_LANES, next_ready))
                    wait_barrier(next_full, next_parity);
                load_step(0, next_stage, 0);
            }
            multiply(acc, a[dot % 2], b[dot % 2]);
        }
        arrive_warp(ring.empty + stage * 8);
    }

    store_quads(acc, C, M, N, row + thread_row, col + thread_col, alpha, beta);
}
