// Spare warps that fill the ring and transpose A on the way. Rungs 23 and 24.
//
// TMA brings the tile of A as it lies in memory, 256 rows of BK, to a place of the warp's own; each lane reads four floats
// of a row and writes them one by one to the stage, where they are wanted one below the other. With BK 12 these are 24
// loads and 96 stores for a k-tile, none with a bank conflict (rows of 48 bytes: any 8 consecutive ones start in different
// banks; lanes write next to each other), and they replace what a transposition beforehand reads and writes in memory.
//
// With MOVE_QUADS they are 24 ldmatrix and 24 stores of 16 bytes: ldmatrix takes 16 bytes of eight rows and gives each lane
// four of one row; four such, of rows that follow each other, are four rows of one k in a lane. For rows in different banks
// TMA brings rows 0, 4, 8, ... first, then 1, 5, 9, ...; this takes M % 4 == 0. At BK 8 they still meet in pairs.
//
// TMA cannot copy rows of A that do not start at multiples of 16 bytes (K % 4). Such an A is transposed beforehand, and
// copied to the stage as it is wanted; with MOVE_QUADS by way of the warp's own place, for TMA writes to multiples of 128 bytes.
//
// Four spare warps take the k-tiles in turn. They are never short of time: while the others work on four k-tiles, some
// 13,000 cycles, a mover needs about 1,000 for its own. So they run ahead as far as the ring is free.
#pragma once
#include "persistent.cuh"

constexpr unsigned MOVERS = 4; // warps: a warpgroup, for setmaxnreg counts in these
static_assert(BK % 4 == 0, "a row of the tile is copied in whole 16-byte chunks");

constexpr int MULTIPLIER_REGISTERS = 168 + (168 - MOVER_REGISTERS) / 2; // 8 warps take what 4 give back
static_assert(MOVER_REGISTERS % 16 == 8 && MULTIPLIER_REGISTERS <= 240, "registers are given in eights");

// Registers that a warp has. Asked for by whole warpgroups; only there where the target is sm_90a, elsewhere all warps
// keep the same number.
template <int REGISTERS> __device__ __forceinline__ void give_registers_back()
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
#endif
}

template <int REGISTERS> __device__ __forceinline__ void take_registers()
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
#endif
}

// The Feeder of the warps that multiply: they need not feed.
struct Fed {
    static constexpr int FILL_STEP = -1;
    __device__ __forceinline__ int run_length(int k_tiles) const { return k_tiles; }
    __device__ __forceinline__ bool due(unsigned) const { return false; }
    __device__ __forceinline__ void fill() const {}
};

__device__ __forceinline__ void store_shared(unsigned to, float value)
{
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(value) : "memory");
}

__device__ __forceinline__ void store_shared4(unsigned to, const float *value)
{
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(value[0]), "f"(value[1]), "f"(value[2]), "f"(value[3])
                 : "memory");
}

// ldmatrix of four matrices: each lane names a row of 16 bytes, and gets one float of a row of each.
__device__ __forceinline__ void load_matrices4(float *to, unsigned from)
{
    unsigned bits[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(bits[0]), "=r"(bits[1]), "=r"(bits[2]), "=r"(bits[3])
                 : "r"(from));
    #pragma unroll
    for (int i = 0; i < 4; i++)
        to[i] = __uint_as_float(bits[i]);
}

struct Mover {
    const Schedule &schedule;
    unsigned lane;
    unsigned rows, arrived; // where the tile of A comes to, and the barrier that says it has

    // shared: what follows the ring, a multiple of 128.
    __device__ __forceinline__ Mover(const Schedule &schedule, unsigned shared, unsigned mover)
        : schedule(schedule), lane(threadIdx.x % 32), rows(uniform(shared + mover * A_BYTES)),
          arrived(uniform(shared + MOVERS * A_BYTES + mover * 8))
    {
        if (lane == 0) {
            init_barrier(arrived, 1);
            publish_barriers();
        }
        __syncwarp();
    }

    // From the rows of A to the stage, transposed.
    __device__ __forceinline__ void transpose(unsigned stage) const
    {
        if constexpr (MOVE_QUADS) {
            transpose_quads(stage);
            return;
        }
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

    // The same by ldmatrix, which spreads 16 bytes of a row over four lanes. Row j of matrix i is row 4*group(j) + i of A, so
    // that a lane has four rows of one k, ready to be stored at once.
    __device__ __forceinline__ void transpose_quads(unsigned stage) const
    {
        // Lanes that store at the same time have four k and two groups, 4 apart: all in different banks (A_PITCH).
        const unsigned from = rows + 4 * BK * (lane / 8 * (BM / 4) + group(lane % 8));
        const unsigned to = stage + 4 * (lane % 4 * A_PITCH + 4 * group(lane / 4));
        #pragma unroll
        for (int quad = 0; quad < BK; quad += 4) {
            float v[BM / 32][4];
            #pragma unroll
            for (int i = 0; i < BM / 32; i++)
                load_matrices4(v[i], from + 4 * (8 * i * BK + quad));
            #pragma unroll
            for (int i = 0; i < BM / 32; i++)
                store_shared4(to + 4 * (quad * A_PITCH + 32 * i), v[i]);
        }
    }

    // From the rows of AT to the stage, where they lie 16 bytes further apart.
    __device__ __forceinline__ void spread(unsigned stage) const
    {
        #pragma unroll 1
        for (int k = 0; k < BK; k++)
            #pragma unroll
            for (int quad = lane; quad < BM / 4; quad += 32) {
                float v[4];
                load_shared4(v, rows + 4 * (k * BM + 4 * quad));
                store_shared4(stage + 4 * (k * A_PITCH + 4 * quad), v);
            }
    }

    static __device__ __forceinline__ unsigned group(unsigned j) { return j % 2 * 4 + j / 2; }

    // All k-tiles whose turn is this warp's, and one past the last, for the reads ahead need something there.
    // map_a: of A, or of AT where A was transposed beforehand.
    __device__ __forceinline__ void move(unsigned ring, unsigned mover, bool beforehand, const TensorMap &map_a,
                                         const TensorMap &map_b)
    {
        unsigned parity = 0;
        Walk at(schedule, mover);
        #pragma unroll 1
        for (int unit = mover; unit <= schedule.units; unit += MOVERS, at.go_on(schedule, MOVERS)) {
            const unsigned stage = ring + unit % STAGES * STAGE_BYTES, half = stage + B_AT;
            if (beforehand && MOVE_QUADS)
                copy_one(arrived, A_BYTES, rows, map_a, at.row, at.k);
            else if (MOVE_QUADS)
                copy_block(arrived, A_BYTES, rows, map_a, at.k, (unsigned)at.row / 4);
            else if (!beforehand)
                copy_one(arrived, A_BYTES, rows, map_a, at.k, at.row);
            wait_barrier(stage + EMPTY, (unit / STAGES + 1) % 2);
            if (beforehand && !MOVE_QUADS) {
                copy_tile_and_halves(stage + FULL, A_BYTES + 2 * B_BYTES, at.k, stage, map_a, at.row, half, map_b, at.col,
                                     half + B_BYTES, at.col + WARP_N);
            } else {
                copy_halves(stage + FULL, 2 * B_BYTES, at.k, half, map_b, at.col, half + B_BYTES, at.col + WARP_N);
                wait_barrier(arrived, parity);
                parity ^= 1;
                if (beforehand)
                    spread(stage);
                else
                    transpose(stage);
            }
            arrive_warp(stage + FULL);
        }
    }
};
