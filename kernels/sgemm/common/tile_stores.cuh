// A thread's sums to C, 16 bytes at a time. Included by the headers of warp tiles, which say where they lie: row_offset(),
// col_offset() and stored_quad(), the four neighbours of a row that a thread stores (there is room for them). All lanes of a
// warp call these together, for stored_quad() may exchange sums between them.
#pragma once
#include "epilogue.cuh"

#ifndef READ_ROWS
#define READ_ROWS 4 // rows of C that a thread reads at a time, where beta != 0
#endif

// The thread's outputs, rows x cols of which lie inside the C that is left from here on; row and col are those of the
// first.
template <bool GUARDED, Beta BETA>
__device__ __forceinline__ void store_accumulators(const Accumulators &acc, float *C, int N, int row, int col, int rows,
                                                   int cols, float alpha, float beta)
{
    #pragma unroll
    for (int m = 0; m < TM; m++)
        #pragma unroll
        for (int n = 0; n < TN; n += 4) {
            float room[4];
            store_row<GUARDED, BETA, 4>(C, N, row + row_offset(m), col + col_offset(n), stored_quad(acc, m, n, room), alpha, beta,
                                        rows, cols);
        }
}

// The same where all outputs lie inside C, and beta is 0.
__device__ __forceinline__ void store_inside(const Accumulators &acc, float *C, int N, int row, int col, float alpha)
{
    float *c = C + (size_t)row * N + col;
    #pragma unroll
    for (int m = 0; m < TM; m++) {
        #pragma unroll
        for (int n = 0; n < TN; n += 4) {
            float room[4];
            store4<BETA_ZERO>(c + col_offset(n), stored_quad(acc, m, n, room), alpha, 0.0f);
        }
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
            for (int n = 0; n < TN; n += 4) {
                float room[4];
                const float *quad = stored_quad(acc, m, n, room);
                if (row + row_offset(m) < M && col + col_offset(n) < N)
                    store4<BETA_ZERO>(c + (size_t)row_offset(m) * N + col_offset(n), quad, alpha, beta);
            }
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
            for (int n = 0; n < TN; n += 4) {
                float room[4];
                const float *product = stored_quad(acc, first + m, n, room);
                if (row + row_offset(first + m) < M && col + col_offset(n) < N) {
                    const float4 was = old[m][n / 4];
                    write(c + (size_t)row_offset(first + m) * N + col_offset(n),
                          make_float4(alpha * product[0] + beta * was.x, alpha * product[1] + beta * was.y,
                                      alpha * product[2] + beta * was.z, alpha * product[3] + beta * was.w));
                }
            }
    }
}
