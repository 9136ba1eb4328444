// Which k-tiles a persistent block works on (stream-K).
//
// First `waves` whole tiles of C: block b has tile b, b + blocks, b + 2*blocks, ... Then an equal share of the
// k-tiles of the tiles that are left, fewer than blocks, so that all blocks end together. A share may begin and end
// inside a tile; its first piece, if it does not begin with k = 0, goes over to the block that has the tile's
// beginning (hand_over.cuh). That block waits for blocks of higher numbers, which are given to lower block indices:
// those start no later, so that the wait has an end even where not all blocks are on the card at once. Needs BM, BN,
// BK and SMS, the number of blocks.
//
// SHARED_TILES 1 shares out the k-tiles of all tiles of C, each block a run of its own: the blocks are then at different
// k at any time, and come to the ends of their tiles one after the other. SHARED_TILES 2 shares out those of the last whole
// wave, too: a share is then longer than a tile, so that what a block needs from others was handed over long ago.
#pragma once
#include "mbarrier.cuh"

// The same value for all lanes of a warp, and ptxas knows it: it uses its uniform registers and branches for it.
__device__ __forceinline__ int uniform(int value)
{
    return __shfl_sync(ALL_LANES, value, 0);
}

struct Unit {
    int tile;   // of C
    int k_tile; // of it
};

struct Schedule {
    static constexpr int blocks = SMS;
    int block;
    int across;        // tiles of C side by side
    int k_tiles;       // in a tile of C
    int waves;         // whole tiles of C for this block
    int first_shared;  // tile of C from which on k-tiles are shared out
    int shared_units;  // k-tiles that are shared out, over all blocks
    int begin;         // this block's share of them, counted from the first
    int units;         // k-tiles of this block in all

    __device__ __forceinline__ Schedule(int M, int N, int K)
    {
        block = blocks - 1 - blockIdx.x;
        across = (N + BN - 1) / BN;
        k_tiles = (K + BK - 1) / BK;
        const int tiles = across * ((M + BM - 1) / BM);
        waves = SHARED_TILES == 1 ? 0 : tiles / blocks - (SHARED_TILES == 2 && tiles >= blocks);
        first_shared = waves * blocks;
        shared_units = (tiles - first_shared) * k_tiles;
        begin = uniform(share_begin(block));
        units = waves * k_tiles + uniform(share_begin(block + 1)) - begin;
    }

    __device__ __forceinline__ int share_begin(int b) const
    {
        const int more = shared_units % blocks;
        return b * (shared_units / blocks) + (b < more ? b : more);
    }

    // Number n of the block's list.
    __device__ __forceinline__ Unit unit(int n) const
    {
        if (n < waves * k_tiles)
            return {block + n / k_tiles * blocks, n % k_tiles};
        const int at = begin + n - waves * k_tiles;
        return {first_shared + at / k_tiles, at % k_tiles};
    }

    // Does another block have k-tiles of this tile of C, when it is the next in line?
    __device__ __forceinline__ bool has_piece_of(int b, int tile) const
    {
        return uniform(share_begin(b)) < (tile - first_shared + 1) * k_tiles;
    }

    __device__ __forceinline__ int row(int tile) const { return tile / across * BM; }
    __device__ __forceinline__ int col(int tile) const { return tile % across * BN; }
};

// Walks along the block's list, for who copies. Without a division on the way: those would be a hundred instructions,
// and in rung 21 they would lie in the middle of the loop.
struct Walk {
    int row, col, k; // where the k-tile lies
    int whole;       // whole tiles of C, counted from this one on; 0 and below in the shared ones
    int share_row, share_col, share_k;
    int rows_on, cols_on; // from a whole tile to the block's next

    __device__ __forceinline__ Walk(const Schedule &schedule, int unit)
    {
        share_row = uniform(schedule.row(schedule.first_shared + schedule.begin / schedule.k_tiles));
        share_col = uniform(schedule.col(schedule.first_shared + schedule.begin / schedule.k_tiles));
        share_k = uniform(schedule.begin % schedule.k_tiles * BK);
        rows_on = uniform(schedule.row(Schedule::blocks));
        cols_on = uniform(schedule.col(Schedule::blocks));
        whole = schedule.waves;
        row = whole > 0 ? uniform(schedule.row(schedule.block)) : share_row;
        col = whole > 0 ? uniform(schedule.col(schedule.block)) : share_col;
        k = whole > 0 ? 0 : share_k;
        go_on(schedule, unit);
    }

    __device__ __forceinline__ void go_on(const Schedule &schedule, int k_tiles)
    {
        const int depth = schedule.k_tiles * BK, width = schedule.across * BN;
        k += k_tiles * BK;
        #pragma unroll 1
        while (k >= depth) {
            k -= depth;
            whole--;
            if (whole == 0) {
                row = share_row;
                col = share_col;
                k += share_k;
                continue;
            }
            row += whole > 0 ? rows_on : 0;
            col += whole > 0 ? cols_on : BN;
            if (col >= width) {
                col -= width;
                row += BM;
            }
        }
    }
};
