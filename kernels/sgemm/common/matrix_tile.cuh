// A warp tile of 8*TM x 4*TN whose operands come by ldmatrix, 32 bits of each of four matrices a lane.
//
// A load of 16 bytes a lane writes four registers at once, and an H200 issues no FFMA for 1.4 cycles meanwhile; ldmatrix
// writes one register after the other, into gaps (docs/frontier.md). It was made for matrices of 8 x 8 halves, and deals
// with 32 bits in two ways:
// - As it is, lane 4*r + w gets word w of row r. With one row for all r, a lane gets word w: so it reads four columns of B.
// - Transposed, it gets half r of row 2*w and half r of row 2*w + 1. With two rows for all w, one of the lower halves of
//   eight floats and one of the upper ones, a lane gets float r: so it reads eight rows of A, split into halves: of every 8
//   rows, 16 bytes of lower halves and then 16 of upper ones.
// So lanes 4*r + w stand 8 high and 4 wide. Rows of a thread: r, r + 8, r + 16, ...; columns while it multiplies: w, w + 4,
// w + 8, ...; when it stores, four lanes have exchanged theirs for 4*w + 0..3, 4*w + 16..19, ... Needs TM and TN.
#pragma once
#include "matrices.cuh"
#include "mbarrier.cuh"
#include "thread_tile.cuh"

static_assert(TM % 4 == 0 && TN % 4 == 0, "ldmatrix loads four matrices");

constexpr int WARP_M = 8 * TM;
constexpr int WARP_N = 4 * TN;

// Of what is stored.
__device__ __forceinline__ int lane_row()
{
    return threadIdx.x % 32 / 4;
}

__device__ __forceinline__ int lane_col()
{
    return threadIdx.x % 4 * 4;
}

__device__ __forceinline__ constexpr int row_offset(int m)
{
    return m * 8;
}

__device__ __forceinline__ constexpr int col_offset(int n)
{
    return n / 4 * 16 + n % 4;
}

// Bytes from the first of a warp tile's rows of A, in halves, or of its columns of B to where the lane's address points.
__device__ __forceinline__ unsigned halves_of_lane()
{
    return threadIdx.x % 32 / 8 * 32 + threadIdx.x % 2 * 16;
}

__device__ __forceinline__ unsigned words_of_lane()
{
    return threadIdx.x % 32 / 8 * 16;
}

// Lane w of four has columns w, w + 4, w + 8, w + 12 and gets 4*w + 0..3: a transposition of 4 x 4, by halves.
__device__ __forceinline__ const float *stored_quad(const Accumulators &acc, int m, int n, float *quad)
{
    #pragma unroll
    for (int i = 0; i < 4; i++)
        quad[i] = acc[m][n + i];
    #pragma unroll
    for (int bit = 1; bit < 4; bit *= 2) {
        const bool upper = threadIdx.x & bit;
        #pragma unroll
        for (int i = 0; i < 4; i++)
            if ((i & bit) == 0) {
                const float got = __shfl_xor_sync(ALL_LANES, upper ? quad[i] : quad[i + bit], bit);
                if (upper)
                    quad[i] = got;
                else
                    quad[i + bit] = got;
            }
    }
    return quad;
}

#include "tile_stores.cuh"
