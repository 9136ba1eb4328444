// A thread's TM x TN sums, and the order of the FFMAs that make them. Needs TM and TN; FFMA_ORDER is off unless the kernel
// has it.
#pragma once

#ifndef FFMA_ORDER
#define FFMA_ORDER 0
#endif

typedef float Accumulators[TM][TN];

// The column that the n-th FFMA of row m works on. FFMA_ORDER 1 is the serpentine: every other row runs backwards (3: the others), so
// two FFMAs in a row always share an operand, which the register file then need not deliver twice.
__device__ __forceinline__ constexpr int ffma_column(int m, int n)
{
    return FFMA_ORDER >= 1 && m % 2 == (FFMA_ORDER == 3 ? 0 : 1) ? TN - 1 - n : n;
}

__device__ __forceinline__ void multiply(Accumulators &acc, const float *a, const float *b)
{
    #pragma unroll
    for (int m = 0; m < TM; m++)
        #pragma unroll
        for (int n = 0; n < TN; n++)
            acc[m][ffma_column(m, n)] += a[m] * b[ffma_column(m, n)];
}
