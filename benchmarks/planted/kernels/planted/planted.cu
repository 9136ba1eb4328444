// Work of a known amount: WORK x repeat trips of eight independent FFMAs a thread, and next to nothing else.
//
// Two levels of WORK compile to the same instructions but for the bound of the inner loop. What a launch takes besides (its start and
// end, the outer loop) does not depend on WORK, so time is a straight line in WORK.
// Each chain is c = c / 2 + x, which converges to 2 x whatever it starts from, so the result does not depend on WORK.

#ifndef WORK
#define WORK 1000 // trips of the inner loop
#endif

extern "C" __global__ void __launch_bounds__(256) planted(int n, int repeat, const float *__restrict__ x, float *__restrict__ y)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    const float value = x[i];
    float chain[8];
    #pragma unroll
    for (int j = 0; j < 8; j++)
        chain[j] = j;
    for (int r = 0; r < repeat; r++) {
        #pragma unroll 1
        for (int trip = 0; trip < WORK; trip++) {
            #pragma unroll
            for (int j = 0; j < 8; j++)
                chain[j] = chain[j] * 0.5f + value;
        }
    }
    float sum = 0.0f;
    #pragma unroll
    for (int j = 0; j < 8; j++)
        sum += chain[j];
    y[i] = sum;
}
