// Rung 07, vectorized: global memory is read and written four floats at a time.
//
// The only change from rung 06: a quarter of the load and store instructions for the same bytes. The compiler cannot
// do it alone, for it does not know that the rows start on 16-byte boundaries; where they do not, the guarded kernel
// runs.
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
__device__ __forceinline__ void sgemm_vectorized(int M, int N, int K, float alpha, const float *__restrict__ A,
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
        for (int i = 0; i < BM * BK / 4; i += NT) {
            const int chunk = i + threadIdx.x, r = chunk / (BK / 4), c = chunk % (BK / 4) * 4;
            const float4 a = load4<GUARDED>(A, r, c, K, rows, depth);
            As[(c + 0) * BM + r] = a.x;
            As[(c + 1) * BM + r] = a.y;
            As[(c + 2) * BM + r] = a.z;
            As[(c + 3) * BM + r] = a.w;
        }
        #pragma unroll
        for (int i = 0; i < BK * BN / 4; i += NT) {
            const int chunk = i + threadIdx.x, r = chunk / (BN / 4), c = chunk % (BN / 4) * 4;
            *reinterpret_cast<float4 *>(&Bs[r * BN + c]) = load4<GUARDED>(B, r, c, N, depth, cols);
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
        store_row<GUARDED, BETA_RUNTIME, TN>(C, N, row + m, col, acc[m], alpha, beta, rows, cols);
}

extern "C" __global__ void __launch_bounds__(NT)
sgemm(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta,
      float *__restrict__ C)
{
    sgemm_vectorized<false>(M, N, K, alpha, A, B, beta, C);
}

extern "C" __global__ void __launch_bounds__(NT)
sgemm_guarded(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta,
              float *__restrict__ C)
{
    sgemm_vectorized<true>(M, N, K, alpha, A, B, beta, C);
}
