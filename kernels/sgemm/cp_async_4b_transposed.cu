// cp.async, 4 bytes, transposed: the tile of A is transposed on the way, one element a copy.
//
// A negative result, to be set beside rung 11: the copies need no registers and no stores, but an element of As is a
// copy of its own, for neighbours in k are not neighbours in As. So many go out at once, ahead of the FFMAs, that
// they clog the queue (MIO) that all memory instructions share.

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

constexpr int NT = (BM / WM) * (BN / WN) * 32;

#include "common/launch_bounds.cuh"
#include "common/cp_async.cuh"
#include "common/warp_tile.cuh"

template <bool GUARDED>
__device__ __forceinline__ void copy_tile(const float *A, const float *B, int N, int K, int rows, int cols, int depth,
                                          float *As, float *Bs)
{
    #pragma unroll
    for (int pass = 0; pass < A_PASSES; pass++) {
        const int row = threadIdx.x / A_CHUNKS_PER_ROW + pass * A_ROWS_PER_PASS;
        const int k = threadIdx.x % A_CHUNKS_PER_ROW * 4;
        #pragma unroll
        for (int i = 0; i < 4; i++)
            copy_async_4(&As[(k + i) * A_STRIDE + row], &A[(size_t)row * K + k + i],
                         !GUARDED || (row < rows && k + i < depth));
    }
    #pragma unroll
    for (int pass = 0; pass < B_PASSES; pass++) {
        const int k = threadIdx.x / B_CHUNKS_PER_ROW + pass * B_ROWS_PER_PASS;
        const int col = threadIdx.x % B_CHUNKS_PER_ROW * 4;
        copy_async_chunk<GUARDED>(&Bs[k * BN + col], B, k, col, N, depth, cols);
    }
}

template <bool GUARDED>
__device__ __forceinline__ void sgemm_cp_async_4b(int M, int N, int K, float alpha,
                                                  const float *__restrict__ A, const float *__restrict__ B,
                                                  float beta, float *__restrict__ C)
{
    __shared__ __align__(16) float As[2][BK * A_STRIDE];
    __shared__ __align__(16) float Bs[2][BK * BN];

    A += (size_t)blockIdx.y * BM * K;
    B += (size_t)blockIdx.x * BN;
    C += (size_t)blockIdx.y * BM * N + (size_t)blockIdx.x * BN;
    const int rows = M - blockIdx.y * BM, cols = N - blockIdx.x * BN;
    const int row = thread_row(), col = thread_col();

    Accumulators acc = {};
    copy_tile<GUARDED>(A, B, N, K, rows, cols, K, As[0], Bs[0]);

    int now = 0;
    for (int depth = K; depth > 0; depth -= BK) {
        wait_for_copies();
        __syncthreads();

        if (depth > BK) {
            A += BK;
            B += (size_t)BK * N;
            copy_tile<GUARDED>(A, B, N, K, rows, cols, depth - BK, As[now ^ 1], Bs[now ^ 1]);
        }

        constexpr int UNROLLED = GUARDED ? 1 : BK;
        #pragma unroll UNROLLED
        for (int dot = 0; dot < BK; dot++)
            multiply(acc, load_fragments(As[now], Bs[now], dot, row, col));
        now ^= 1;
    }

    store_accumulators<GUARDED, BETA_RUNTIME>(acc, C, N, row, col, rows, cols, alpha, beta);
}

extern "C" __global__ void LAUNCH_BOUNDS(NT)
sgemm(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta,
      float *__restrict__ C)
{
    sgemm_cp_async_4b<false>(M, N, K, alpha, A, B, beta, C);
}

extern "C" __global__ void LAUNCH_BOUNDS(NT)
sgemm_guarded(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta,
              float *__restrict__ C)
{
    sgemm_cp_async_4b<true>(M, N, K, alpha, A, B, beta, C);
}
