// Rung 16, serpentine: the FFMAs of a k-step in an order that spares the register file.
//
// New against rung 15 is FFMA_ORDER. An FFMA reads three registers, and the register file has two banks that deliver
// one each in a cycle. What the FFMA before it read in the same place may be kept and reused. Going along a row of
// the thread tile keeps a[m]; at its end a plain order changes both operands at once, the serpentine goes back along
// the next row and changes only a[m]. So all but the first FFMA of a k-step read two registers, and where ptxas finds
// them in different banks, they read both in one cycle.

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
#ifndef FFMA_ORDER
#define FFMA_ORDER 1 // rows of the thread tile one after the other (0), or every other one backwards (1)
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
