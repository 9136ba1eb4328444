// Blocks that stay: one per SM, each working through a list of k-tiles that may belong to several tiles of C. Rungs
// 21 to 25.
//
// The ring of rung 20 runs on across tiles of C. A stage holds its tile of A, the two halves of its tile of B and its
// barriers, so all that the loop needs is an address that moves on by one stage. Who fills the stages is the rung's
// choice (a Feeder), and how operands come from them (quad_operands.cuh or matrix_operands.cuh, included first). Needs BK,
// POLL_AT and the thread tile of 16 x 8; NT counts the threads that multiply.
//
// QUAD_ORDER, LOAD_ORDER, A_LATE, RELEASE_AT, PARTIALS and READ_ROWS change nothing that is computed, only the order of
// instructions; ptxas answers each with another schedule and another choice of registers, and the times lie points apart.
#pragma once
#include "hand_over.cuh"
#include "schedule.cuh"
#include "tma.cuh"

#ifndef A_LATE
#define A_LATE 0 // rows of the next row quad after which a quad of a is read for the next k-step
#endif
static_assert(A_LATE == 0 || (QUAD_ORDER != 4 && RELEASE_AT == 0), "read before it is wanted, and while the stage is kept");

constexpr unsigned WARPS = NT / 32, STAGES = WARPS;
constexpr int HALF_N = BN / 2; // columns of each half of a tile of B
constexpr unsigned WARPS_ACROSS = BN / WARP_N, WARPS_A_HALF = HALF_N / WARP_N;
static_assert(NT == 256 && BM == 256 && BN == 128 && HALF_N % WARP_N == 0, "8 warp tiles make a block's tile");
static_assert(BK % 2 == 0 && POLL_AT < BK, "two sets of b take turns; the poll is inside a stage");

constexpr int A_PITCH = BM + A_PAD;                                   // from one k of the tile of A to the next
constexpr unsigned A_BYTES = 4 * BM * BK, B_BYTES = 4 * HALF_N * BK;  // B_BYTES: of one half
constexpr unsigned B_AT = (4 * A_PITCH * BK + 127) / 128 * 128;       // where a stage has its tile of B
constexpr unsigned FULL = B_AT + 2 * B_BYTES, EMPTY = FULL + 8;       // and its barriers
constexpr unsigned STAGE_BYTES = (EMPTY + 8 + 127) / 128 * 128;
constexpr unsigned RING_BYTES = STAGES * STAGE_BYTES;
static_assert(A_BYTES % 128 == 0 && B_BYTES % 128 == 0, "TMA writes to multiples of 128 bytes");

// The value, as something that ptxas cannot compute again: left alone, it would do so in every round of the loop.
__device__ __forceinline__ unsigned keep(unsigned value)
{
    return __shfl_sync(ALL_LANES, value, threadIdx.x % 32);
}

// By the whole block. A stage is full after so many arrivals. Returns the address of the ring.
__device__ __forceinline__ unsigned make_ring(const void *shared, unsigned fillers = 1)
{
    const unsigned ring = uniform(shared_address(shared));
    if (threadIdx.x == 0) {
        for (unsigned stage = ring; stage < ring + RING_BYTES; stage += STAGE_BYTES) {
            init_barrier(stage + FULL, fillers);
            init_barrier(stage + EMPTY, WARPS);
        }
        publish_barriers();
    }
    __syncthreads();
    return ring;
}

__device__ __forceinline__ constexpr int row_quad(int dot, int i)
{
    constexpr int ORDERS[4][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {0, 2, 1, 3}, {1, 0, 3, 2}};
    return ORDERS[QUAD_ORDER == 4 ? dot % 2 : QUAD_ORDER][i];
}

// The row of a k-step before which a quad of b is read for the next one.
__device__ __forceinline__ constexpr int b_row(int quad)
{
    constexpr int ROWS[5][2] = {{0, 0}, {4, 4}, {4, 8}, {2, 6}, {6, 10}};
    return ROWS[LOAD_ORDER][quad];
}

#ifndef UNGUARDED_INSIDE
#define UNGUARDED_INSIDE 0 // whether tiles that lie inside C are stored without a test for each 16 bytes
#endif

// Feeder: what the warp does besides multiplying.
// - run_length(left): how many of the k-tiles that are left of a tile of C to work on before it is asked again.
// - due(stage): has it to fill a stage while this one is worked on?   fill(): does that.
template <class Feeder>
__device__ __forceinline__ void persistent(const Schedule &schedule, unsigned ring, int M, int N, float alpha, float beta,
                                           float *C, float *partials, unsigned *flags, unsigned epoch, Feeder &feeder)
{
    const unsigned warp = uniform(threadIdx.x / 32);
    const int thread_row = warp / WARPS_ACROSS * WARP_M + lane_row(), thread_col = warp % WARPS_ACROSS * WARP_N + lane_col();
    const unsigned from_a = keep(a_of_lane(warp / WARPS_ACROSS * WARP_M));
    const unsigned from_b = keep(B_AT + warp % WARPS_ACROSS / WARPS_A_HALF * B_BYTES + b_of_lane(warp % WARPS_A_HALF * WARP_N));

    const unsigned last_stage = uniform(ring + RING_BYTES - STAGE_BYTES);
    unsigned stage = uniform(ring), parity = 0; // being worked on; parity is that of the next one's FULL
    for (int unit = 0; unit < schedule.units;) {
        const Unit at = schedule.unit(unit);
        const int k_tiles = uniform(min(schedule.k_tiles - at.k_tile, schedule.units - unit));
        unit += k_tiles;

        Accumulators acc = {};
        float a[TM], b[2][TN]; // of this k-step; b also of the next
        wait_barrier(stage + FULL, parity);
        #pragma unroll
        for (int n = 0; n < TN; n += 4)
            load_b4(b[0], stage + from_b, n);
        #pragma unroll
        for (int m = 0; m < TM; m += 4)
            load_a4(a, stage + from_a, m);

        for (int left = k_tiles; left > 0;) {
            int run = feeder.run_length(left);
            left -= run;
            #pragma unroll 1
            do {
                const bool wrap = stage == last_stage;
                const unsigned next = wrap ? ring : stage + STAGE_BYTES;
                parity ^= wrap;
                bool next_ready = true;
                #pragma unroll
                for (int dot = 0; dot < BK; dot++) {
                    if (dot == Feeder::FILL_STEP && feeder.due(stage))
                        feeder.fill();
                    if (dot == POLL_AT)
                        next_ready = poll_barrier(next + FULL, parity);
                    if (dot == BK - 1) {
                        // Without a step of its own for filling, one branch for all that is seldom.
                        const bool fill_now = Feeder::FILL_STEP < 0 && feeder.due(stage);
                        if (!__all_sync(ALL_LANES, next_ready && !fill_now)) {
                            if (fill_now)
                                feeder.fill();
                            wait_barrier(next + FULL, parity);
                        }
                        if (RELEASE_AT == 1)
                            arrive_warp(stage + EMPTY);
                    }

                    // A quad of a is read for the next k-step as soon as this one is done with it.
                    const unsigned step_a = dot == BK - 1 ? next + from_a : stage + from_a + 4 * (dot + 1) * A_PITCH;
                    const unsigned step_b = dot == BK - 1 ? next + from_b : stage + from_b + 4 * (dot + 1) * HALF_N;
                    #pragma unroll
                    for (int i = 0; i < TM / 4; i++) {
                        const int quad = row_quad(dot, i);
                        #pragma unroll
                        for (int row = 4 * i; row < 4 * i + 4; row++) {
                            #pragma unroll
                            for (int n = 0; n < TN; n += 4)
                                if (row == b_row(n / 4))
                                    load_b4(b[(dot + 1) % 2], step_b, n);
                            if (A_LATE > 0 && row % 4 == A_LATE && row > 4)
                                load_a4(a, step_a, 4 * row_quad(dot, i - 1));
                            if (A_LATE > 0 && row == A_LATE && dot > 0)
                                load_a4(a, stage + from_a + 4 * dot * A_PITCH, 4 * row_quad(dot - 1, TM / 4 - 1));
                            #pragma unroll
                            for (int n = 0; n < TN; n++) {
                                const int m = 4 * quad + row % 4, column = ffma_column(FFMA_ORDER == 2 ? row + dot : row, n);
                                acc[m][column] += a[m] * b[dot % 2][column];
                            }
                        }
                        if (A_LATE == 0 || (dot == BK - 1 && i == TM / 4 - 1))
                            load_a4(a, step_a, 4 * quad);
                    }
                }
                if (RELEASE_AT == 0)
                    arrive_warp(stage + EMPTY);
                stage = next;
            } while (--run);
        }

        if (at.k_tile > 0) {
            hand_over(acc, partials + (size_t)schedule.block * BM * BN, flags + schedule.block, epoch, alpha);
            continue;
        }
        const bool shared = k_tiles < schedule.k_tiles;
        if (shared) {
            scale_partials(acc, alpha);
            for (int other = schedule.block + 1; schedule.has_piece_of(other, at.tile); other++)
                take_over(acc, partials + (size_t)other * BM * BN, flags + other, epoch);
        }
        const int row = schedule.row(at.tile), col = schedule.col(at.tile);
        const float scale = PARTIALS_SCALED && shared ? 1.0f : alpha;
        if (UNGUARDED_INSIDE && beta == 0.0f && uniform(row + BM <= M && col + BN <= N))
            store_inside(acc, C, N, row + thread_row, col + thread_col, scale);
        else
            store_quads(acc, C, M, N, row + thread_row, col + thread_col, scale, beta);
    }
}
