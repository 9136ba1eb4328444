// AT = A transposed, so that the tiles of A that a GEMM copies are rows of AT. The time it takes counts.
//
// A is M x K; AT is K x ld with ld = M rounded up to a multiple of 4, for rows that start on 16-byte boundaries. A
// block takes 32 x 32 elements through shared memory, so that both sides are read and written along rows.
#pragma once

extern "C" __global__ void __launch_bounds__(256) transpose(int M, int K, const float *__restrict__ A, float *__restrict__ AT)
{
    __shared__ float tile[32][33]; // a column more, for rows in different banks
    const int ld = (M + 3) / 4 * 4;
    const int row = blockIdx.y * 32, k = blockIdx.x * 32;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;

    #pragma unroll
    for (int i = warp; i < 32; i += 8)
        if (row + i < M && k + lane < K)
            tile[i][lane] = A[(size_t)(row + i) * K + k + lane];
    __syncthreads();
    #pragma unroll
    for (int i = warp; i < 32; i += 8)
        if (k + i < K && row + lane < M)
            AT[(size_t)(k + i) * ld + row + lane] = tile[lane][i];
}
