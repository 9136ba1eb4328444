// How the spare warps of rungs 23 and 24 take a tile of A to the stage, where the rows of one k lie next to each other.
//
// ByFloats: each lane reads four floats of a row and writes them one by one, where they are wanted one below the other. With
// BK 12 these are 24 loads and 96 stores for a k-tile, none with a bank conflict (rows of 48 bytes: any 8 consecutive ones
// start in different banks; lanes write next to each other).
//
// ByQuads (MOVE_QUADS): 24 ldmatrix and 24 stores of 16 bytes. ldmatrix takes 16 bytes of eight rows and gives each lane
// four of one row; four such, of rows that follow each other, are four rows of one k in a lane. For rows in different banks
// TMA brings rows 0, 4, 8, ... first, then 1, 5, 9, ...; this takes M % 4 == 0. At BK 8 they still meet in pairs. An A that
// was transposed beforehand comes by way of the warp's own place, for TMA writes to multiples of 128 bytes.
#pragma once
#include "quad_operands.cuh"

#include "movers.cuh"

__device__ __forceinline__ void store_shared(unsigned to, float value)
{
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(value) : "memory");
}

__device__ __forceinline__ void store_shared4(unsigned to, const float *value)
{
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(value[0]), "f"(value[1]), "f"(value[2]), "f"(value[3])
                 : "memory");
}

struct ByFloats {
    static constexpr bool SPREADS = false;

    static __device__ __forceinline__ void copy_rows(unsigned arrived, unsigned rows, const TensorMap &map_a, const Walk &at)
    {
        copy_one(arrived, A_BYTES, rows, map_a, at.k, at.row);
    }

    static __device__ __forceinline__ void transpose(unsigned rows, unsigned stage)
    {
        const unsigned lane = threadIdx.x % 32;
        const unsigned from = rows + 4 * lane * BK, to = stage + 4 * lane;
        #pragma unroll
        for (int quad = 0; quad < BK; quad += 4) {
            float v[BM / 32][4];
            #pragma unroll
            for (int i = 0; i < BM / 32; i++)
                load_shared4(v[i], from + 4 * (32 * i * BK + quad));
            #pragma unroll
            for (int i = 0; i < BM / 32; i++)
                #pragma unroll
                for (int j = 0; j < 4; j++)
                    store_shared(to + 4 * ((quad + j) * BM + 32 * i), v[i][j]);
        }
    }

    static __device__ __forceinline__ void spread(unsigned, unsigned) {}
};

struct ByQuads {
    static constexpr bool SPREADS = true;

    static __device__ __forceinline__ void copy_rows(unsigned arrived, unsigned rows, const TensorMap &map_a, const Walk &at)
    {
        copy_block(arrived, A_BYTES, rows, map_a, at.k, (unsigned)at.row / 4);
    }

    // ldmatrix spreads 16 bytes of a row over four lanes. Row j of matrix i is row 4*group(j) + i of A, so that a lane has
    // four rows of one k, ready to be stored at once.
    static __device__ __forceinline__ void transpose(unsigned rows, unsigned stage)
    {
        // Lanes that store at the same time have four k and two groups, 4 apart: all in different banks (A_PITCH).
        const unsigned lane = threadIdx.x % 32;
        const unsigned from = rows + 4 * BK * (lane / 8 * (BM / 4) + group(lane % 8));
        const unsigned to = stage + 4 * (lane % 4 * A_PITCH + 4 * group(lane / 4));
        move_matrices<8>(from, to, store_shared4);
    }

    // From the rows of AT to the stage, where they lie 16 bytes further apart.
    static __device__ __forceinline__ void spread(unsigned rows, unsigned stage)
    {
        #pragma unroll 1
        for (int k = 0; k < BK; k++)
            #pragma unroll
            for (int quad = threadIdx.x % 32; quad < BM / 4; quad += 32) {
                float v[4];
                load_shared4(v, rows + 4 * (k * BM + 4 * quad));
                store_shared4(stage + 4 * (k * A_PITCH + 4 * quad), v);
            }
    }

    static __device__ __forceinline__ unsigned group(unsigned j) { return j % 2 * 4 + j / 2; }
};

#if MOVE_QUADS
typedef Mover<ByQuads> RowMover;
#else
typedef Mover<ByFloats> RowMover;
#endif
