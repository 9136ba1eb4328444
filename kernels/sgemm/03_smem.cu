// Rung 03, shared memory: a block computes a 32 x 32 tile of C and stages each 32-deep slice of A and B in shared
// memory.
//
// New against rung 02: an element fetched from global memory is used by 32 threads, not by one. Every FFMA still
// takes two loads from shared memory, and their queue (MIO) is what the threads now wait for.
#include "common/epilogue.cuh"
#include "common/loads.cuh"

constexpr int TILE = 32;

template <bool GUARDED>
__device__ __forceinline__ void sgemm_smem(int M, int N, int K, float alpha, const float *__restrict__ A,
                                           const float *__restrict__ B, float beta, float *__restrict__ C)
{
    __shared__ float As[TILE][TILE];
    __shared__ float Bs[TILE][TILE];

    A += (size_t)blockIdx.y * TILE * K;
    B += (size_t)blockIdx.x * TILE;
    C += (size_t)blockIdx.y * TILE * N + (size_t)blockIdx.x * TILE;
    const int rows = M - blockIdx.y * TILE, cols = N - blockIdx.x * TILE;
    const int row = threadIdx.y, col = threadIdx.x;

    float sum = 0.0f;
    for (int depth = K; depth > 0; depth -= TILE) {
        As[row][col] = load<GUARDED>(A, row, col, K, rows, depth);
        Bs[row][col] = load<GUARDED>(B, row, col, N, depth, cols);
        __syncthreads();

        constexpr int UNROLLED = GUARDED ? 1 : TILE;
        #pragma unroll UNROLLED
        for (int dot = 0; dot < TILE; dot++)
            sum += As[row][dot] * Bs[dot][col];
        __syncthreads();

        A += TILE;
        B += (size_t)TILE * N;
    }

    if (!GUARDED || (row < rows && col < cols))
        store(&C[(size_t)row * N + col], sum, alpha, beta);
}

extern "C" __global__ void __launch_bounds__(TILE * TILE)
sgemm(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta,
      float *__restrict__ C)
{
    sgemm_smem<false>(M, N, K, alpha, A, B, beta, C);
}

extern "C" __global__ void __launch_bounds__(TILE * TILE)
sgemm_guarded(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta,
              float *__restrict__ C)
{
    sgemm_smem<true>(M, N, K, alpha, A, B, beta, C);
}
