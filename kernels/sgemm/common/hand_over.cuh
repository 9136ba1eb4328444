// Partial sums that one block hands to another through global memory, with a flag that says they are there
// (stream-K).
//
// Flags are never reset: a flag is up when it holds the number of this call (epoch), so the next call finds it down.
//
// The order of a quad in memory, 1 0 3 2, is chosen for the registers. A 16-byte store takes four consecutive ones,
// so it makes ptxas keep acc[m][n] where the lowest bit of the register's number, which is its bank, is the opposite
// of n's. The quads that 16-byte loads fill keep b[n] in the bank of n. So an FFMA reads acc[m][n] and b[n] from
// different banks. Stored in the order 0 1 2 3 they would meet in one bank in every FFMA of the kernel, and the store
// itself is hardly ever executed.
#pragma once
#include "interleaved_tile.cuh"
#include "mbarrier.cuh"

constexpr int PARTIAL_FLOATS = TM * TN; // of a thread; a block's partial holds NT times as many

// partial: the block's place in the workspace. By the whole block.
__device__ __forceinline__ void hand_over(const Accumulators &acc, float *partial, unsigned *flag, unsigned epoch)
{
    float4 *to = reinterpret_cast<float4 *>(partial) + threadIdx.x;
    #pragma unroll
    for (int m = 0; m < TM; m++)
        #pragma unroll
        for (int n = 0; n < TN; n += 4)
            __stcg(to + (m * TN + n) / 4 * NT, make_float4(acc[m][n + 1], acc[m][n], acc[m][n + 3], acc[m][n + 2]));
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(flag)), "r"(epoch) : "memory");
}

// Adds another block's partial, once it is there. By whole warps.
__device__ __forceinline__ void take_over(Accumulators &acc, const float *partial, const unsigned *flag, unsigned epoch)
{
    unsigned seen;
    do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(__cvta_generic_to_global(flag)) : "memory");
    } while (!__all_sync(ALL_LANES, seen == epoch));

    const float4 *from = reinterpret_cast<const float4 *>(partial) + threadIdx.x;
    #pragma unroll
    for (int m = 0; m < TM; m++)
        #pragma unroll
        for (int n = 0; n < TN; n += 4) {
            const float4 quad = __ldcg(from + (m * TN + n) / 4 * NT);
            acc[m][n + 1] += quad.x;
            acc[m][n] += quad.y;
            acc[m][n + 3] += quad.z;
            acc[m][n + 2] += quad.w;
        }
}
