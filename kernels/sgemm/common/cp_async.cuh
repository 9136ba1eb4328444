// cp.async: copies from global to shared memory that pass no registers and that a thread need not wait for (sm_80
// on).
#pragma once

// Four bytes; zeros where the source lies outside the matrix.
__device__ __forceinline__ void copy_async_4(float *to, const float *from, bool inside)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"((unsigned)__cvta_generic_to_shared(to)),
                 "l"(__cvta_generic_to_global(from)), "r"(inside ? 4 : 0)
                 : "memory");
}

// Sixteen bytes, aligned; past L1, which has no use for them.
__device__ __forceinline__ void copy_async_16(float *to, const float *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)),
                 "l"(__cvta_generic_to_global(from))
                 : "memory");
}

// Four consecutive elements of a row of a matrix of rows x cols, as load4 in loads.cuh.
template <bool GUARDED>
__device__ __forceinline__ void copy_async_chunk(float *to, const float *X, int row, int col, int ld, int rows,
                                                 int cols)
{
    const float *from = X + (size_t)row * ld + col;
    if constexpr (GUARDED) {
        #pragma unroll
        for (int i = 0; i < 4; i++)
            copy_async_4(to + i, from + i, row < rows && col + i < cols);
    } else {
        copy_async_16(to, from);
    }
}

// Waits for all copies of this thread; those of others are known to be done only after a barrier.
__device__ __forceinline__ void wait_for_copies()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}
