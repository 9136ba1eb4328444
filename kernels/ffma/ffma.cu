// FFMA: nothing but fused multiply-adds, the FP32 rate that a kernel can reach on this card.
//
// Every element is a chain of k steps x = a x + b, and a thread holds ACC of them, each in a register: the chains do not wait
// for each other, and memory is touched once at either end. What is left beside the FFMAs is the loop's own counting,
// three instructions in every UNROLL*ACC. OPERANDS tells whether the chains read a and b from the same registers, which
// the operand cache then keeps, or each from its own, as the FFMAs of a matrix product do. RESERVED is shared memory that
// a block is given and leaves alone, so that fewer blocks fit on an SM: the rate with few warps.

#ifndef NT
#define NT 256 // threads per block
#endif
#ifndef ACC
#define ACC 8 // independent chains of a thread
#endif
#ifndef UNROLL
#define UNROLL 64 // steps of every chain in one pass of the loop
#endif
#ifndef OPERANDS
#define OPERANDS 0 // a and b of all chains are the same registers (0), or each chain has its own (1)
#endif
#ifndef RESERVED
#define RESERVED 0 // bytes of shared memory of a block, for the launch alone
#endif

extern "C" __global__ void __launch_bounds__(NT)
ffma(int N, int K, float a, float b, const float *__restrict__ x, float *__restrict__ y)
{
    const size_t first = (size_t)blockIdx.x * NT * ACC + threadIdx.x;
    // Zero, which the compiler cannot know, and of each thread: copies of a and b that it can neither merge nor share.
    const float zero = OPERANDS && N < 0 ? (float)threadIdx.x : 0.0f;

    float chain[ACC], factor[ACC], addend[ACC];
    #pragma unroll
    for (int i = 0; i < ACC; i++) {
        const size_t element = first + (size_t)i * NT;
        chain[i] = element < N ? x[element] : 0.0f;
        factor[i] = OPERANDS ? a + zero * i : a;
        addend[i] = OPERANDS ? b + zero * i : b;
    }

    #pragma unroll 1
    for (int left = K / UNROLL; left > 0; left--) {
        #pragma unroll
        for (int step = 0; step < UNROLL; step++) {
            #pragma unroll
            for (int i = 0; i < ACC; i++)
                chain[i] = fmaf(chain[i], factor[i], addend[i]);
        }
    }
    #pragma unroll 1
    for (int left = K % UNROLL; left > 0; left--) {
        #pragma unroll
        for (int i = 0; i < ACC; i++)
            chain[i] = fmaf(chain[i], factor[i], addend[i]);
    }

    #pragma unroll
    for (int i = 0; i < ACC; i++) {
        const size_t element = first + (size_t)i * NT;
        if (element < N)
            y[element] = chain[i];
    }
}
