// Which tile of C a block computes.
//
// GROUP 0 takes the grid as it is: blocks are numbered along the rows of tiles. GROUP g makes consecutive blocks
// walk down g rows of tiles before they step to the next column, so that they share one tile of B and g of A: their
// reads may then meet in L2. The last group has what rows are left.
#pragma once

struct TilePosition {
    int row, col;
};

__device__ __forceinline__ TilePosition tile_position()
{
#if GROUP == 0
    return {(int)blockIdx.y, (int)blockIdx.x};
#else
    const int rows = gridDim.y, cols = gridDim.x;
    const int block = blockIdx.y * cols + blockIdx.x;
    const int first_row = block / (GROUP * cols) * GROUP;
    const int height = min(GROUP, rows - first_row);
    const int in_group = block - first_row * cols;
    return {first_row + in_group % height, in_group / height};
#endif
}
