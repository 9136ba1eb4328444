// The pipeline of rungs 12 and 13: two buffers in shared memory, the next k-tile staged in registers, one barrier.
//
// While the FFMAs run on one buffer, the loads of the next tile are in flight to registers; after the FFMAs they are
// stored to the other buffer, which every thread left before the last barrier. So one barrier a tile is enough.
#pragma once
#include "warp_tile.cuh"

#ifndef FRAGMENT_BUFFERS
#define FRAGMENT_BUFFERS 1
#endif

#define BUFFER_FLOATS (BK * (BM + A_PAD + BN))

// 48 KB is all that a kernel may declare; what passes it is asked for at the launch (dynamic shared memory).
#if 2 * 4 * BUFFER_FLOATS > 48 * 1024
extern __shared__ float4 dynamic_shared[];
#define DECLARE_BUFFERS float *buffers = reinterpret_cast<float *>(dynamic_shared)
#else
#define DECLARE_BUFFERS __shared__ __align__(16) float buffers[2 * BUFFER_FLOATS]
#endif

template <bool GUARDED>
__device__ __forceinline__ void multiply_tile(Accumulators &acc, const float *As, const float *Bs, int row, int col)
{
    if constexpr (FRAGMENT_BUFFERS == 1) {
        constexpr int UNROLLED = GUARDED ? 1 : BK;
        #pragma unroll UNROLLED
        for (int dot = 0; dot < BK; dot++)
            multiply(acc, load_fragments(As, Bs, dot, row, col));
    } else { // the idea of rung 10
        Fragments fragments[2];
        fragments[0] = load_fragments(As, Bs, 0, row, col);
        constexpr int UNROLLED = GUARDED ? 2 : BK;
        #pragma unroll UNROLLED
        for (int dot = 0; dot < BK; dot++) {
            if (dot + 1 < BK)
                fragments[(dot + 1) % 2] = load_fragments(As, Bs, dot + 1, row, col);
            multiply(acc, fragments[dot % 2]);
        }
    }
}

template <bool GUARDED, Beta BETA>
__device__ __forceinline__ void double_buffered(int block_row, int block_col, int M, int N, int K, float alpha,
                                                const float *__restrict__ A, const float *__restrict__ B, float beta,
                                                float *__restrict__ C)
{
    DECLARE_BUFFERS;
    float *As = buffers;                     // two tiles of A, then two of B
    float *Bs = buffers + 2 * BK * A_STRIDE;

    A += (size_t)block_row * BM * K;
    B += (size_t)block_col * BN;
    C += (size_t)block_row * BM * N + (size_t)block_col * BN;
    const int rows = M - block_row * BM, cols = N - block_col * BN;
    const int row = thread_row(), col = thread_col();

    Accumulators acc = {};
    store_tile(load_tile<GUARDED>(A, B, N, K, rows, cols, K), As, Bs);
    __syncthreads();

    int now = 0;
    for (int depth = K; depth > 0; depth -= BK) {
        const bool more = depth > BK;
        Tile next;
        if (more) {
            A += BK;
            B += (size_t)BK * N;
            next = load_tile<GUARDED>(A, B, N, K, rows, cols, depth - BK);
        }

        multiply_tile<GUARDED>(acc, As + now * BK * A_STRIDE, Bs + now * BK * BN, row, col);

        if (more) {
            now ^= 1;
            store_tile(next, As + now * BK * A_STRIDE, Bs + now * BK * BN);
            __syncthreads();
        }
    }

    store_accumulators<GUARDED, BETA>(acc, C, N, row, col, rows, cols, alpha, beta);
}
