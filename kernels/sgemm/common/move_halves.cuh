// How the spare warps of rung 25 take a tile of A to the stage: split into halves, as matrix_tile.cuh wants it.
//
// ldmatrix takes 16 bytes, four k, of eight rows, and gives lane 4*r + w that of row r and the w-th k. stmatrix, transposed,
// stores the lower half of that to place r of a row of memory, and the upper half to place r of another: the eight rows of
// one k are split and lie next to each other. 24 of each for a k-tile, and none with a bank conflict of its own: rows of 48
// bytes start in different banks, and so do four k with their halves (A_PAD).
#pragma once
#include "matrix_operands.cuh"

#include "movers.cuh"

struct ByHalves {
    static constexpr bool SPREADS = true;

    static __device__ __forceinline__ void copy_rows(unsigned arrived, unsigned rows, const TensorMap &map_a, const Walk &at)
    {
        copy_one(arrived, A_BYTES, rows, map_a, at.k, at.row);
    }

    // Where the lane's row of a store goes: four k, each with lower and upper halves, of its eight of 32 rows of A.
    static __device__ __forceinline__ unsigned place(unsigned stage)
    {
        const unsigned lane = threadIdx.x % 32;
        return stage + lane % 8 / 2 * (4 * A_PITCH) + lane % 2 * 16 + lane / 8 * 32;
    }

    static __device__ __forceinline__ void transpose(unsigned rows, unsigned stage)
    {
        move_matrices<32>(rows + 4 * BK * (threadIdx.x % 32), place(stage), store_halves);
    }

    // From the rows of AT. Lanes of the same k read next to each other, four k meet in their banks.
    static __device__ __forceinline__ void spread(unsigned rows, unsigned stage)
    {
        const unsigned lane = threadIdx.x % 32;
        const unsigned from = rows + 4 * (lane % 4 * BM + lane / 4), to = place(stage);
        #pragma unroll 1
        for (int quad = 0; quad < BK; quad += 4)
            #pragma unroll
            for (int i = 0; i < BM; i += 32) {
                float v[4];
                #pragma unroll
                for (int j = 0; j < 4; j++)
                    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v[j]) : "r"(from + 4 * (quad * BM + i + 8 * j)));
                store_halves(to + 4 * (quad * A_PITCH + i), v);
            }
    }
};

typedef Mover<ByHalves> HalfMover;
