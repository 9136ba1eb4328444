// Rung 12, double buffered: rungs 09 and 11 together, two buffers in shared memory and two stages on the way there.
//
// New against rung 11: while the FFMAs run on one buffer, the next tile's stores go to the other, so one barrier a
// tile is left of two. The pipeline is common/double_buffered.cuh. The rest is this rung's tuning, found before
// there was a pipeline: small tiles, so that many blocks fit on an SM and hide each other's barriers, and rows of As
// two floats apart, so that the transposed stores meet fewer bank conflicts.
//
// C is read whatever beta is, as in the kernel's published form (BETA_READ); at beta == 0 what was read is dropped.

#ifndef BM
#define BM 128 // rows of C per block
#endif
#ifndef BN
#define BN 64 // columns of C per block
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
#ifndef WNITER
#define WNITER 2 // rectangles of lanes side by side in a warp tile
#endif
#ifndef TM
#define TM 4 // rows of C per thread in each rectangle
#endif
#ifndef TN
#define TN 4 // columns of C per thread in each rectangle
#endif
#ifndef A_PAD
#define A_PAD 2 // floats between the rows of As
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 0 // blocks that must fit on an SM, for __launch_bounds__; 0 leaves it to ptxas
#endif
#ifndef BETA_READ
#define BETA_READ 1 // read C whatever beta is
#endif
#ifndef BETA_DISPATCH
#define BETA_DISPATCH 0 // beta == 0 is found by the host, which picks an entry (0), or by the kernel (1)
#endif

constexpr int NT = (BM / WM) * (BN / WN) * 32;

#include "common/launch_bounds.cuh"
#include "common/double_buffered.cuh"

#if BETA_READ
constexpr Beta EXACT = BETA_ALWAYS_READ;
#elif BETA_DISPATCH == 1
constexpr Beta EXACT = BETA_RUNTIME;
#else
constexpr Beta EXACT = BETA_NONZERO;

extern "C" __global__ void LAUNCH_BOUNDS(NT)
sgemm_beta0(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta,
            float *__restrict__ C)
{
    double_buffered<false, BETA_ZERO>(blockIdx.y, blockIdx.x, M, N, K, alpha, A, B, beta, C);
}
#endif

extern "C" __global__ void LAUNCH_BOUNDS(NT)
sgemm(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta,
      float *__restrict__ C)
{
    double_buffered<false, EXACT>(blockIdx.y, blockIdx.x, M, N, K, alpha, A, B, beta, C);
}

extern "C" __global__ void LAUNCH_BOUNDS(NT)
sgemm_guarded(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta,
              float *__restrict__ C)
{
    double_buffered<true, BETA_RUNTIME>(blockIdx.y, blockIdx.x, M, N, K, alpha, A, B, beta, C);
}
