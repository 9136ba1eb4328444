// AT = A transposed, so that the tiles of A that a GEMM copies are rows of AT. The time it takes counts.
//
// A is M x K; AT is K x ld with ld = M rounded up to a multiple of 4, for rows that start on 16-byte boundaries. A
// block takes 64 x 64 elements through shared memory, so that both sides are read and written along rows, and each
// thread has 16 reads under way.
#pragma once

extern "C" __global__ void __launch_bounds__(256) transpose(int M, int K, const float *__restrict__ A, float *__restrict__ AT)
{
    constexpr int SIDE = 64, AT_ONCE = 256 / SIDE;
    __shared__ float tile[SIDE][SIDE + 1]; // a column more, for rows in different banks
    const int ld = (M + 3) / 4 * 4;
    const int row = blockIdx.y * SIDE, k = blockIdx.x * SIDE;
    const int across = threadIdx.x % SIDE, down = threadIdx.x / SIDE;

    #pragma unroll
    for (int i = down; i < SIDE; i += AT_ONCE)
        if (row + i < M && k + across < K)
            tile[i][across] = A[(size_t)(row + i) * K + k + across];
    __syncthreads();
    #pragma unroll
    for (int i = down; i < SIDE; i += AT_ONCE)
        if (k + i < K && row + across < M)
            AT[(size_t)(k + i) * ld + row + across] = tile[across][i];
}
