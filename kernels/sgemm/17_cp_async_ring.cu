// Rung 17, cp.async ring: tiles go from global to shared memory without passing through registers, several in flight.
//
// New against rung 16: a kernel of its own transposes A first, and its time counts. Then tiles of A, as of B, are
// rows of 16-byte chunks that cp.async can copy; no registers are held for them and no stores issue among the FFMAs.
// Shared memory is a ring of STAGES tiles: while one is worked on, the copies of the STAGES - 1 next are under way,
// so that a late one is not waited for. One barrier a tile stays: it says that every warp has left the stage that is
// filled next.

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
#include "common/interleaved_tile.cuh"
#include "common/transpose.cuh"

// Operands of a k from a stage: 16 bytes a lane, four of its own rows of A or columns of B.
constexpr int A_GROUP = 4;

__device__ __forceinline__ int a_of_lane()
{
    return 0;
}

__device__ __forceinline__ int b_of_lane()
{
    return 0;
}

__device__ __forceinline__ void load_a(float *a, const float *from)
{
    #pragma unroll
    for (int m = 0; m < TM; m += 4)
        load_quad(a + m, from + row_offset(m));
}

__device__ __forceinline__ void load_b(float *b, const float *from)
{
    #pragma unroll
    for (int n = 0; n < TN; n += 4)
        load_quad(b + n, from + col_offset(n));
}

#include "common/cp_async_ring.cuh"
