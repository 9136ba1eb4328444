// Rung 15, interleaved: the same 16 x 8 outputs a thread as in rungs 13 and 14, but not in one piece.
//
// New against rung 14 is which outputs a thread has. A thread of rung 14 owns 16 rows in a row, so the lanes above
// and below it read As 16 words away. Here it owns four squares of 4 rows by two of 4 columns, spread over the warp
// tile, and what a load takes for 8 lanes is a few neighbouring quads (common/interleaved_tile.cuh). Each of the 6
// loads of a k-step is then as cheap as a load of 16 bytes can be. Alone this did not pay on an H200 (docs/frontier.md).

#ifndef BM
#define BM 128 // rows of C per block
#endif
#ifndef BN
#define BN 128 // columns of C per block
#endif
#ifndef BK
#define BK 16 // depth of a k-tile
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 1 // blocks that must fit on an SM, for __launch_bounds__; 0 leaves it to ptxas
#endif

#define A_SWIZZLE 1 // as rung 14
constexpr int TM = 16, TN = 8;
constexpr int NT = (BM / 64) * (BN / 64) * 32;

#include "common/launch_bounds.cuh"
#include "common/interleaved_pipeline.cuh"

extern "C" __global__ void LAUNCH_BOUNDS(NT)
sgemm_beta0(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta,
            float *__restrict__ C)
{
    interleaved_pipeline<false, BETA_ZERO>(M, N, K, alpha, A, B, beta, C);
}

extern "C" __global__ void LAUNCH_BOUNDS(NT)
sgemm(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta,
      float *__restrict__ C)
{
    interleaved_pipeline<false, BETA_NONZERO>(M, N, K, alpha, A, B, beta, C);
}

extern "C" __global__ void LAUNCH_BOUNDS(NT)
sgemm_guarded(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta,
              float *__restrict__ C)
{
    interleaved_pipeline<true, BETA_RUNTIME>(M, N, K, alpha, A, B, beta, C);
}
