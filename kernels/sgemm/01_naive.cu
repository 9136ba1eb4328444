// Rung 01, naive: one thread, one element of C.
//
// Threads of a warp take 32 consecutive rows of one column. So each of their loads of A touches 32 rows, thus 32
// sectors, and uses 4 bytes of each: uncoalesced, on purpose. Rung 02 swaps the two indices.
#include "common/epilogue.cuh"

extern "C" __global__ void sgemm(int M, int N, int K, float alpha, const float *__restrict__ A,
                                 const float *__restrict__ B, float beta, float *__restrict__ C)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    const int col = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N)
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; k++)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + col];

    store(&C[(size_t)row * N + col], sum, alpha, beta);
}
