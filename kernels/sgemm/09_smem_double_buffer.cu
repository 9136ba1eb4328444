// Rung 09, double-buffered shared memory: the next k-tile is loaded into a second buffer before the FFMAs on the
// first.
//
// New against rung 08: two buffers, and one barrier a tile in place of two, for nobody writes where others still
// read. It is a miss. Each tile goes straight from global to shared memory, so its stores wait for its loads ahead
// of the FFMAs that were meant to hide them. Rung 11 keeps the stores back until after the FFMAs.

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
#include "common/warp_tile.cuh"

template <bool GUARDED>
__device__ __forceinline__ void sgemm_smem_double_buffer(int M, int N, int K, float alpha,
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
    store_tile(load_tile<GUARDED>(A, B, N, K, rows, cols, K), As[0], Bs[0]);

    int now = 0;
    for (int depth = K; depth > 0; depth -= BK) {
        __syncthreads();

        if (depth > BK) {
            A += BK;
            B += (size_t)BK * N;
            store_tile(load_tile<GUARDED>(A, B, N, K, rows, cols, depth - BK), As[now ^ 1], Bs[now ^ 1]);
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
    sgemm_smem_double_buffer<false>(M, N, K, alpha, A, B, beta, C);
}

extern "C" __global__ void LAUNCH_BOUNDS(NT)
sgemm_guarded(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta,
              float *__restrict__ C)
{
    sgemm_smem_double_buffer<true>(M, N, K, alpha, A, B, beta, C);
}
