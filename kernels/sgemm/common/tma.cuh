// Copies of whole tiles by the tensor memory accelerator (TMA, sm_90): one thread asks, the hardware does the rest.
//
// A tensor map, made by the host, says where a matrix lies and how large its tiles are; coordinates are (column, row)
// in elements. What lies outside the matrix arrives as zeros and counts as bytes all the same, so edges need no code
// here.
#pragma once

// 128 opaque bytes, passed to the kernel by value as a __grid_constant__.
struct __align__(64) TensorMap {
    unsigned char bytes[128];
};

// The map is in the card's descriptor cache before the first copy asks for it. By one thread.
__device__ __forceinline__ void prefetch_map(const TensorMap &map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// By a whole warp: one lane tells the barrier how many bytes to expect and asks for a tile of A and one of B. All of
// it is one asm statement, so that the choice of a lane is a predicate and not a branch.
__device__ __forceinline__ void copy_tiles(unsigned barrier, unsigned bytes, unsigned to_a, const TensorMap &a, int a_col,
                                           int a_row, unsigned to_b, const TensorMap &b, int b_col, int b_row)
{
    asm volatile("{\n"
                 ".reg .pred chosen;\n"
                 "elect.sync _|chosen, 0xffffffff;\n"
                 "@chosen mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n"
                 "@chosen cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%2], [%3, {%4, %5}], [%0];\n"
                 "@chosen cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%6], [%7, {%8, %9}], [%0];\n"
                 "}" ::"r"(barrier),
                 "r"(bytes), "r"(to_a), "l"(&a), "r"(a_col), "r"(a_row), "r"(to_b), "l"(&b), "r"(b_col), "r"(b_row)
                 : "memory");
}

// The same for a tile of A and the two halves of a tile of B, all of row k of their matrices.
__device__ __forceinline__ void copy_tile_and_halves(unsigned barrier, unsigned bytes, int k, unsigned to_a, const TensorMap &a,
                                                     int a_col, unsigned to_b0, const TensorMap &b, int b0_col,
                                                     unsigned to_b1, int b1_col)
{
    asm volatile("{\n"
                 ".reg .pred chosen;\n"
                 "elect.sync _|chosen, 0xffffffff;\n"
                 "@chosen mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n"
                 "@chosen cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%3], [%4, {%5, %2}], [%0];\n"
                 "@chosen cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%6], [%7, {%8, %2}], [%0];\n"
                 "@chosen cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%9], [%7, {%10, %2}], [%0];\n"
                 "}" ::"r"(barrier),
                 "r"(bytes), "r"(k), "r"(to_a), "l"(&a), "r"(a_col), "r"(to_b0), "l"(&b), "r"(b0_col), "r"(to_b1), "r"(b1_col)
                 : "memory");
}

// The same for the two halves alone.
__device__ __forceinline__ void copy_halves(unsigned barrier, unsigned bytes, int k, unsigned to_b0, const TensorMap &b,
                                            int b0_col, unsigned to_b1, int b1_col)
{
    asm volatile("{\n"
                 ".reg .pred chosen;\n"
                 "elect.sync _|chosen, 0xffffffff;\n"
                 "@chosen mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n"
                 "@chosen cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%3], [%4, {%5, %2}], [%0];\n"
                 "@chosen cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%6], [%4, {%7, %2}], [%0];\n"
                 "}" ::"r"(barrier),
                 "r"(bytes), "r"(k), "r"(to_b0), "l"(&b), "r"(b0_col), "r"(to_b1), "r"(b1_col)
                 : "memory");
}

// The same for a single tile.
__device__ __forceinline__ void copy_one(unsigned barrier, unsigned bytes, unsigned to, const TensorMap &map, int col, int row)
{
    asm volatile("{\n"
                 ".reg .pred chosen;\n"
                 "elect.sync _|chosen, 0xffffffff;\n"
                 "@chosen mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n"
                 "@chosen cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%2], [%3, {%4, %5}], [%0];\n"
                 "}" ::"r"(barrier),
                 "r"(bytes), "r"(to), "l"(&map), "r"(col), "r"(row)
                 : "memory");
}

// A tile of three dimensions, with all of the outermost.
__device__ __forceinline__ void copy_block(unsigned barrier, unsigned bytes, unsigned to, const TensorMap &map, int col, int row)
{
    asm volatile("{\n"
                 ".reg .pred chosen;\n"
                 "elect.sync _|chosen, 0xffffffff;\n"
                 "@chosen mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n"
                 "@chosen cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%2], [%3, {%4, %5, 0}], [%0];\n"
                 "}" ::"r"(barrier),
                 "r"(bytes), "r"(to), "l"(&map), "r"(col), "r"(row)
                 : "memory");
}

// Four floats from shared memory. In PTX, to keep its place among the waits.
__device__ __forceinline__ void load_shared4(float *to, unsigned from)
{
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
                 : "r"(from));
}
