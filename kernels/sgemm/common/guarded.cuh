// A plain guarded kernel for what the frontier's exact kernels do not take: rows of B or C that are not whole 16-byte
// chunks.
//
// The shape of rung 05: a block of 256 threads computes 64 x 64 of C, 4 x 4 a thread, one element at a time
// everywhere.
#pragma once
#include "epilogue.cuh"
#include "loads.cuh"

extern "C" __global__ void __launch_bounds__(256)
sgemm_guarded(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta,
              float *__restrict__ C)
{
    constexpr int TILE = 64, DEPTH = 16;
    __shared__ float As[DEPTH][TILE + 1], Bs[DEPTH][TILE];
    const int first_row = blockIdx.y * TILE, first_col = blockIdx.x * TILE;
    const int row = threadIdx.x / 16, col = threadIdx.x % 16; // and every 16th from there

    float acc[4][4] = {};
    for (int k = 0; k < K; k += DEPTH) {
        #pragma unroll
        for (int i = threadIdx.x; i < TILE * DEPTH; i += 256) {
            As[i % DEPTH][i / DEPTH] = load<true>(A, first_row + i / DEPTH, k + i % DEPTH, K, M, K);
            Bs[i / TILE][i % TILE] = load<true>(B, k + i / TILE, first_col + i % TILE, N, K, N);
        }
        __syncthreads();
        for (int dot = 0; dot < DEPTH; dot++)
            #pragma unroll
            for (int m = 0; m < 4; m++)
                #pragma unroll
                for (int n = 0; n < 4; n++)
                    acc[m][n] += As[dot][row + 16 * m] * Bs[dot][col + 16 * n];
        __syncthreads();
    }

    #pragma unroll
    for (int m = 0; m < 4; m++)
        #pragma unroll
        for (int n = 0; n < 4; n++) {
            const int r = first_row + row + 16 * m, c = first_col + col + 16 * n;
            if (r < M && c < N)
                store(&C[(size_t)r * N + c], acc[m][n], alpha, beta);
        }
}
