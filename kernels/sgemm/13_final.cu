// Rung 13, final: rung 12, tuned again now that the pipeline is there. No new technique.
//
// New against rung 12 are four constants and one declaration:
// - BN 128, WN 64, TM 16: one barrier a tile is cheap, so fewer and fatter threads pay. 6 loads feed 128 FFMAs.
// - A_PAD 0: rows of As that start on 16-byte boundaries can be read by 16-byte loads, and reads outnumber stores.
// - BETA_READ 0: beta == 0 has an entry of its own that never reads C; the host picks it.
// - MIN_BLOCKS 1: one block on an SM is enough, so ptxas need not save registers to make room for more.
//
// Also here, as parameters, what seed B tried on top and found not to pay: A_SWIZZLE, FRAGMENT_BUFFERS and GROUP. Elsewhere they may.
// BETA_DISPATCH 2 repeats a published mistake: the kernel tests beta, and has lost MIN_BLOCKS on the way.

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
#ifndef A_PAD
#define A_PAD 0 // floats between the rows of As
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 1 // blocks that must fit on an SM, for __launch_bounds__; 0 leaves it to ptxas
#endif
#ifndef BETA_READ
#define BETA_READ 0 // read C whatever beta is
#endif
#ifndef BETA_DISPATCH
#define BETA_DISPATCH 0 // beta == 0 is found by the host (0), by the kernel (1), or so without MIN_BLOCKS (2)
#endif
#ifndef A_SWIZZLE
#define A_SWIZZLE 0 // spread the stores to As over the banks by an exclusive or
#endif
#ifndef FRAGMENT_BUFFERS
#define FRAGMENT_BUFFERS 1 // sets of fragments in registers; 2 reads the next ahead of the FFMAs
#endif
#ifndef GROUP
#define GROUP 0 // rows of tiles that consecutive blocks walk down; 0 takes the grid as it is
#endif

constexpr int NT = (BM / WM) * (BN / WN) * 32;

#include "common/launch_bounds.cuh"
#include "common/block_order.cuh"
#include "common/double_buffered.cuh"

#if BETA_DISPATCH == 2
#define EXACT_BOUNDS __launch_bounds__(NT)
#else
#define EXACT_BOUNDS LAUNCH_BOUNDS(NT)
#endif

#if BETA_READ
constexpr Beta EXACT = BETA_ALWAYS_READ;
#elif BETA_DISPATCH
constexpr Beta EXACT = BETA_RUNTIME;
#else
constexpr Beta EXACT = BETA_NONZERO;

extern "C" __global__ void LAUNCH_BOUNDS(NT)
sgemm_beta0(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta,
            float *__restrict__ C)
{
    const TilePosition tile = tile_position();
    double_buffered<false, BETA_ZERO>(tile.row, tile.col, M, N, K, alpha, A, B, beta, C);
}
#endif

extern "C" __global__ void EXACT_BOUNDS
sgemm(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta,
      float *__restrict__ C)
{
    const TilePosition tile = tile_position();
    double_buffered<false, EXACT>(tile.row, tile.col, M, N, K, alpha, A, B, beta, C);
}

extern "C" __global__ void LAUNCH_BOUNDS(NT)
sgemm_guarded(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta,
              float *__restrict__ C)
{
    const TilePosition tile = tile_position();
    double_buffered<true, BETA_RUNTIME>(tile.row, tile.col, M, N, K, alpha, A, B, beta, C);
}
