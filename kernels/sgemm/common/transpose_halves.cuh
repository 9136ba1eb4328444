// AT = A transposed, every eight floats of a k split into halves, as matrix_tile.cuh wants it: 16 bytes of their lower halves,
// then 16 of the upper ones. The time it takes counts.
//
// A is M x K; AT is K x ld floats with ld = M rounded up to a multiple of 8. Rows past M in the last eight are zeros. A block
// takes 64 x 64 elements through shared memory, as transpose.cuh does; a thread writes words, halves of two neighbouring rows.
#pragma once

extern "C" __global__ void __launch_bounds__(256) transpose_halves(int M, int K, const float *__restrict__ A,
                                                                   unsigned *__restrict__ AT)
{
    constexpr int SIDE = 64, AT_ONCE = 256 / SIDE;
    __shared__ unsigned tile[SIDE][SIDE + 1]; // a column more, for rows in different banks
    const int ld = (M + 7) / 8 * 8;
    const int row = blockIdx.y * SIDE, k = blockIdx.x * SIDE;
    const int across = threadIdx.x % SIDE, down = threadIdx.x / SIDE;

    #pragma unroll
    for (int i = down; i < SIDE; i += AT_ONCE)
        if (row + i < ld && k + across < K)
            tile[i][across] = row + i < M ? __float_as_uint(A[(size_t)(row + i) * K + k + across]) : 0;
    __syncthreads();

    const int first = across / 8 * 8 + across % 4 * 2;        // of the two rows
    const unsigned halves = across % 8 < 4 ? 0x5410 : 0x7632; // lower or upper
    #pragma unroll
    for (int i = down; i < SIDE; i += AT_ONCE)
        if (k + i < K && row + across < ld)
            AT[(size_t)(k + i) * ld + row + across] = __byte_perm(tile[first][i], tile[first + 1][i], halves);
}
