// Rung 11, staged: a k-tile goes from global memory to registers before the FFMAs, on to shared memory after them.
//
// New against rung 08: the loads of the next tile are under way while the FFMAs run on this one, and its stores wait
// behind them. One buffer is enough: the barrier after the FFMAs frees it. UNROLL forces the FFMA loop to unroll, so
// that ptxas can spread the loads among the FFMAs; without it the compiler decides.

#ifndef BM
#define BM 128 // rows of C per block
#endif
#ifndef BN
#define BN 128 // columns of C per block
#endif
#ifndef BK
#define BK 16 // depth of a k-tile
#endif
#ifndef WM
#define WM 64 // rows of C per warp
#endif
#ifndef WN
#define WN 32 // columns of C per warp
#endif
#ifndef TM
#define TM 8 // rows of C per thread
#endif
#ifndef TN
#define TN 8 // columns of C per thread
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 0 // blocks that must fit on an SM, for __launch_bounds__; 0 leaves it to ptxas
#endif
#ifndef UNROLL
#define UNROLL 1 // force the FFMA loop to unroll in full
#endif

constexpr int NT = (BM / WM) * (BN / WN) * 32;

#include "common/launch_bounds.cuh"
#include "common/warp_tile.cuh"

template <bool GUARDED>
__device__ __forceinline__ void multiply_tile(Accumulators &acc, const float *As, const float *Bs, int row, int col)
{
#if UNROLL
    constexpr int UNROLLED = GUARDED ? 1 : BK;
    #pragma unroll UNROLLED
#endif
    for (int dot = 0; dot < BK; dot++)
        multiply(acc, load_fragments(As, Bs, dot, row, col));
}

template <bool GUARDED>
__device__ __forceinline__ void sgemm_staged(int M, int N, int K, float alpha, const float *__restrict__ A,
                                             const float *__restrict__ B, float beta, float *__restrict__ C)
{
    __shared__ __align__(16) float As[BK * A_STRIDE];
    __shared__ __align__(16) float Bs[BK * BN];

    A += (size_t)blockIdx.y * BM * K;
    B += (size_t)blockIdx.x * BN;
    C += (size_t)blockIdx.y * BM * N + (size_t)blockIdx.x * BN;
    const int rows = M - blockIdx.y * BM, cols = N - blockIdx.x * BN;
    const int row = thread_row(), col = thread_col();

    Accumulators acc = {};
    store_tile(load_tile<GUARDED>(A, B, N, K, rows, cols, K), As, Bs);
    __syncthreads();

    for (int depth = K; depth > 0; depth -= BK) {
        const bool more = depth > BK;
        Tile next;
        if (more) {
            A += BK;
            B += (size_t)BK * N;
            next = load_tile<GUARDED>(A, B, N, K, rows, cols, depth - BK);
        }

        multiply_tile<GUARDED>(acc, As, Bs, row, col);
        __syncthreads();

        if (more) {
            store_tile(next, As, Bs);
            __syncthreads();
        }
    }

    store_accumulators<GUARDED, BETA_RUNTIME>(acc, C, N, row, col, rows, cols, alpha, beta);
}

extern "C" __global__ void LAUNCH_BOUNDS(NT)
sgemm(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta,
      float *__restrict__ C)
{
    sgemm_staged<false>(M, N, K, alpha, A, B, beta, C);
}

extern "C" __global__ void LAUNCH_BOUNDS(NT)
sgemm_guarded(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta,
              float *__restrict__ C)
{
    sgemm_staged<true>(M, N, K, alpha, A, B, beta, C);
}
