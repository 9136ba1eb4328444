// A ring of k-tiles in shared memory that cp.async fills, and the kernels made of it: rung 17 and cp_async_matrix_loads.
//
// A k of the transposed A has ld floats, M rounded up to a multiple of A_GROUP. Needs BM, BN, BK, STAGES, MIN_BLOCKS, a warp
// tile, and how its operands come from a stage: a_of_lane() and b_of_lane(), floats from the thread's first row or column to
// what its lane asks for, and load_a() and load_b(), all TM or TN operands of a k from there.
#pragma once
#include "launch_bounds.cuh"

static_assert(BM % WARP_M == 0 && BN % WARP_N == 0, "a block is made of whole warp tiles");

constexpr int NT = (BM / WARP_M) * (BN / WARP_N) * 32;
constexpr int A_STAGE = BK * BM, B_STAGE = BK * BN;

// 16 bytes, or 16 bytes of zeros where the source is outside its matrix.
__device__ __forceinline__ void copy_chunk(float *to, const float *from, bool inside)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((unsigned)__cvta_generic_to_shared(to)),
                 "l"(__cvta_generic_to_global(from)), "r"(inside ? 16 : 0)
                 : "memory");
}

// BK rows of WIDTH floats. X points at the tile's corner, of which depth rows and cols columns are inside the matrix.
template <bool GUARDED, int WIDTH>
__device__ __forceinline__ void copy_rows(float *to, const float *X, int ld, int depth, int cols)
{
    constexpr int CHUNKS = WIDTH / 4, ROWS = NT / CHUNKS;
    const int row = threadIdx.x / CHUNKS, col = threadIdx.x % CHUNKS * 4;
    #pragma unroll
    for (int i = 0; i < BK; i += ROWS)
        copy_chunk(to + (row + i) * WIDTH + col, X + (size_t)(row + i) * ld + col,
                   !GUARDED || (row + i < depth && col < cols));
}

template <bool GUARDED>
__device__ __forceinline__ void cp_async_ring(int M, int N, int K, float alpha, const float *__restrict__ AT,
                                              const float *__restrict__ B, float beta, float *__restrict__ C)
{
    extern __shared__ float4 shared[];
    float *As = reinterpret_cast<float *>(shared), *Bs = As + STAGES * A_STAGE;
    const int ld = (M + A_GROUP - 1) / A_GROUP * A_GROUP; // of AT
    const int row = blockIdx.y * BM, col = blockIdx.x * BN;
    const int warp = threadIdx.x / 32;
    const int thread_row = warp / (BN / WARP_N) * WARP_M + lane_row(), thread_col = warp % (BN / WARP_N) * WARP_N + lane_col();
    AT += row;
    B += col;

    // Every k-tile is a group of copies, also an empty one past the last, so that groups can be counted.
    auto copy_tile = [&](int k, int stage) {
        if (k < K) {
            copy_rows<GUARDED, BM>(As + stage * A_STAGE, AT + (size_t)k * ld, ld, K - k, ld - row);
            copy_rows<GUARDED, BN>(Bs + stage * B_STAGE, B + (size_t)k * N, N, K - k, N - col);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };

    #pragma unroll
    for (int stage = 0; stage < STAGES - 1; stage++)
        copy_tile(stage * BK, stage);

    Accumulators acc = {};
    int now = 0;
    for (int k = 0; k < K; k += BK) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads();
        copy_tile(k + (STAGES - 1) * BK, now == 0 ? STAGES - 1 : now - 1);

        const float *a_stage = As + now * A_STAGE + thread_row + a_of_lane();
        const float *b_stage = Bs + now * B_STAGE + thread_col + b_of_lane();
        #pragma unroll
        for (int dot = 0; dot < BK; dot++) {
            float a[TM], b[TN];
            load_a(a, a_stage + dot * BM);
            load_b(b, b_stage + dot * BN);
            multiply(acc, a, b);
        }
        now = now == STAGES - 1 ? 0 : now + 1;
    }

    if constexpr (GUARDED)
        store_quads(acc, C, M, N, row + thread_row, col + thread_col, alpha, beta);
    else
        store_accumulators<false, BETA_RUNTIME>(acc, C, N, row + thread_row, col + thread_col, M, N, alpha, beta);
}

extern "C" __global__ void LAUNCH_BOUNDS(NT)
sgemm(int M, int N, int K, float alpha, const float *__restrict__ AT, const float *__restrict__ B, float beta,
      float *__restrict__ C)
{
    cp_async_ring<false>(M, N, K, alpha, AT, B, beta, C);
}

extern "C" __global__ void LAUNCH_BOUNDS(NT)
sgemm_edges(int M, int N, int K, float alpha, const float *__restrict__ AT, const float *__restrict__ B, float beta,
            float *__restrict__ C)
{
    cp_async_ring<true>(M, N, K, alpha, AT, B, beta, C);
}
