// Rung 02, coalesced global memory: x runs along the columns of C, y along the rows.
//
// The only change from rung 01. The threads of a warp now share a row of A, one broadcast, and read 32 consecutive
// elements of B, four sectors used to the last byte.
#include "common/epilogue.cuh"

extern "C" __global__ void sgemm(int M, int N, int K, float alpha, const float *__restrict__ A,
                                 const float *__restrict__ B, float beta, float *__restrict__ C)
{
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M || col >= N)
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; k++)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + col];

    store(&C[(size_t)row * N + col], sum, alpha, beta);
}
