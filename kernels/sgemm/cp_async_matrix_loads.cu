// cp.async ring with matrix loads: operands come from shared memory by ldmatrix, as in rung 25, but on any card since sm_80.
//
// New against rung 17:
// - A load of 16 bytes a lane writes four registers at once, and meanwhile no FFMA issues; ldmatrix writes one after the
//   other, for a third of the price or less on an H200 (docs/frontier.md). A warp tile is 128 x 32 in place of 64 x 64, for
//   lanes stand 8 high and 4 wide (common/matrix_tile.cuh): six loads a k-step as before.
// - ldmatrix deals out columns of B as they lie there, but rows of A only split into the halves of their floats. The kernel
//   that transposes A beforehand splits them, too; for the copies, AT is rows of 16-byte chunks as ever.
// - Rows come in eights. Those past M in the last eight are zeros, and would not matter: a row of A feeds that row of C alone,
//   which is not stored, and the four lanes that exchange sums before they store them have the same rows.
// - No bank conflicts, without padding: ldmatrix passes over shared memory once for each of its four matrices, which is 32
//   bytes in a row of A, or 16 of B, and a warp's copies are 512 bytes in a row. (Four passes a load where rung 17 has two:
//   96 of the 128 cycles in which an SM's FFMAs of a k-step issue.)

#ifndef BM
#define BM 128 // rows of C per block
#endif
#ifndef BN
#define BN 128 // columns of C per block
#endif
#ifndef BK
#define BK 16 // depth of a k-tile
#endif
#ifndef STAGES
#define STAGES 4 // tiles in the ring
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 2 // blocks that must fit on an SM, for __launch_bounds__; 0 leaves it to ptxas
#endif
#ifndef FFMA_ORDER
#define FFMA_ORDER 1 // rows of the thread tile one after the other (0), or every other one backwards (1)
#endif

constexpr int TM = 16, TN = 8;

#include "common/guarded.cuh"
#include "common/matrix_tile.cuh"
#include "common/transpose_halves.cuh"

// Operands of a k from a stage: 32 bits of each of four matrices a lane. It names a row of one of them, not its own.
constexpr int A_GROUP = 8;

__device__ __forceinline__ int a_of_lane()
{
    return (int)halves_of_lane() / 4 - lane_row();
}

__device__ __forceinline__ int b_of_lane()
{
    return (int)words_of_lane() / 4 - lane_col();
}

__device__ __forceinline__ void load_a(float *a, const float *from)
{
    #pragma unroll
    for (int m = 0; m < TM; m += 4)
        load_halves(a + m, shared_address(from + 8 * m));
}

__device__ __forceinline__ void load_b(float *b, const float *from)
{
    #pragma unroll
    for (int n = 0; n < TN; n += 4)
        load_words(b + n, shared_address(from + 4 * n));
}

#include "common/cp_async_ring.cuh"
