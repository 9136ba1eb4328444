"""Planted faults of one thread: bounds, alignment, never-written bytes."""

from __future__ import annotations

import numpy as np
from planted_fault import FLOATS, IN_OUT, Fault, zeros

FAULTS = [
    Fault(
        "missing guard on a ragged read",
        "out_of_bounds_global",
        """k(const float* A, float* C, int n) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  C[i] = {{i < n ? A[i] : 0.0f||A[i]}}; // HERE
}""",
        {"A": FLOATS[:100], "C": zeros(128), "n": 100},
        (2,),
    ),
    Fault(
        "missing guard on a ragged write",
        "out_of_bounds_global",
        """k(float* C, int n) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  {{if (i < n)||}} C[i] = 1.0f; // HERE
}""",
        {"C": zeros(100), "n": 100},
        (2,),
    ),
    Fault(
        "one tile too many",
        "out_of_bounds_global",
        """k(const float* A, float* C, int n) {
  float sum = 0.0f;
  for (int i = 0; i {{<||<=}} n; i += 64)
    sum += A[i + threadIdx.x]; // HERE
  C[threadIdx.x] = sum;
}""",
        {"A": FLOATS[:256], "C": zeros(64), "n": 256},
    ),
    Fault(
        "negative index",
        "out_of_bounds_global",
        """k(const float* A, float* C) {
  const int i = threadIdx.x;
  C[i] = A[{{i > 0 ? i - 1 : 0||i - 1}}]; // HERE
}""",
        IN_OUT,
    ),
    Fault(
        "null pointer",
        "out_of_bounds_global",
        """k(const float* A, float* C, const float* bias) {
  C[threadIdx.x] = A[threadIdx.x] + ({{bias ? bias[threadIdx.x] : 0.0f||bias[threadIdx.x]}}); // HERE
}""",
        {**IN_OUT, "bias": 0},
    ),
    Fault(
        "runs into the next shared array",
        "out_of_bounds_shared",
        """k(const float* A, float* C) {
  __shared__ float first[64], second[64];
  first[threadIdx.x] = A[threadIdx.x];
  second[threadIdx.x] = A[threadIdx.x + 64];
  __syncthreads();
  C[threadIdx.x] = first[{{(threadIdx.x + 1) % 64||threadIdx.x + 1}}] + second[threadIdx.x]; // HERE
}""",
        IN_OUT,
    ),
    Fault(
        "a stride padded more than its array",
        "out_of_bounds_shared",
        """k(const float* A, float* C) {
  __shared__ float tile[8 * 9];
  tile[(threadIdx.x / 8) * {{9||10}} + threadIdx.x % 8] = A[threadIdx.x]; // HERE
  __syncthreads();
  C[threadIdx.x] = tile[(threadIdx.x % 8) * 9 + threadIdx.x / 8 * 0 + (threadIdx.x % 8)];
}""",
        IN_OUT,
    ),
    Fault(
        "dynamic shared memory too small for the layout",
        "out_of_bounds_shared",
        """k(const float* A, float* C) {
  extern __shared__ float tile[];
  tile[{{threadIdx.x||threadIdx.x * 2}}] = A[threadIdx.x]; // HERE
  __syncthreads();
  C[threadIdx.x] = tile[{{threadIdx.x||threadIdx.x * 2}}];
}""",
        IN_OUT,
        dynamic_shared=256,
    ),
    Fault(
        "local array overrun",
        "out_of_bounds_local",
        """k(const int* where, float* C) {
  float mine[4] = {1.0f, 2.0f, 3.0f, 4.0f};
  const int i = where[threadIdx.x];
  mine[{{i & 3||i}}] = 9.0f; // HERE
  C[threadIdx.x] = mine[where[threadIdx.x + 64] & 3];
}""",
        {"where": np.arange(128, dtype=np.int32), "C": zeros(64)},
    ),
    Fault(
        "float4 load on an odd stride",
        "misaligned",
        """k(const float* A, float* C) {
  const float4 a = *(const float4*)(A + threadIdx.x * {{8||7}}); // HERE
  C[threadIdx.x] = a.x + a.w;
}""",
        IN_OUT,
    ),
    Fault(
        "float2 load at an odd element",
        "misaligned",
        """k(const float* A, float* C) {
  const float2 a = *(const float2*)(A + threadIdx.x * 2 {{||+ 1}}); // HERE
  C[threadIdx.x] = a.x + a.y;
}""",
        IN_OUT,
    ),
    Fault(
        "float4 from a tile padded by one",
        "misaligned",
        """k(const float* A, float* C) {
  __shared__ __align__(16) float tile[64 * {{8||5}}];
  for (int i = 0; i < 4; i++) tile[threadIdx.x * {{8||5}} + i] = A[threadIdx.x * 4 + i];
  const float4 a = *(const float4*)&tile[threadIdx.x * {{8||5}}]; // HERE
  C[threadIdx.x] = a.x + a.y + a.z + a.w;
}""",
        IN_OUT,
    ),
    Fault(
        "reads its output before writing it",
        "uninitialised_read",
        """k(const float* A, float* C) {
  C[threadIdx.x] = A[threadIdx.x] {{||+ 0.0f * C[threadIdx.x]}}; // HERE
}""",
        IN_OUT,
        uninitialised=("C",),
    ),
    Fault(
        "tile only partly filled",
        "uninitialised_read",
        """k(const float* A, float* C) {
  __shared__ float tile[64];
  if (threadIdx.x < {{64||48}}) tile[threadIdx.x] = A[threadIdx.x];
  __syncthreads();
  C[threadIdx.x] = tile[63 - threadIdx.x]; // HERE
}""",
        IN_OUT,
    ),
    Fault(
        "atomic counter never zeroed",
        "uninitialised_read",
        """k(int* C) {
  __shared__ int count;
  {{if (threadIdx.x == 0) count = 0;||}}
  __syncthreads();
  atomicAdd(&count, 1); // HERE
  __syncthreads();
  C[threadIdx.x] = count;
}""",
        {"C": zeros(64, np.int32)},
    ),
]
