// Transposition of A in the background of the GEMM: the rows that no block needs for its first tile of C.
//
// The first tiles of C, one a block, need only the rows of A above late_from(); those are transposed beforehand. All
// others can wait until the first tile is done, and that takes a quarter of the time or so, in which memory is all
// but idle. So every warp transposes a 32 x 32 block of A now and then, between two runs of k-tiles: TMA has brought
// it to a scratch place of the warp, the warp writes it to AT from there and asks for the next. Who copies from late
// rows first waits until all warps of all blocks have reported that they are done. Flags are not reset: `reports`
// counts on from call to call, `epoch` times all warps.
//
// A block of scratch has rows of 128 bytes whose 16-byte chunks TMA has exchanged (128-byte swizzle: chunk c of row r
// is at c ^ r % 8), so that the 32 rows of a column of elements lie in 8 banks and not in one. TMA needs rows of A
// that are multiples of 16 bytes: K % 4 == 0.
#pragma once
#include "schedule.cuh"
#include "tma.cuh"

constexpr int SIDE = 32; // of the blocks that are transposed
constexpr unsigned SCRATCH_BYTES = 4 * SIDE * SIDE;
constexpr int SHORT_RUN = 4; // k-tiles; with less between two slices, all is done at the start

struct LateRows {
    const TensorMap &map; // of A itself
    float *AT;
    unsigned *reports;
    unsigned goal;         // of *reports
    int M, K, ld;          // ld: of AT
    int from;              // first late row
    int blocks, blocks_down; // 32 x 32 blocks in all; of them, one below the other in K
    int slice, slices;     // every warp of the grid takes one block a slice
    int slice_warp, slice_warps; // this warp, in the grid
    int run;               // k-tiles between two slices
    int first_tile;        // k-tiles that need no late rows
    unsigned scratch, full;
    unsigned waiting, working;

    __device__ __forceinline__ LateRows(const Schedule &schedule, unsigned shared, unsigned warps, unsigned warp, int M, int K,
                                        const TensorMap &map, float *AT, unsigned *reports, unsigned epoch)
        : map(map), AT(AT), reports(reports), M(M), K(K)
    {
        ld = (M + 3) / 4 * 4;
        from = uniform(late_from(schedule, M, K));
        blocks_down = (K + SIDE - 1) / SIDE;
        blocks = uniform(blocks_down * ((M - from + SIDE - 1) / SIDE));
        slice_warps = schedule.blocks * warps;
        slice_warp = schedule.block * warps + warp;
        slices = uniform((blocks + slice_warps - 1) / slice_warps);
        slice = 0;
        run = uniform(schedule.k_tiles / (2 * slices + 2)); // done after half of the first tile
        first_tile = schedule.k_tiles;
        goal = epoch * slice_warps;
        scratch = uniform(shared + warp * SCRATCH_BYTES);
        full = uniform(shared + warps * SCRATCH_BYTES + warp * 8);
        waiting = working = uniform(blocks > 0);
        if (threadIdx.x % 32 == 0) {
            init_barrier(full, 1);
            publish_barriers();
        }
        __syncwarp();
        if (working) {
            fetch();
            if (run < SHORT_RUN)
                finish();
        }
    }

    // 0 .. M: rows below this one are needed by the first tiles of C, or cannot be copied by TMA.
    __device__ __forceinline__ static int late_from(const Schedule &schedule, int M, int K)
    {
        if (schedule.waves == 0 || K % 4 != 0)
            return M;
        return min(M, ((schedule.blocks - 1) / schedule.across + 1) * BM);
    }

    __device__ __forceinline__ int my_block() const { return slice * slice_warps + slice_warp; }

    __device__ __forceinline__ void fetch()
    {
        const int block = my_block();
        if (block < blocks)
            copy_one(full, SCRATCH_BYTES, scratch, map, block % blocks_down * SIDE, from + block / blocks_down * SIDE);
    }

    // Lane l has row l. One element at a time: few registers are free while the sums of a tile of C are under way.
    __device__ __forceinline__ void flush()
    {
        const int block = my_block();
        if (block < blocks) {
            wait_barrier(full, slice % 2);
            const int lane = threadIdx.x % 32;
            const int row = from + block / blocks_down * SIDE + lane, k = block % blocks_down * SIDE;
            float *to = AT + (size_t)k * ld + row;
            #pragma unroll 4
            for (int i = 0; i < SIDE; i++) {
                const float value = load_shared(scratch + 4 * SIDE * lane + (i / 4 ^ lane % 8) * 16 + i % 4 * 4);
                write_if(row < M && k + i < K, to, value);
                to += ld;
            }
            __syncwarp();
            order_before_copies();
        }
        slice++;
    }

    __device__ __forceinline__ void finish()
    {
        while (slice < slices) {
            flush();
            if (slice < slices)
                fetch();
        }
        working = 0;
        order_before_copies();
        __threadfence();
        __syncwarp();
        asm volatile("{\n"
                     ".reg .pred first;\n"
                     "setp.eq.u32 first, %1, 0;\n"
                     "@first red.release.gpu.global.add.u32 [%0], 1;\n"
                     "}" ::"l"(__cvta_generic_to_global(reports)),
                     "r"(threadIdx.x % 32)
                     : "memory");
    }

    // How many of the k-tiles that are left of a tile of C to work on until the next slice; does this slice.
    __device__ __forceinline__ int run_length(int k_tiles)
    {
        if (!working)
            return k_tiles;
        flush();
        if (slice < slices) {
            fetch();
            return uniform(min(run, k_tiles));
        }
        finish();
        return k_tiles;
    }

    // Before a warp copies number `unit` of its block's list.
    __device__ __forceinline__ void before_copies(int unit)
    {
        if (!waiting || unit < first_tile)
            return;
        unsigned seen;
        do {
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(__cvta_generic_to_global(reports)) : "memory");
        } while (!__all_sync(ALL_LANES, (int)(seen - goal) >= 0));
        order_before_copies();
        waiting = 0;
    }

    // Ordinary writes, ours or those that we have seen, before what TMA reads from here on.
    __device__ __forceinline__ static void order_before_copies() { asm volatile("fence.proxy.async;" ::: "memory"); }

    __device__ __forceinline__ static float load_shared(unsigned from)
    {
        float value;
        asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(from) : "memory");
        return value;
    }

    // A predicate and not a branch, which would leave ptxas in doubt whether the warp is still one.
    __device__ __forceinline__ static void write_if(bool yes, float *to, float value)
    {
        asm volatile("{\n"
                     ".reg .pred yes;\n"
                     "setp.ne.u32 yes, %2, 0;\n"
                     "@yes st.global.f32 [%0], %1;\n"
                     "}" ::"l"(__cvta_generic_to_global(to)),
                     "f"(value), "r"((unsigned)yes)
                     : "memory");
    }
};
