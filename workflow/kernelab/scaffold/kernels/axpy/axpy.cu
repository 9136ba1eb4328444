// y = a x + z: neighbouring threads take neighbouring elements, so that a warp's accesses coalesce.
#ifndef ELEMENTS
#define ELEMENTS 1 // elements per thread, a block apart
#endif

extern "C" __global__ void axpy(int n, float a, const float *x, const float *z, float *y)
{
    int start = blockIdx.x * 256 * ELEMENTS + threadIdx.x;
#pragma unroll
    for (int e = 0; e < ELEMENTS; e++) {
        int i = start + e * 256;
        if (i < n) y[i] = a * x[i] + z[i];
    }
}
