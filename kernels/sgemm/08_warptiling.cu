// Rung 08, warp tiling: a warp computes a compact WM x WN tile of C, not two long rows of thread tiles.
//
// New against rung 07 is which thread computes what: lane l of a warp takes row l / 4, column l % 4 of its tile's 8 x 4
// thread tiles. A warp then reads 64 values of A and 32 consecutive ones of B in a k-step, and the 8 lanes that a
// 16-byte load serves at a time find theirs in different banks, or share them. BK is 16 from here on.
//
// LANE_MAP 1 numbers the lanes down the columns: the same tile, but the 8 lanes that are served together then want 8
// pieces of A that lie TM words apart, and two of them meet in every bank.

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
#ifndef LANE_MAP
#define LANE_MAP 0 // lanes of a warp are numbered along the rows of its tile (0) or down its columns (1)
#endif

constexpr int NT = (BM / WM) * (BN / WN) * 32;

#include "common/launch_bounds.cuh"
#include "common/warp_tile.cuh"

template <bool GUARDED>
__device__ __forceinline__ void sgemm_warptiling(int M, int N, int K, float alpha, const float *__restrict__ A,
                                                 const float *__restrict__ B, float beta, float *__restrict__ C)
{
    __shared__ __align__(16) float As[BK * A_STRIDE];
    __shared__ __align__(16) float Bs[BK * BN];

    A += (size_t)blockIdx.y * BM * K;
    B += (size_t)blockIdx.x * BN;
    C += (size_t)blockIdx.y * BM * N + (size_t)blockIdx.x * BN;
    const int rows = M - blockIdx.y * BM, cols = N - blockIdx.x * BN;

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int lane_row = LANE_MAP == 0 ? lane / (WN / TN) : lane % (WM / TM);
    const int lane_col = LANE_MAP == 0 ? lane % (WN / TN) : lane / (WM / TM);
    const int row = warp / (BN / WN) * WM + lane_row * TM;
    const int col = warp % (BN / WN) * WN + lane_col * TN;

    Accumulators acc = {};
    for (int depth = K; depth > 0; depth -= BK) {
        store_tile(load_tile<GUARDED>(A, B, N, K, rows, cols, depth), As, Bs);
        __syncthreads();

        constexpr int UNROLLED = GUARDED ? 1 : BK;
        #pragma unroll UNROLLED
        for (int dot = 0; dot < BK; dot++)
            multiply(acc, load_fragments(As, Bs, dot, row, col));
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
    sgemm_warptiling<false>(M, N, K, alpha, A, B, beta, C);
}

extern "C" __global__ void LAUNCH_BOUNDS(NT)
sgemm_guarded(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta,
              float *__restrict__ C)
{
    sgemm_warptiling<true>(M, N, K, alpha, A, B, beta, C);
}
