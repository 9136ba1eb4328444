// Blocks that stay: one per SM, each working through a list of k-tiles that may belong to several tiles of C. Rungs 21 on.
//
// The list: `waves` whole tiles of C, one in every grid's worth of tiles, then an equal share of the k-tiles of the tiles that are
// left (stream-K), so that all blocks end together. A share may begin and end inside a tile of C; then its first piece, if it does not
// begin with k = 0, is handed over to the block that has the tile's beginning (hand_over.cuh). That block waits for blocks of
// higher schedule numbers, which are lower block indices: they start no later, so the wait ends even where not all blocks fit.
//
// The ring of rung 20 runs on across tiles of C. It has one stage per warp, and a warp only ever fills its own; a stage holds
// its tile of A, the two halves of its tile of B, and its barriers. Everything that the loop needs is then an address or
// two, which move on by one stage. Needs BK, POLL_AT, FILL_AT, AHEAD, TM = 16 and TN = 8.
#pragma once
#include "hand_over.cuh"
#include "interleaved_tile.cuh"
#include "mbarrier.cuh"
#include "tma.cuh"

constexpr int BM = 256, BN = 128;
constexpr unsigned WARPS = NT / 32, STAGES = WARPS;
static_assert(NT == 256 && WARP_M == 64 && WARP_N == 64, "4 x 2 warp tiles make a block's tile");
static_assert(BK % 2 == 0 && POLL_AT < BK - 1 && FILL_AT < BK && AHEAD < STAGES, "all happens inside a stage");

constexpr unsigned A_BYTES = 4 * BM * BK, B_BYTES = 4 * WARP_N * BK; // B_BYTES: of one half
constexpr unsigned FULL = A_BYTES + 2 * B_BYTES, EMPTY = FULL + 8;     // where a stage has its barriers
constexpr unsigned STAGE_BYTES = (EMPTY + 8 + 127) / 128 * 128;
constexpr unsigned RING_BYTES = STAGES * STAGE_BYTES;
static_assert(A_BYTES % 128 == 0 && B_BYTES % 128 == 0, "TMA writes to multiples of 128 bytes");

// The same value for a whole warp, and ptxas knows it: it then uses its uniform registers and branches.
__device__ __forceinline__ int uniform(int value)
{
    return __shfl_sync(ALL_LANES, value, 0);
}

// The value, as something that ptxas cannot compute again: left alone, it would do so in every round of the loop.
__device__ __forceinline__ unsigned keep(unsigned value)
{
    return __shfl_sync(ALL_LANES, value, threadIdx.x % 32);
}

struct Unit {
    int tile; // of C
    int k;    // k-tile of it
};

struct Schedule {
    int tiles_across, k_tiles; // tiles of C side by side; k-tiles in each
    int block, blocks;
    int waves;
    int first_shared;  // first tile of C whose k-tiles are shared out
    int begin, shared; // this block's share of them: where it begins, counted from first_shared, and how many
    int units;         // k-tiles of this block in all

    __device__ __forceinline__ Schedule(int M, int N, int K)
    {
        tiles_across = (N + BN - 1) / BN;
        k_tiles = (K + BK - 1) / BK;
        blocks = gridDim.x;
        block = blocks - 1 - blockIdx.x;
        const int tiles = tiles_across * ((M + BM - 1) / BM);
        waves = tiles / blocks;
        first_shared = waves * blocks;
        begin = uniform(share_begin(block));
        shared = uniform(share_begin(block + 1)) - begin;
        units = waves * k_tiles + shared;
    }

    // Less than one tile of C per block is left, so 32 bits are enough where one tile's number of k-tiles times blocks is.
    __device__ __forceinline__ int share_begin(int block_number) const
    {
        const int tiles = tiles_left() * k_tiles;
        const int more = tiles % blocks;
        return block_number * (tiles / blocks) + (block_number < more ? block_number : more);
    }

    __device__ __forceinline__ int tiles_left() const { return 0; }
};
