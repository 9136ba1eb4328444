// Triad, scalar: a thread takes one element, then the one a whole grid further on.
//
// Every warp reads and writes 128 consecutive bytes at a time, so nothing is wasted; what limits it is how many loads
// are in flight. STEPS is how many elements a thread takes, and NT how many threads share a block.

#ifndef NT
#define NT 256 // threads per block
#endif
#ifndef STEPS
#define STEPS 4 // steps of the grid that each thread makes
#endif

extern "C" __global__ void __launch_bounds__(NT)
triad(int N, float s, float *__restrict__ a, const float *__restrict__ b, const float *__restrict__ c)
{
    const size_t first = (size_t)blockIdx.x * NT + threadIdx.x, stride = (size_t)gridDim.x * NT;

    #pragma unroll
    for (int step = 0; step < STEPS; step++) {
        const size_t i = first + step * stride;
        if (i < N)
            a[i] = b[i] + s * c[i];
    }
}
