// One k-tile, BM x BK of A and BK x BN of B, on its way from global to shared memory through the threads' registers.
//
// Every thread moves chunks of four floats. A is stored transposed, [k][row], so that the FFMA loop reads rows of A
// as vectors; the transposition is what the four scalar stores of a chunk of A do. Needs BM, BN, BK and NT; A_PAD
// and A_SWIZZLE change the layout of A and are off unless the kernel has them.
#pragma once
#include "loads.cuh"

#ifndef A_PAD
#define A_PAD 0
#endif
#ifndef A_SWIZZLE
#define A_SWIZZLE 0
#endif

constexpr int A_STRIDE = BM + A_PAD;

constexpr int A_CHUNKS_PER_ROW = BK / 4;
constexpr int B_CHUNKS_PER_ROW = BN / 4;
constexpr int A_ROWS_PER_PASS = NT / A_CHUNKS_PER_ROW;
constexpr int B_ROWS_PER_PASS = NT / B_CHUNKS_PER_ROW;
constexpr int A_PASSES = BM / A_ROWS_PER_PASS;
constexpr int B_PASSES = BK / B_ROWS_PER_PASS;

struct Tile {
    float4 a[A_PASSES];
    float4 b[B_PASSES];
};

// A[row][k] lies at As[k * A_STRIDE + (row ^ a_swizzle(k))]. The BK/4 chunks of a row that a warp stores at once lie
// whole rows of As apart, thus in the same banks; A_SWIZZLE sends each to banks of its own. Four rows stay together.
__device__ __forceinline__ constexpr int a_swizzle(int k)
{
    return A_SWIZZLE ? k / 4 * (128 / BK) % 32 : 0;
}

// A and B point at the tile's corners; rows, cols and depth are what is left of M, N and K from there.
template <bool GUARDED>
__device__ __forceinline__ Tile load_tile(const float *__restrict__ A, const float *__restrict__ B, int N, int K,
                                          int rows, int cols, int depth)
{
    Tile tile;
    #pragma unroll
    for (int pass = 0; pass < A_PASSES; pass++)
        tile.a[pass] = load4<GUARDED>(A, threadIdx.x / A_CHUNKS_PER_ROW + pass * A_ROWS_PER_PASS,
                                      threadIdx.x % A_CHUNKS_PER_ROW * 4, K, rows, depth);
    #pragma unroll
    for (int pass = 0; pass < B_PASSES; pass++)
        tile.b[pass] = load4<GUARDED>(B, threadIdx.x / B_CHUNKS_PER_ROW + pass * B_ROWS_PER_PASS,
                                      threadIdx.x % B_CHUNKS_PER_ROW * 4, N, depth, cols);
    return tile;
}

__device__ __forceinline__ void store_tile(const Tile &tile, float *As, float *Bs)
{
    #pragma unroll
    for (int pass = 0; pass < A_PASSES; pass++) {
        const int row = threadIdx.x / A_CHUNKS_PER_ROW + pass * A_ROWS_PER_PASS;
        const int k = threadIdx.x % A_CHUNKS_PER_ROW * 4;
        float *a = As + k * A_STRIDE + (row ^ a_swizzle(k));
        a[0 * A_STRIDE] = tile.a[pass].x;
        a[1 * A_STRIDE] = tile.a[pass].y;
        a[2 * A_STRIDE] = tile.a[pass].z;
        a[3 * A_STRIDE] = tile.a[pass].w;
    }
    #pragma unroll
    for (int pass = 0; pass < B_PASSES; pass++) {
        const int k = threadIdx.x / B_CHUNKS_PER_ROW + pass * B_ROWS_PER_PASS;
        const int col = threadIdx.x % B_CHUNKS_PER_ROW * 4;
        *reinterpret_cast<float4 *>(&Bs[k * BN + col]) = tile.b[pass];
    }
}
