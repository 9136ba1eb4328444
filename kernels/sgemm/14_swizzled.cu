// Rung 14, swizzled: the transposed stores to As no longer meet in the same banks.
//
// New against rung 13 is the place of an element of As, and nothing else. The BK / 4 chunks of a row of A that
// neighbouring lanes store lie whole rows of As apart: the same bank, four times over. Rung 12 cured it by padding,
// at the price of loads that are no longer 16 bytes wide; rung 13 lived with it. Here the row index is combined with
// k by an exclusive or: A[row][k] lies at As[k][row ^ a_swizzle(k)], so the chunks go to banks of their own, and
// since a_swizzle(k) is a multiple of 4, four consecutive rows stay together and are still one 16-byte load.

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
#define WN 64 // columns of C per warp
#endif
#ifndef WNITER
#define WNITER 2 // rectangles of lanes side by side in a warp tile
#endif
#ifndef TM
#define TM 16 // rows of C per thread in each rectangle
#endif
#ifndef TN
#define TN 4 // columns of C per thread in each rectangle
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 1 // blocks that must fit on an SM, for __launch_bounds__; 0 leaves it to ptxas
#endif
#ifndef A_SWIZZLE
#define A_SWIZZLE 1 // spread the stores to As over the banks by an exclusive or
#endif

constexpr int NT = (BM / WM) * (BN / WN) * 32;

#include "common/launch_bounds.cuh"
#include "common/double_buffered.cuh"

extern "C" __global__ void LAUNCH_BOUNDS(NT)
sgemm_beta0(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta,
            float *__restrict__ C)
{
    double_buffered<false, BETA_ZERO>(blockIdx.y, blockIdx.x, M, N, K, alpha, A, B, beta, C);
}

extern "C" __global__ void LAUNCH_BOUNDS(NT)
sgemm(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta,
      float *__restrict__ C)
{
    double_buffered<false, BETA_NONZERO>(blockIdx.y, blockIdx.x, M, N, K, alpha, A, B, beta, C);
}

extern "C" __global__ void LAUNCH_BOUNDS(NT)
sgemm_guarded(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta,
              float *__restrict__ C)
{
    double_buffered<true, BETA_RUNTIME>(blockIdx.y, blockIdx.x, M, N, K, alpha, A, B, beta, C);
}
