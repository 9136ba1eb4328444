// Helpers of bench.py.

// Keeps the GPU busy while the host puts what is to be timed into the queue.
extern "C" __global__ void spin(long long cycles)
{
    const long long start = clock64();
    while (clock64() - start < cycles)
        ;
}

// different[0] counts elements out of tolerance (NaN is), different[1] holds the bits of the largest difference.
extern "C" __global__ void cmp(const float *a, const float *b, unsigned *different, int n)
{
    unsigned bad = 0;
    float largest = 0.0f;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
        const float difference = fabsf(a[i] - b[i]);
        if (!(difference <= 1e-3f + 1e-3f * fabsf(b[i])))
            bad++;
        largest = fmaxf(largest, difference);
    }
    if (bad)
        atomicAdd(different, bad);
    atomicMax(different + 1, __float_as_uint(largest));
}
