// Partial sums that one block hands to another through global memory, with a flag that says they are there
// (stream-K).
//
// Flags are never reset: a flag is up when it holds the number of this call (epoch), so the next call finds it down.
//
// What is stored in 16 bytes, and in which order, is chosen for the registers. A 16-byte store takes four consecutive
// ones, and the registers of acc are chosen once for the whole kernel. Stored in the order 0 1 2 3, acc[m][n] would lie
// in the bank of b[n], the lowest bit of a register's number being its bank and b coming four at a time: two reads of
// one bank in every FFMA of the kernel, though the store itself is hardly ever executed. In the order 1 0 3 2 they lie in
// opposite banks. Multiplied by alpha first, the sums are stored from other registers, and those
// of acc stay free; stored one by one, too.
// Needs the thread tile.
#pragma once
#include "mbarrier.cuh"

constexpr bool PARTIALS_SCALED = PARTIALS == 3, PARTIALS_SINGLE = PARTIALS == 4;
constexpr int PARTIAL_QUADS = TM * TN / 4; // of a thread; a block's partial holds NT times as many

// Element i of quad q of a thread.
__device__ __forceinline__ constexpr int partial_row(int q, int i)
{
    return PARTIALS == 2 ? q / TN * 4 + (i ^ 1) : q / (TN / 4);
}

__device__ __forceinline__ constexpr int partial_col(int q, int i)
{
    return PARTIALS == 2 ? q % TN : q % (TN / 4) * 4 + (PARTIALS == 1 ? 3 - i : i ^ 1);
}

// partial: the block's place in the workspace. By all NT threads that multiply.
__device__ __forceinline__ void hand_over(const Accumulators &acc, float *partial, unsigned *flag, unsigned epoch, float alpha)
{
    const float scale = PARTIALS_SCALED ? alpha : 1.0f; // times 1 costs nothing: ptxas drops it
    if constexpr (PARTIALS_SINGLE) {
        #pragma unroll
        for (int m = 0; m < TM; m++)
            #pragma unroll
            for (int n = 0; n < TN; n++)
                __stcg(partial + (m * TN + n) * NT + threadIdx.x, acc[m][n]);
    } else {
        float4 *to = reinterpret_cast<float4 *>(partial) + threadIdx.x;
        #pragma unroll
        for (int q = 0; q < PARTIAL_QUADS; q++)
            __stcg(to + q * NT, make_float4(scale * acc[partial_row(q, 0)][partial_col(q, 0)],
                                            scale * acc[partial_row(q, 1)][partial_col(q, 1)],
                                            scale * acc[partial_row(q, 2)][partial_col(q, 2)],
                                            scale * acc[partial_row(q, 3)][partial_col(q, 3)]));
    }
    __threadfence();
    asm volatile("bar.sync 1, %0;" ::"n"(NT) : "memory"); // not all threads of a block need multiply
    if (threadIdx.x == 0)
        asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(flag)), "r"(epoch) : "memory");
}

// Before the partials of others are added.
__device__ __forceinline__ void scale_partials(Accumulators &acc, float alpha)
{
    if constexpr (PARTIALS_SCALED) {
        #pragma unroll
        for (int m = 0; m < TM; m++)
            #pragma unroll
            for (int n = 0; n < TN; n++)
                acc[m][n] *= alpha;
    }
}

// Adds another block's partial, once it is there. By whole warps.
__device__ __forceinline__ void take_over(Accumulators &acc, const float *partial, const unsigned *flag, unsigned epoch)
{
    unsigned seen;
    do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(__cvta_generic_to_global(flag)) : "memory");
    } while (!__all_sync(ALL_LANES, seen == epoch));

    if constexpr (PARTIALS_SINGLE) {
        #pragma unroll
        for (int m = 0; m < TM; m++)
            #pragma unroll
            for (int n = 0; n < TN; n++)
                acc[m][n] += __ldcg(partial + (m * TN + n) * NT + threadIdx.x);
        return;
    }
    const float4 *from = reinterpret_cast<const float4 *>(partial) + threadIdx.x;
    #pragma unroll
    for (int q = 0; q < PARTIAL_QUADS; q++) {
        const float4 quad = __ldcg(from + q * NT);
        acc[partial_row(q, 0)][partial_col(q, 0)] += quad.x;
        acc[partial_row(q, 1)][partial_col(q, 1)] += quad.y;
        acc[partial_row(q, 2)][partial_col(q, 2)] += quad.z;
        acc[partial_row(q, 3)][partial_col(q, 3)] += quad.w;
    }
}
