// Barriers that live in shared memory (mbarrier, sm_90), named by their address there.
//
// A barrier waits for a number of arrivals, and for the bytes of copies that it was told to expect; then its phase is
// over and the next begins. Phases are told apart by their parity: the first is 0. Waiting for parity 1 of a new
// barrier does not wait.
#pragma once

constexpr unsigned ALL_LANES = 0xffffffff;

__device__ __forceinline__ unsigned shared_address(const void *pointer)
{
    return (unsigned)__cvta_generic_to_shared(pointer);
}

__device__ __forceinline__ void init_barrier(unsigned barrier, unsigned arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// After the init of all barriers, by the thread that did it, before the __syncthreads() that lets others use them.
__device__ __forceinline__ void publish_barriers()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Is the phase of this parity over? The hardware may take a while to say no.
__device__ __forceinline__ bool poll_barrier(unsigned barrier, unsigned parity)
{
    unsigned over;
    asm volatile("{\n"
                 ".reg .pred over;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, over;\n"
                 "}"
                 : "=r"(over)
                 : "r"(barrier), "r"(parity)
                 : "memory");
    return over;
}

// By whole warps. The vote makes the branch one for all lanes, which ptxas then knows.
__device__ __forceinline__ void wait_barrier(unsigned barrier, unsigned parity)
{
    while (!__all_sync(ALL_LANES, poll_barrier(barrier, parity)))
        ;
}

// One arrival for the whole warp, after all its lanes are done with what the barrier guards.
__device__ __forceinline__ void arrive_warp(unsigned barrier)
{
    __syncwarp();
    asm volatile("{\n"
                 ".reg .pred first;\n"
                 "setp.eq.u32 first, %1, 0;\n"
                 "@first mbarrier.arrive.shared::cta.b64 _, [%0];\n"
                 "}" ::"r"(barrier),
                 "r"(threadIdx.x % 32)
                 : "memory");
}
