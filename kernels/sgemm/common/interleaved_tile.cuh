// A warp tile of 64 x 8*TN whose lanes are interleaved: a thread's outputs are TM/4 x TN/4 squares of 4 x 4, spread
// over it.
//
// The 32 lanes stand 4 high and 8 wide, and a square of theirs is 16 x 32. Lanes are numbered so that any 8
// consecutive ones, which a 16-byte load serves at a time, ask for 4 quads of A and 2 of B: few different words, all
// in different banks. Rows of a thread: lane_row() + 0..3, + 16..19, + 32..35, ...; columns: lane_col() + 0..3, +
// 32..35, ... Needs TM and TN.
#pragma once
#include "thread_tile.cuh"

static_assert(TM == 16 && TN % 4 == 0, "a warp tile is 64 rows high, and loads take four floats");

constexpr int WARP_M = 4 * TM;
constexpr int WARP_N = 8 * TN;

__device__ __forceinline__ int lane_row()
{
    return (threadIdx.x >> 1 & 3) * 4;
}

__device__ __forceinline__ int lane_col()
{
    return ((threadIdx.x & 1) | (threadIdx.x >> 3 & 3) << 1) * 4;
}

// Distance of output m or n of a thread from its first.
__device__ __forceinline__ constexpr int row_offset(int m)
{
    return m / 4 * 16 + m % 4;
}

__device__ __forceinline__ constexpr int col_offset(int n)
{
    return n / 4 * 32 + n % 4;
}

// Four consecutive floats of shared memory, 16-byte aligned.
__device__ __forceinline__ void load_quad(float *to, const float *from)
{
    const float4 quad = *reinterpret_cast<const float4 *>(from);
    to[0] = quad.x;
    to[1] = quad.y;
    to[2] = quad.z;
    to[3] = quad.w;
}

__device__ __forceinline__ const float *stored_quad(const Accumulators &acc, int m, int n, float *)
{
    return &acc[m][n];
}

#include "tile_stores.cuh"
