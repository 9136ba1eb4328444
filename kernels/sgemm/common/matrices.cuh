// ldmatrix and stmatrix of floats: four matrices at a time, each of eight rows of 16 bytes. Lane 8*i + r gives the address of
// row r of matrix i, and lane 4*r + w has one float of each matrix.
#pragma once

// Word w of row r. ldmatrix writes one register after the other; a load of 16 bytes a lane writes four at once.
__device__ __forceinline__ void load_words(float *to, unsigned from)
{
    unsigned bits[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(bits[0]), "=r"(bits[1]), "=r"(bits[2]), "=r"(bits[3])
                 : "r"(from));
    #pragma unroll
    for (int i = 0; i < 4; i++)
        to[i] = __uint_as_float(bits[i]);
}

// Half r of row 2*w below, half r of row 2*w + 1 above: the matrices transposed.
__device__ __forceinline__ void load_halves(float *to, unsigned from)
{
    unsigned bits[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(bits[0]), "=r"(bits[1]), "=r"(bits[2]), "=r"(bits[3])
                 : "r"(from));
    #pragma unroll
    for (int i = 0; i < 4; i++)
        to[i] = __uint_as_float(bits[i]);
}

// The same the other way (sm_90).
__device__ __forceinline__ void store_halves(unsigned to, const float *from)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
                 "r"(__float_as_uint(from[0])), "r"(__float_as_uint(from[1])), "r"(__float_as_uint(from[2])),
                 "r"(__float_as_uint(from[3]))
                 : "memory");
}
