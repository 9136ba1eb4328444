// A warp tile of 64 x 8*TN whose lanes are interleaved: a thread's outputs are TM/4 x TN/4 squares of 4 x 4, spread
// over it.
//
// The 32 lanes stand 4 high and 8 wide, and a square of theirs is 16 x 32. Lanes are numbered so that any 8
// consecutive ones, which a 16-byte load serves at a time, ask for 4 quads of A and 2 of B: few different words, all
// in different banks. Rows of a thread: lane_row() + 0..3, + 16..19, + 32..35, ...; columns: lane_col() + 0..3, +
// 32..35, ... Needs TM and TN; FFMA_ORDER is off unless the kernel has it.
#pragma once
#include "epilogue.cuh"

#ifndef FFMA_ORDER
#define FFMA_ORDER 0
#endif
#ifndef READ_ROWS
#define READ_ROWS 4 // rows of C that a thread reads at a time, where beta != 0
#endif

static_assert(TM == 16 && TN % 4 == 0, "a warp tile is 64 rows high, and loads take four floats");

constexpr int WARP_M = 4 * TM;
constexpr int WARP_N = 8 * TN;

typedef float Accumulators[TM][TN];

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

// The column that the n-th FFMA of row m works on. FFMA_ORDER 1 is the serpentine: every other row runs backwards (3: the others), so
// two FFMAs in a row always share an operand, which the register file then need not deliver twice.
__device__ __forceinline__ constexpr int ffma_column(int m, int n)
{
    return FFMA_ORDER >= 1 && m % 2 == (FFMA_ORDER == 3 ? 0 : 1) ? TN - 1 - n : n;
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

__device__ __forceinline__ void multiply(Accumulators &acc, const float *a, const float *b)
{
    #pragma unroll
    for (int m = 0; m < TM; m++)
        #pragma unroll
        for (int n = 0; n < TN; n++)
            acc[m][ffma_column(m, n)] += a[m] * b[ffma_column(m, n)];
}

// The thread's outputs, rows x cols of which lie inside the C that is left from here on; row and col are those of the
// first.
template <bool GUARDED, Beta BETA>
__device__ __forceinline__ void store_accumulators(const Accumulators &acc, float *C, int N, int row, int col, int rows,
                                                   int cols, float alpha, float beta)
{
    #pragma unroll
    for (int m = 0; m < TM; m++)
        #pragma unroll
        for (int n = 0; n < TN; n += 4)
            store_row<GUARDED, BETA, 4>(C, N, row + row_offset(m), col + col_offset(n), &acc[m][n], alpha, beta, rows, cols);
}

// The same where all outputs lie inside C, and beta is 0.
__device__ __forceinline__ void store_inside(const Accumulators &acc, float *C, int N, int row, int col, float alpha)
{
    float *c = C + (size_t)row * N + col;
    #pragma unroll
    for (int m = 0; m < TM; m++) {
        #pragma unroll
        for (int n = 0; n < TN; n += 4)
            store4<BETA_ZERO>(c + col_offset(n), &acc[m][n], alpha, 0.0f);
        c += (size_t)(row_offset(m + 1) - row_offset(m)) * N;
    }
}

// The same where N is a multiple of 4, so that a quad of columns is inside or outside as a whole.
__device__ __forceinline__ void store_quads(const Accumulators &acc, float *C, int M, int N, int row, int col, float alpha,
                                            float beta)
{
    float *c = C + (size_t)row * N + col;
    if (beta == 0.0f) {
        #pragma unroll
        for (int m = 0; m < TM; m++)
            #pragma unroll
            for (int n = 0; n < TN; n += 4)
                if (row + row_offset(m) < M && col + col_offset(n) < N)
                    store4<BETA_ZERO>(c + (size_t)row_offset(m) * N + col_offset(n), &acc[m][n], alpha, beta);
        return;
    }
    // READ_ROWS rows are read before the first of them is written: read one by one, each would wait for memory.
    #pragma unroll
    for (int first = 0; first < TM; first += READ_ROWS) {
        float4 old[READ_ROWS][TN / 4];
        #pragma unroll
        for (int m = 0; m < READ_ROWS; m++)
            #pragma unroll
            for (int n = 0; n < TN; n += 4)
                old[m][n / 4] = row + row_offset(first + m) < M && col + col_offset(n) < N
                                    ? *reinterpret_cast<const float4 *>(c + (size_t)row_offset(first + m) * N + col_offset(n))
                                    : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        #pragma unroll
        for (int m = 0; m < READ_ROWS; m++)
            #pragma unroll
            for (int n = 0; n < TN; n += 4)
                if (row + row_offset(first + m) < M && col + col_offset(n) < N) {
                    const float *product = &acc[first + m][n];
                    const float4 was = old[m][n / 4];
                    write(c + (size_t)row_offset(first + m) * N + col_offset(n),
                          make_float4(alpha * product[0] + beta * was.x, alpha * product[1] + beta * was.y,
                                      alpha * product[2] + beta * was.z, alpha * product[3] + beta * was.w));
                }
    }
}
