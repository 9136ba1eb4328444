// y = a x + z: a thread reads and writes four floats at once; the last, ragged four go one by one.

extern "C" __global__ void axpy_vector(int n, float a, const float *x, const float *z, float *y)
{
    int i = (blockIdx.x * 256 + threadIdx.x) * 4;
    if (i + 3 < n) {
        float4 p = *reinterpret_cast<const float4 *>(x + i);
        float4 q = *reinterpret_cast<const float4 *>(z + i);
        float4 r = {a * p.x + q.x, a * p.y + q.y, a * p.z + q.z, a * p.w + q.w};
        *reinterpret_cast<float4 *>(y + i) = r;
    } else {
        for (; i < n; i++) y[i] = a * x[i] + z[i];
    }
}
