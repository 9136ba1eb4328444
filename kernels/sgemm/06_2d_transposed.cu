// Rung 06, transposed A: the tile of A is stored [k][row], not [row][k].
//
// The only change from rung 05. The TM values of A that a k-step needs are now neighbours, so they come as vectors.
// The price is in the store: the threads of a warp that hold BK consecutive k of one row write BM words apart, to
// one bank (8 ways at BK 8). Wavefronts rise, and time falls all the same.
#include "common/epilogue.cuh"
#include "common/loads.cuh"

#ifndef BM
#define BM 128 // rows of C per block
#endif
#ifndef BN
#define BN 128 // columns of C per block
#endif
#ifndef BK
#define BK 8 // depth of a k-tile
#endif
#ifndef TM
#define TM 8 // rows of C per thread
#endif
#ifndef TN
#define TN 8 // columns of C per thread
#endif

constexpr int NT = (BM / TM) * (BN / TN);

template <bool GUARDED>
__device__ __forceinline__ void sgemm_transposed(int M, int N, int K, float alpha, const float *__restrict__ A,
                                         const float *__restrict__ B, float beta, float *__restrict__ C)
{
    __shared__ __align__(16) float As[BK * BM];
    __shared__ __align__(16) float Bs[BK * BN];

    A += (size_t)blockIdx.y * BM * K;
    B += (size_t)blockIdx.x * BN;
    C += (size_t)blockIdx.y * BM * N + (size_t)blockIdx.x * BN;
    const int rows = M - blockIdx.y * BM, cols = N - blockIdx.x * BN;
    const int row = threadIdx.x / (BN / TN) * TM, col = threadIdx.x % (BN / TN) * TN;

    float acc[TM][TN] = {};
    for (int depth = K; depth > 0; depth -= BK) {
        #pragma unroll
        for (int i = 0; i < BM * BK; i += NT) {
            const int element = i + threadIdx.x;
            As[element % BK * BM + element / BK] = load<GUARDED>(A, element / BK, element % BK, K, rows, depth);
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
            float a[TM], b[TN];
            #pragma unroll
            for (int m = 0; m < TM; m++)
                a[m] = As[dot * BM + row + m];
            #pragma unroll
            for (int n = 0; n < TN; n++)
                b[n] = Bs[dot * BN + col + n];
            #pragma unroll
            for (int m = 0; m < TM; m++)
                #pragma unroll
                for (int n = 0; n < TN; n++)
                    acc[m][n] += a[m] * b[n];
        }
        __syncthreads();

        A += BK;
        B += (size_t)BK * N;
    }

    #pragma unroll
    for (int m = 0; m < TM; m++)
        #pragma unroll
        for (int n = 0; n < TN; n++)
            if (!GUARDED || (row + m < rows && col + n < cols))
                store(&C[(size_t)(row + m) * N + col + n], acc[m][n], alpha, beta);
}

extern "C" __global__ void __launch_bounds__(NT)
sgemm(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta,
      float *__restrict__ C)
{
    sgemm_transposed<false>(M, N, K, alpha, A, B, beta, C);
}

extern "C" __global__ void __launch_bounds__(NT)
sgemm_guarded(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta,
              float *__restrict__ C)
{
    sgemm_transposed<true>(M, N, K, alpha, A, B, beta, C);
}
