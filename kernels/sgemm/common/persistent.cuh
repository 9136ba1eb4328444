// Blocks that stay: one per SM, each working through a list of k-tiles that may belong to several tiles of C. Rungs
// 21 and 22.
//
// The ring of rung 20 runs on across tiles of C. It has one stage per warp, and a warp only ever fills its own. A
// stage holds its tile of A, the two halves of its tile of B and its barriers, so all that the loop needs is an
// address that moves on by one stage. Needs BK, POLL_AT, AHEAD and the thread tile of 16 x 8.
#pragma once
#include "hand_over.cuh"
#include "schedule.cuh"
#include "tma.cuh"

constexpr unsigned WARPS = NT / 32, STAGES = WARPS;
static_assert(NT == 256 && BM == 256 && BN == 128 && WARP_N == 64, "4 x 2 warp tiles make a block's tile");
static_assert(BK % 2 == 0 && POLL_AT < BK && AHEAD < STAGES, "all happens inside a stage");

constexpr unsigned A_BYTES = 4 * BM * BK, B_BYTES = 4 * WARP_N * BK; // B_BYTES: of one half
constexpr unsigned FULL = A_BYTES + 2 * B_BYTES, EMPTY = FULL + 8;     // where a stage has its barriers
constexpr unsigned STAGE_BYTES = (EMPTY + 8 + 127) / 128 * 128;
constexpr unsigned RING_BYTES = STAGES * STAGE_BYTES;
static_assert(A_BYTES % 128 == 0 && B_BYTES % 128 == 0, "TMA writes to multiples of 128 bytes");

// The value, as something that ptxas cannot compute again: left alone, it would do so in every round of the loop.
__device__ __forceinline__ unsigned keep(unsigned value)
{
    return __shfl_sync(ALL_LANES, value, threadIdx.x % 32);
}

// By the whole block. Returns the address of the ring.
__device__ __forceinline__ unsigned make_ring(const void *shared)
{
    const unsigned ring = uniform(shared_address(shared));
    if (threadIdx.x == 0) {
        for (unsigned stage = ring; stage < ring + RING_BYTES; stage += STAGE_BYTES) {
            init_barrier(stage + FULL, 1); // who asks for the copies
            init_barrier(stage + EMPTY, WARPS);
        }
        publish_barriers();
    }
    __syncthreads();
    return ring;
}

// What a warp needs to fill its stage, every STAGES k-tiles. Its turn comes AHEAD stages before the k-tile is worked
// on.
struct Producer {
    unsigned stage, turn; // the stage that the warp fills, and the one that is worked on when it does
    unsigned parity;      // of the stage's EMPTY
    int unit;             // number of the k-tile that comes next, in the block's list
    int row, col, k;      // where it lies

    __device__ __forceinline__ Producer(const Schedule &schedule, unsigned ring, unsigned warp)
    {
        stage = uniform(ring + warp * STAGE_BYTES);
        turn = uniform(ring + (warp - AHEAD) % STAGES * STAGE_BYTES);
        parity = 1;
        unit = warp;
        locate(schedule);
    }

    __device__ __forceinline__ void locate(const Schedule &schedule)
    {
        const Unit at = schedule.unit(unit);
        row = schedule.row(at.tile);
        col = schedule.col(at.tile);
        k = at.k_tile * BK;
    }

    __device__ __forceinline__ void fill(const TensorMap &map_a, const TensorMap &map_b)
    {
        copy_tile_and_halves(stage + FULL, A_BYTES + 2 * B_BYTES, k, stage, map_a, row, stage + A_BYTES, map_b, col,
                             stage + A_BYTES + B_BYTES, col + WARP_N);
    }

    __device__ __forceinline__ void advance(const Schedule &schedule)
    {
        unit += STAGES;
        k += STAGES * BK;
        if (k >= schedule.k_tiles * BK)
            locate(schedule);
    }
};

// Background: what the block does besides, a slice between every run_length() k-tiles (rung 22). Nothing, here.
struct NoBackground {
    __device__ __forceinline__ void before_copies(int) {}
    __device__ __forceinline__ int run_length(int k_tiles) { return k_tiles; }
};

template <class Background>
__device__ __forceinline__ void persistent(const Schedule &schedule, unsigned ring, int M, int N, float alpha,
                                           const TensorMap &map_a, const TensorMap &map_b, float beta, float *C,
                                           float *partials, unsigned *flags, unsigned epoch, Background background)
{
    const unsigned warp = uniform(threadIdx.x / 32);
    const int thread_row = warp / 2 * WARP_M + lane_row(), thread_col = warp % 2 * WARP_N + lane_col();
    const unsigned from_a = keep(4 * thread_row), from_b = keep(A_BYTES + warp % 2 * B_BYTES + 4 * lane_col());

    // Filled ahead, and so also when it is no longer needed, is one k-tile past the last: the reads ahead need
    // something there.
    Producer producer(schedule, ring, warp);
    background.before_copies(producer.unit);
    if (warp < AHEAD) {
        if (producer.unit <= schedule.units)
            producer.fill(map_a, map_b);
        producer.advance(schedule);
        background.before_copies(producer.unit);
        producer.parity = 0;
    }

    const unsigned last_stage = uniform(ring + RING_BYTES - STAGE_BYTES);
    unsigned stage = uniform(ring), parity = 0; // being worked on; parity is that of the next one's FULL
    for (int unit = 0; unit < schedule.units;) {
        const Unit at = schedule.unit(unit);
        const int k_tiles = uniform(min(schedule.k_tiles - at.k_tile, schedule.units - unit));
        unit += k_tiles;

        Accumulators acc = {};
        float a[TM], b[2][TN]; // of this k-step; b also of the next
        auto load_a = [&](unsigned from, int m) { load_shared4(a + m, from + 4 * row_offset(m)); };
        auto load_b = [&](unsigned from, int to) {
            #pragma unroll
            for (int n = 0; n < TN; n += 4)
                load_shared4(b[to] + n, from + 4 * col_offset(n));
        };
        wait_barrier(stage + FULL, parity);
        load_b(stage + from_b, 0);
        #pragma unroll
        for (int m = 0; m < TM; m += 4)
            load_a(stage + from_a, m);

        for (int left = k_tiles; left > 0;) {
            int run = background.run_length(left);
            left -= run;
            #pragma unroll 1
            do {
                const bool wrap = stage == last_stage;
                const unsigned next = wrap ? ring : stage + STAGE_BYTES;
                parity ^= wrap;
                bool next_ready = true;
                #pragma unroll
                for (int dot = 0; dot < BK; dot++) {
                    if (dot == POLL_AT)
                        next_ready = poll_barrier(next + FULL, parity);
                    // One branch for all that is seldom: the warp's turn to fill its stage, or a next stage that is
                    // late.
                    if (dot == BK - 1 && !__all_sync(ALL_LANES, next_ready && stage != producer.turn)) {
                        if (stage == producer.turn) {
                            if (producer.unit <= schedule.units) {
                                wait_barrier(producer.stage + EMPTY, producer.parity);
                                producer.fill(map_a, map_b);
                            }
                            producer.parity ^= 1;
                            producer.advance(schedule);
                            background.before_copies(producer.unit);
                        }
                        wait_barrier(next + FULL, parity);
                    }

                    // A quad of a is read for the next k-step as soon as this one is done with it.
                    const unsigned step_a = dot == BK - 1 ? next + from_a : stage + from_a + 4 * (dot + 1) * BM;
                    const unsigned step_b = dot == BK - 1 ? next + from_b : stage + from_b + 4 * (dot + 1) * WARP_N;
                    load_b(step_b, (dot + 1) % 2);
                    #pragma unroll
                    for (int m = 0; m < TM; m++) {
                        #pragma unroll
                        for (int n = 0; n < TN; n++)
                            acc[m][ffma_column(m, n)] += a[m] * b[dot % 2][ffma_column(m, n)];
                        if (m % 4 == 3)
                            load_a(step_a, m - 3);
                    }
                }
                arrive_warp(stage + EMPTY);
                stage = next;
            } while (--run);
        }

        if (at.k_tile > 0) {
            hand_over(acc, partials + (size_t)schedule.block * BM * BN, flags + schedule.block, epoch);
            continue;
        }
        if (k_tiles < schedule.k_tiles)
            for (int other = schedule.block + 1; schedule.has_piece_of(other, at.tile); other++)
                take_over(acc, partials + (size_t)other * BM * BN, flags + other, epoch);
        store_quads(acc, C, M, N, schedule.row(at.tile) + thread_row, schedule.col(at.tile) + thread_col, alpha, beta);
    }
}
