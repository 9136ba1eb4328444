// A warp's share of the block's tile, WM x WN, and the FFMA step on it.
//
// The 32 lanes cover a rectangle of WSUBM x WSUBN, each with TM x TN outputs; the warp tile is WMITER x WNITER such
// rectangles. With WNITER and WMITER 1 (a kernel without WNITER) the lanes cover the warp tile at once.
#pragma once
#include "epilogue.cuh"
#include "staging.cuh"

#ifndef WNITER
#define WNITER 1
#endif

constexpr int WMITER = (WM * WN) / (32 * TM * TN * WNITER);
constexpr int WSUBM = WM / WMITER;
constexpr int WSUBN = WN / WNITER;

// Row and column, in the block's tile, of this thread's first output: warps and lanes are both numbered along rows.
__device__ __forceinline__ int thread_row()
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    return warp / (BN / WN) * WM + lane / (WSUBN / TN) * TM;
}

__device__ __forceinline__ int thread_col()
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    return warp % (BN / WN) * WN + lane % (WSUBN / TN) * TN;
}

typedef float Accumulators[WMITER * TM][WNITER * TN];

// What one k-step of this thread needs: a column of A and a row of B.
struct Fragments {
    float a[WMITER * TM];
    float b[WNITER * TN];
};

// Four neighbours in shared memory: one 16-byte load where they start on a 16-byte boundary.
__device__ __forceinline__ void read4(float *to, const float *from, bool aligned)
{
    if (aligned) {
        const float4 quad = *reinterpret_cast<const float4 *>(from);
        to[0] = quad.x, to[1] = quad.y, to[2] = quad.z, to[3] = quad.w;
    } else {
        to[0] = from[0], to[1] = from[1], to[2] = from[2], to[3] = from[3];
    }
}

__device__ __forceinline__ Fragments load_fragments(const float *As, const float *Bs, int dot, int row, int col)
{
    Fragments f;
    // The swizzle's bits below TM reorder the thread's own rows, the others exchange rows between threads.
    constexpr int OWN = TM - 1;
    #pragma unroll
    for (int i = 0; i < WMITER; i++) {
        const float *a = As + ((row + i * WSUBM) ^ (a_swizzle(dot) & ~OWN));
        #pragma unroll
        for (int m = 0; m < TM; m += 4)
            read4(&f.a[i * TM + m], &a[dot * A_STRIDE + (m ^ (a_swizzle(dot) & OWN))], dot * A_STRIDE % 4 == 0);
    }
    const float *b = Bs + col;
    #pragma unroll
    for (int j = 0; j < WNITER; j++)
        #pragma unroll
        for (int n = 0; n < TN; n += 4)
            read4(&f.b[j * TN + n], &b[dot * BN + j * WSUBN + n], true);
    return f;
}

__device__ __forceinline__ void multiply(Accumulators &acc, const Fragments &f)
{
    #pragma unroll
    for (int i = 0; i < WMITER; i++)
        #pragma unroll
        for (int j = 0; j < WNITER; j++)
            #pragma unroll
            for (int m = 0; m < TM; m++)
                #pragma unroll
                for (int n = 0; n < TN; n++)
                    acc[i * TM + m][j * TN + n] += f.a[i * TM + m] * f.b[j * TN + n];
}

// C points at the block's tile, of which rows x cols lie inside the matrix.
template <bool GUARDED, Beta BETA>
__device__ __forceinline__ void store_accumulators(const Accumulators &acc, float *C, int N, int row, int col,
                                                   int rows, int cols, float alpha, float beta)
{
    #pragma unroll
    for (int i = 0; i < WMITER; i++)
        #pragma unroll
        for (int j = 0; j < WNITER; j++)
            #pragma unroll
            for (int m = 0; m < TM; m++)
                store_row<GUARDED, BETA, TN>(C, N, row + i * WSUBM + m, col + j * WSUBN, &acc[i * TM + m][j * TN],
                                             alpha, beta, rows, cols);
}
