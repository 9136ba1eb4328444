// Instructions that never run, to move the code behind them in the instruction cache. Rungs 24 and 25.
#pragma once

template <int INSTRUCTIONS> __device__ __forceinline__ void code_gap(bool never)
{
    if (never) {
        #pragma unroll
        for (int i = 0; i < INSTRUCTIONS; i++)
            asm volatile("nanosleep.u32 %0;" ::"n"(32));
    }
}
