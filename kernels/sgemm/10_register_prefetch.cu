// Rung 10, register prefetch: the fragments of the next k-step are read from shared memory ahead of this step's
// FFMAs.
//
// New against rung 08: two sets of fragments in registers, used in turn. It hides the latency of shared memory; that
// of global memory, the longer one, is left as it was. The loop must be unrolled by two at least: an index into
// registers has to be a constant.

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
__device__ __forceinline__ void sgemm_register_prefetch(int M, int N, int K, float alpha,
                                                        const float *__restrict__ A, const float *__restrict__ B,
                                                        float beta, float *__restrict__ C)
{
    __shared__ __align__(16) float As[BK * A_STRIDE];
    __shared__ __align__(16) float Bs[BK * BN];

    A += (size_t)blockIdx.y * BM * K;
    B += (size_t)blockIdx.x * BN;
    C += (size_t)blockIdx.y * BM * N + (size_t)blockIdx.x * BN;
    const int rows = M - blockIdx.y * BM, cols = N - blockIdx.x * BN;
    const int row = thread_row(), col = thread_col();

    Accumulators acc = {};
    for (int depth = K; depth > 0; depth -= BK) {
        store_tile(load_tile<GUARDED>(A, B, N, K, rows, cols, depth), As, Bs);
        __syncthreads();

        Fragments fragments[2];
        fragments[0] = load_fragments(As, Bs, 0, row, col);
        constexpr int UNROLLED = GUARDED ? 2 : BK;
        #pragma unroll UNROLLED
        for (int dot = 0; dot < BK; dot++) {
            if (dot + 1 < BK)
                fragments[(dot + 1) % 2] = load_fragments(As, Bs, dot + 1, row, col);
            multiply(acc, fragments[dot % 2]);
        }
        __syncthreads();

        A += BK;
        B += (size_t)BK * N;
    }

    store_accumulators<GUARDED, BETA_RUNTIME>(acc, C, N, row, col, rows, cols, alpha, beta);
}

extern "C" __global__ void LAUNCH_BOUNDS(NT)
sgemm(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta,
      float *__restrict__ C)
{
    sgemm_register_prefetch<false>(M, N, K, alpha, A, B, beta, C);
}

extern "C" __global__ void LAUNCH_BOUNDS(NT)
sgemm_guarded(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta,
              float *__restrict__ C)
{
    sgemm_register_prefetch<true>(M, N, K, alpha, A, B, beta, C);
}
