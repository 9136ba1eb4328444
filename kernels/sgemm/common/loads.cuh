// Reads of a row-major matrix in global memory, for exact and for guarded kernels.
//
// X points at the corner of a tile, ld is the distance between rows, and rows x cols is what is left of the matrix
// from that corner on. GUARDED reads give 0 outside it; the others neither test nor need rows and cols.
#pragma once

template <bool GUARDED>
__device__ __forceinline__ float load(const float *__restrict__ X, int row, int col, int ld, int rows, int cols)
{
    if (GUARDED && (row >= rows || col >= cols))
        return 0.0f;
    return X[(size_t)row * ld + col];
}

// Four consecutive elements of a row. Exact: one 16-byte load, so X, ld and col must be multiples of 4 elements.
template <bool GUARDED>
__device__ __forceinline__ float4 load4(const float *__restrict__ X, int row, int col, int ld, int rows, int cols)
{
    if constexpr (GUARDED)
        return {load<true>(X, row, col + 0, ld, rows, cols), load<true>(X, row, col + 1, ld, rows, cols),
                load<true>(X, row, col + 2, ld, rows, cols), load<true>(X, row, col + 3, ld, rows, cols)};
    else
        return *reinterpret_cast<const float4 *>(X + (size_t)row * ld + col);
}
