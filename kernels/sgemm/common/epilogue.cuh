// C = alpha*product + beta*C, and the ways in which a kernel may treat beta == 0.
#pragma once

enum Beta {
    BETA_ZERO,        // beta is known to be 0: C is only written
    BETA_NONZERO,     // beta is known to be another number: C is read
    BETA_RUNTIME,     // beta is tested here: C is read unless beta is 0
    BETA_ALWAYS_READ  // C is read whatever beta is; at beta == 0 what was read is dropped, for C may hold NaN
};

// One element of C, with beta tested here.
__device__ __forceinline__ void store(float *c, float product, float alpha, float beta)
{
    *c = beta == 0.0f ? alpha * product : alpha * product + beta * *c;
}

// A 16-byte store. In PTX, because NVVM splits many a plain float4 store into four.
__device__ __forceinline__ void write(float *c, float4 value)
{
    asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(c)), "f"(value.x),
                 "f"(value.y), "f"(value.z), "f"(value.w)
                 : "memory");
}

// A 16-byte load of C that the compiler may not skip, even where beta == 0 leaves its value unused.
__device__ __forceinline__ float4 read_unconditionally(const float *c)
{
    float4 value;
    asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
                 : "l"(__cvta_generic_to_global(c)));
    return value;
}

__device__ __forceinline__ float drop_if_zero(float beta, float value)
{
    return beta == 0.0f ? 0.0f : beta * value;
}

// Four consecutive elements of C, 16-byte aligned.
template <Beta BETA>
__device__ __forceinline__ void store4(float *c, const float *product, float alpha, float beta)
{
    float4 out = make_float4(alpha * product[0], alpha * product[1], alpha * product[2], alpha * product[3]);
    if constexpr (BETA == BETA_ALWAYS_READ) {
        const float4 old = read_unconditionally(c);
        out.x += drop_if_zero(beta, old.x);
        out.y += drop_if_zero(beta, old.y);
        out.z += drop_if_zero(beta, old.z);
        out.w += drop_if_zero(beta, old.w);
    } else if (BETA == BETA_NONZERO || (BETA == BETA_RUNTIME && beta != 0.0f)) {
        const float4 old = *reinterpret_cast<const float4 *>(c);
        out.x += beta * old.x;
        out.y += beta * old.y;
        out.z += beta * old.z;
        out.w += beta * old.w;
    }
    write(c, out);
}

// COUNT consecutive elements of a row: 16 bytes at a time, or one by one where they may lie outside C's rows x cols.
template <bool GUARDED, Beta BETA, int COUNT>
__device__ __forceinline__ void store_row(float *C, int N, int row, int col, const float *products, float alpha,
                                          float beta, int rows, int cols)
{
    float *c = C + (size_t)row * N + col;
    if constexpr (GUARDED) {
        #pragma unroll
        for (int n = 0; n < COUNT; n++)
            if (row < rows && col + n < cols)
                store(c + n, products[n], alpha, beta);
    } else {
        #pragma unroll
        for (int n = 0; n < COUNT; n += 4)
            store4<BETA>(c + n, products + n, alpha, beta);
    }
}
