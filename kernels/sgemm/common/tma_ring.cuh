// A ring of STAGES k-tiles in shared memory that TMA copies fill, for rungs 18 to 20: one block computes one tile of
// C.
//
// Every stage has two barriers. `full` is told of the bytes that are copied and lets the warps in when all have come;
// at `empty` every warp arrives when it has read its last, and so lets the next copy in. There is no __syncthreads()
// in the loop. Needs BM, BN, BK, STAGES, AHEAD, NT and the thread tile. A is transposed beforehand: AT is K x M.
#pragma once
#include "interleaved_tile.cuh"
#include "mbarrier.cuh"
#include "tma.cuh"

static_assert((STAGES & (STAGES - 1)) == 0 && AHEAD < STAGES, "stages are counted by masks, and a copy needs a free one");

constexpr unsigned WARPS = NT / 32;
constexpr unsigned A_BYTES = 4 * BK * BM, B_BYTES = 4 * BK * BN;
static_assert(A_BYTES % 128 == 0 && B_BYTES % 128 == 0, "TMA writes to multiples of 128 bytes");

struct Ring {
    unsigned a, b;        // stages of A and of B
    unsigned full, empty; // their barriers, 8 bytes each
};

// By the whole block.
__device__ __forceinline__ Ring make_ring(const void *shared)
{
    Ring ring;
    ring.a = shared_address(shared);
    ring.b = ring.a + STAGES * A_BYTES;
    ring.full = ring.b + STAGES * B_BYTES;
    ring.empty = ring.full + STAGES * 8;
    if (threadIdx.x == 0) {
        for (unsigned stage = 0; stage < STAGES; stage++) {
            init_barrier(ring.full + stage * 8, 1); // who asks for the copies
            init_barrier(ring.empty + stage * 8, WARPS);
        }
        publish_barriers();
    }
    __syncthreads();
    return ring;
}

// By a whole warp: asks for k-tile number `tile` of the tile of C at row, col, once its stage is free.
__device__ __forceinline__ void fill_stage(const Ring &ring, unsigned tile, const TensorMap &map_a, const TensorMap &map_b,
                                           int row, int col)
{
    const unsigned stage = tile % STAGES;
    if (tile >= STAGES)
        wait_barrier(ring.empty + stage * 8, (tile / STAGES + 1) % 2);
    copy_tiles(ring.full + stage * 8, A_BYTES + B_BYTES, ring.a + stage * A_BYTES, map_a, row, tile * BK,
               ring.b + stage * B_BYTES, map_b, col, tile * BK);
}

// What k-step `dot` of a stage needs; from_a and from_b point at the thread's first row and column in it.
__device__ __forceinline__ void load_fragments(float *a, float *b, unsigned from_a, unsigned from_b, int dot)
{
    #pragma unroll
    for (int n = 0; n < TN; n += 4)
        load_shared4(b + n, from_b + 4 * (dot * BN + col_offset(n)));
    #pragma unroll
    for (int m = 0; m < TM; m += 4)
        load_shared4(a + m, from_a + 4 * (dot * BM + row_offset(m)));
}
