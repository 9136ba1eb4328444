// Operands of a persistent block from its stages by ldmatrix: rows of A split into halves, columns of B as they are. Rung 25.
#pragma once
#include "matrix_tile.cuh"

constexpr int A_PAD = 8; // floats between the 256 rows of one k and those of the next: so stmatrix meets no bank twice

// Bytes to what the lane asks for of a k, given the first row or column of the warp tile.
__device__ __forceinline__ unsigned a_of_lane(unsigned warp_row)
{
    return 4 * warp_row + halves_of_lane();
}

__device__ __forceinline__ unsigned b_of_lane(unsigned warp_col)
{
    return 4 * warp_col + words_of_lane();
}

__device__ __forceinline__ void load_a4(float *a, unsigned from, int m)
{
    load_halves(a + m, from + 32 * m);
}

__device__ __forceinline__ void load_b4(float *b, unsigned from, int n)
{
    load_words(b + n, from + 16 * n);
}
