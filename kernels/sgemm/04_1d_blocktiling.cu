// Rung 04, 1D block tiling: a thread computes a strip of TM elements in one column of C.
//
// New against rung 03: an element of B, once read from shared memory, serves TM FFMAs. With the elements of A read
// four at a time, 64 FFMAs need 24 loads from shared memory where rung 03 needs 80.
#include "common/epilogue.cuh"
#include "common/loads.cuh"

#ifndef BM
#define BM 64 // rows of C per block
#endif
#ifndef BN
#define BN 64 // columns of C per block
#endif
#ifndef BK
#define BK 8 // depth of a k-tile
#endif
#ifndef TM
#define TM 8 // rows of C per thread
#endif

constexpr int NT = BM / TM * BN;

template <bool GUARDED>
__device__ __forceinline__ void sgemm_1d(int M, int N, int K, float alpha, const float *__restrict__ A,
                                         const float *__restrict__ B, float beta, float *__restrict__ C)
{
    __shared__ __align__(16) float As[BM * BK];
    __shared__ __align__(16) float Bs[BK * BN];

    A += (size_t)blockIdx.y * BM * K;
    B += (size_t)blockIdx.x * BN;
    C += (size_t)blockIdx.y * BM * N + (size_t)blockIdx.x * BN;
    const int rows = M - blockIdx.y * BM, cols = N - blockIdx.x * BN;
    const int row = threadIdx.x / BN * TM, col = threadIdx.x % BN;

    float acc[TM] = {};
    for (int depth = K; depth > 0; depth -= BK) {
        #pragma unroll
        for (int i = 0; i < BM * BK; i += NT) {
            const int element = i + threadIdx.x;
            As[element] = load<GUARDED>(A, element / BK, element % BK, K, rows, depth);
        }
        #pragma unroll
        for (int i = 0; i < BK * BN; i += NT) {
            const int element = i + threadIdx.x;
            Bs[element] = load<GUARDED>(B, element / BN, element % BN, N, depth, cols);
        }
        __syncthreads();

        constexpr int UNROLLED = GUARDED ? 1 : BK;
        #pragma unroll UNROLLED
        for (int dot = 0; dot < BK; dot++) {
            const float b = Bs[dot * BN + col];
            #pragma unroll
            for (int m = 0; m < TM; m++)
                acc[m] += As[(row + m) * BK + dot] * b;
        }
        __syncthreads();

        A += BK;
        B += (size_t)BK * N;
    }

    #pragma unroll
    for (int m = 0; m < TM; m++)
        if (!GUARDED || (row + m < rows && col < cols))
            store(&C[(size_t)(row + m) * N + col], acc[m], alpha, beta);
}

extern "C" __global__ void __launch_bounds__(NT)
sgemm(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta,
      float *__restrict__ C)
{
    sgemm_1d<false>(M, N, K, alpha, A, B, beta, C);
}

extern "C" __global__ void __launch_bounds__(NT)
sgemm_guarded(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta,
              float *__restrict__ C)
{
    sgemm_1d<true>(M, N, K, alpha, A, B, beta, C);
}
