// Spare warps that fill the ring and transpose A on the way. Rungs 23 to 25.
//
// TMA brings the tile of A as it lies in memory, 256 rows of BK, to a place of the warp's own; from there the warp takes it
// to the stage, rearranged: that replaces what a transposition beforehand reads and writes in memory. How it does that
// is the rung's choice (a Way: move_rows.cuh, move_halves.cuh).
//
// TMA cannot copy rows of A that do not start at multiples of 16 bytes (K % 4). Such an A is transposed beforehand.
//
// Four spare warps take the k-tiles in turn. They are never short of time: while the others work on four k-tiles, some
// 13,000 cycles, a mover needs about 1,000 for its own. So they run ahead as far as the ring is free.
#pragma once
#include "matrices.cuh"
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

// The tile of A by ldmatrix, four k of 32 rows at a time, ROWS of its rows apart; store(to, value) takes what a lane has.
template <int ROWS, class Store>
__device__ __forceinline__ void move_matrices(unsigned from, unsigned to, const Store &store)
{
    #pragma unroll
    for (int quad = 0; quad < BK; quad += 4) {
        float v[BM / 32][4];
        #pragma unroll
        for (int i = 0; i < BM / 32; i++)
            load_words(v[i], from + 4 * (ROWS * i * BK + quad));
        #pragma unroll
        for (int i = 0; i < BM / 32; i++)
            store(to + 4 * (quad * A_PITCH + 32 * i), v[i]);
    }
}

// Way: how rows of A come to the stage.
// - copy_rows(arrived, rows, map_a, at): asks TMA for the tile of A.   transpose(rows, stage): takes it to the stage.
// - SPREADS: does an A that was transposed beforehand come by way of the warp's own place, too?   spread(rows, stage): takes
//   that to the stage. Otherwise it is copied straight there.
template <class Way> struct Mover {
    const Schedule &schedule;
    unsigned rows, arrived; // where the tile of A comes to, and the barrier that says it has

    // shared: what follows the ring, a multiple of 128.
    __device__ __forceinline__ Mover(const Schedule &schedule, unsigned shared, unsigned mover)
        : schedule(schedule), rows(uniform(shared + mover * A_BYTES)), arrived(uniform(shared + MOVERS * A_BYTES + mover * 8))
    {
        if (threadIdx.x % 32 == 0) {
            init_barrier(arrived, 1);
            publish_barriers();
        }
        __syncwarp();
    }

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
            if (beforehand && Way::SPREADS)
                copy_one(arrived, A_BYTES, rows, map_a, at.row, at.k);
            else if (!beforehand)
                Way::copy_rows(arrived, rows, map_a, at);
            wait_barrier(stage + EMPTY, (unit / STAGES + 1) % 2);
            if (beforehand && !Way::SPREADS) {
                copy_tile_and_halves(stage + FULL, A_BYTES + 2 * B_BYTES, at.k, stage, map_a, at.row, half, map_b, at.col,
                                     half + B_BYTES, at.col + HALF_N);
            } else {
                copy_halves(stage + FULL, 2 * B_BYTES, at.k, half, map_b, at.col, half + B_BYTES, at.col + HALF_N);
                wait_barrier(arrived, parity);
                parity ^= 1;
                if (beforehand)
                    Way::spread(rows, stage);
                else
                    Way::transpose(rows, stage);
            }
            arrive_warp(stage + FULL);
        }
    }
};
