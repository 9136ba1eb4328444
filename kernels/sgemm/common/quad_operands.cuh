// Operands of a persistent block from its stages: 16 bytes a lane, four rows of A (k by k) or four columns of B. Rungs 21 to 24.
#pragma once
#include "interleaved_tile.cuh"
#include "tma.cuh"

#ifndef MOVE_QUADS
#define MOVE_QUADS 0 // (move_rows.cuh)
#endif
constexpr int A_PAD = 4 * MOVE_QUADS; // floats between the 256 rows of one k and those of the next

// Bytes to the lane's first operand of a k, given the first row or column of the warp tile.
__device__ __forceinline__ unsigned a_of_lane(unsigned warp_row)
{
    return 4 * (warp_row + lane_row());
}

__device__ __forceinline__ unsigned b_of_lane(unsigned warp_col)
{
    return 4 * (warp_col + lane_col());
}

__device__ __forceinline__ void load_a4(float *a, unsigned from, int m)
{
    load_shared4(a + m, from + 4 * row_offset(m));
}

__device__ __forceinline__ void load_b4(float *b, unsigned from, int n)
{
    load_shared4(b + n, from + 4 * col_offset(n));
}
