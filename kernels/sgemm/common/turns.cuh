// The warps that multiply also fill the ring, in turns: each owns a stage. Rungs 21 and 22.
#pragma once
#include "quad_operands.cuh"

#include "persistent.cuh"

static_assert(AHEAD < STAGES && FILL_AT < BK, "a copy needs a free stage; all happens inside one");

// What a warp needs to fill its stage, every STAGES k-tiles. Its turn comes AHEAD stages before the k-tile is worked
// on.
struct Producer {
    unsigned stage, turn; // the stage that the warp fills, and the one that is worked on when it does
    unsigned parity;      // of the stage's EMPTY
    int unit;             // number of the k-tile that comes next, in the block's list
    Walk at;              // where it lies

    __device__ __forceinline__ Producer(const Schedule &schedule, unsigned ring, unsigned warp) : at(schedule, warp)
    {
        stage = uniform(ring + warp * STAGE_BYTES);
        turn = uniform(ring + (warp - AHEAD) % STAGES * STAGE_BYTES);
        parity = 1;
        unit = warp;
    }

    __device__ __forceinline__ void copy(const TensorMap &map_a, const TensorMap &map_b)
    {
        copy_tile_and_halves(stage + FULL, A_BYTES + 2 * B_BYTES, at.k, stage, map_a, at.row, stage + A_BYTES, map_b, at.col,
                             stage + A_BYTES + B_BYTES, at.col + HALF_N);
    }

    __device__ __forceinline__ void advance(const Schedule &schedule)
    {
        unit += STAGES;
        at.go_on(schedule, STAGES);
    }
};

// Background: what the block does besides, a slice between every run_length() k-tiles (rung 22). Nothing, here.
struct NoBackground {
    __device__ __forceinline__ void before_copies(int) {}
    __device__ __forceinline__ int run_length(int k_tiles) { return k_tiles; }
};

// The Feeder of persistent.cuh. Filled ahead, and so also when it is no longer needed, is one k-tile past the last:
// the reads ahead need something there.
template <class Background> struct Turns {
    static constexpr int FILL_STEP = FILL_AT;
    const Schedule &schedule;
    const TensorMap &map_a, &map_b;
    Background background;
    Producer producer;

    __device__ __forceinline__ Turns(const Schedule &schedule, unsigned ring, const TensorMap &map_a, const TensorMap &map_b,
                                     const Background &background)
        : schedule(schedule), map_a(map_a), map_b(map_b), background(background),
          producer(schedule, ring, uniform(threadIdx.x / 32))
    {
        this->background.before_copies(producer.unit);
        if (producer.unit < AHEAD) {
            if (producer.unit <= schedule.units)
                producer.copy(map_a, map_b);
            advance();
            producer.parity = 0;
        }
    }

    __device__ __forceinline__ int run_length(int k_tiles) { return background.run_length(k_tiles); }

    __device__ __forceinline__ bool due(unsigned stage) const { return stage == producer.turn; }

    __device__ __forceinline__ void fill()
    {
        if (producer.unit <= schedule.units) {
            wait_barrier(producer.stage + EMPTY, producer.parity);
            producer.copy(map_a, map_b);
        }
        producer.parity ^= 1;
        advance();
    }

    __device__ __forceinline__ void advance()
    {
        producer.advance(schedule);
        background.before_copies(producer.unit);
    }
};
