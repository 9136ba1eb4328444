// The pipeline of rungs 12 to 14 with the interleaved lanes of interleaved_tile.cuh, for rungs 15 and 16.
//
// Two buffers in shared memory, the next k-tile staged in registers, one barrier a tile; As is transposed and
// swizzled. Needs BM, BN, BK, NT and the thread tile.
#pragma once
#include "interleaved_tile.cuh"
#include "staging.cuh"

static_assert(BK >= 4 && BK <= 32, "a_swizzle must keep quads of rows whole, within 32 rows");

// As and Bs point at the warp's first row and column.
__device__ __forceinline__ void load_fragments(float *a, float *b, const float *As, const float *Bs, int dot)
{
    // The low bits of the swizzle exchange the quads of lanes, the high one those of a thread.
    const float *from_a = As + dot * A_STRIDE + (lane_row() ^ (a_swizzle(dot) & 12));
    #pragma unroll
    for (int m = 0; m < TM; m += 4)
        load_quad(a + m, from_a + (row_offset(m) ^ (a_swizzle(dot) & 16)));
    const float *from_b = Bs + dot * BN + lane_col();
    #pragma unroll
    for (int n = 0; n < TN; n += 4)
        load_quad(b + n, from_b + col_offset(n));
}

template <bool GUARDED, Beta BETA>
__device__ __forceinline__ void interleaved_pipeline(int M, int N, int K, float alpha, const float *__restrict__ A,
                                                     const float *__restrict__ B, float beta, float *__restrict__ C)
{
    __shared__ __align__(16) float As[2][BK * A_STRIDE];
    __shared__ __align__(16) float Bs[2][BK * BN];

    A += (size_t)blockIdx.y * BM * K;
    B += (size_t)blockIdx.x * BN;
    C += (size_t)blockIdx.y * BM * N + (size_t)blockIdx.x * BN;
    const int rows = M - blockIdx.y * BM, cols = N - blockIdx.x * BN;
    const int warp = threadIdx.x / 32;
    const int warp_row = warp / (BN / WARP_N) * WARP_M, warp_col = warp % (BN / WARP_N) * WARP_N;

    Accumulators acc = {};
    store_tile(load_tile<GUARDED>(A, B, N, K, rows, cols, K), As[0], Bs[0]);
    __syncthreads();

    int now = 0;
    for (int k = 0; k < K; k += BK) {
        const bool more = k + BK < K;
        Tile next;
        if (more) {
            A += BK;
            B += (size_t)BK * N;
            next = load_tile<GUARDED>(A, B, N, K, rows, cols, K - k - BK);
        }

        #pragma unroll
        for (int dot = 0; dot < BK; dot++) {
            float a[TM], b[TN];
            load_fragments(a, b, As[now] + warp_row, Bs[now] + warp_col, dot);
            multiply(acc, a, b);
        }

        if (more) {
            now ^= 1;
            store_tile(next, As[now], Bs[now]);
            __syncthreads();
        }
    }

    store_accumulators<GUARDED, BETA>(acc, C, N, warp_row + lane_row(), warp_col + lane_col(), rows, cols, alpha, beta);
}
