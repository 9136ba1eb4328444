"""Faults of memory: out of bounds, misaligned, never written. The tools memcheck and initcheck look for them."""

from __future__ import annotations

import numpy as np

from against_hardware.fault import FLOATS, IN_OUT, OUT, WAIT, SanitizedFault, copy_16, pipeline

MEMCHECK = (
    SanitizedFault(
        "missing guard on a ragged read",
        "memcheck",
        "out_of_bounds_global",
        """(const float* A, float* C, int n) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  C[i] = {{i < n ? A[i] : 0.0f||A[i]}};
}""",
        {"A": FLOATS[:100], "C": np.zeros(128, np.float32), "n": 100},
        grid=2,
    ),
    SanitizedFault(
        "missing guard on a ragged write",
        "memcheck",
        "out_of_bounds_global",
        """(float* C, int n) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  {{if (i < n)||}} C[i] = 1.0f;
}""",
        {"C": np.zeros(100, np.float32), "n": 100},
        grid=2,
    ),
    SanitizedFault(
        "one tile too many",
        "memcheck",
        "out_of_bounds_global",
        """(const float* A, float* C, int n) {
  float sum = 0.0f;
  for (int i = 0; i {{<||<=}} n; i += 64)
    sum += A[i + threadIdx.x];
  C[threadIdx.x] = sum;
}""",
        {"A": FLOATS[:256], "C": OUT, "n": 256},
    ),
    SanitizedFault(
        "negative index",
        "memcheck",
        "out_of_bounds_global",
        """(const float* A, float* C) {
  const int i = threadIdx.x;
  C[i] = A[{{i > 0 ? i - 1 : 0||i - 1}}];
}""",
        IN_OUT,
    ),
    SanitizedFault(
        "null pointer",
        "memcheck",
        "out_of_bounds_global",
        """(const float* A, float* C, const float* bias) {
  C[threadIdx.x] = A[threadIdx.x] + ({{bias ? bias[threadIdx.x] : 0.0f||bias[threadIdx.x]}});
}""",
        {**IN_OUT, "bias": None},
    ),
    SanitizedFault(
        "atomic past the end",
        "memcheck",
        "out_of_bounds_global",
        """(const float* A, float* C) {
  atomicAdd(&C[threadIdx.x {{/ 2||+ 1}}], A[threadIdx.x]);
}""",
        IN_OUT,
    ),
    SanitizedFault(
        "cp.async past the end of its source",
        "memcheck",
        "out_of_bounds_global",
        pipeline(copy_16("{{A + 4 * t||A + 4 * t + 4}}"), WAIT, "__syncthreads();"),
        {"A": FLOATS[:256], "C": OUT},
    ),
    SanitizedFault(
        "past the end of shared memory",
        "memcheck",
        "out_of_bounds_shared",
        """(const float* A, float* C) {
  __shared__ float tile[64];
  tile[threadIdx.x {{||* 1024}}] = A[threadIdx.x];
  __syncthreads();
  C[threadIdx.x] = tile[63 - threadIdx.x];
}""",
        IN_OUT,
    ),
    SanitizedFault(
        "a stride padded more than its array",
        "memcheck",
        "out_of_bounds_shared",
        """(const float* A, float* C) {
  __shared__ float tile[8 * 9];
  tile[(threadIdx.x / 8) * {{9||40}} + threadIdx.x % 8] = A[threadIdx.x];
  __syncthreads();
  C[threadIdx.x] = tile[threadIdx.x % 8];
}""",
        IN_OUT,
    ),
    SanitizedFault(
        "dynamic shared memory too small for the layout",
        "memcheck",
        "out_of_bounds_shared",
        """(const float* A, float* C) {
  extern __shared__ float dynamic[];
  dynamic[threadIdx.x {{||* 32}}] = A[threadIdx.x];
  __syncthreads();
  C[threadIdx.x] = dynamic[threadIdx.x];
}""",
        IN_OUT,
        dynamic_shared=256,
    ),
    SanitizedFault(
        "local array overrun",
        "memcheck",
        "out_of_bounds_local",
        """(const int* where, float* C) {
  float mine[4] = {1.0f, 2.0f, 3.0f, 4.0f};
  const int i = where[threadIdx.x];
  mine[{{i & 3||i * 65536}}] = 9.0f;
  C[threadIdx.x] = mine[where[threadIdx.x + 64] & 3];
}""",
        {"where": np.arange(128, dtype=np.int32), "C": OUT},
        unseen="memcheck does not check accesses that stay in the card's local memory",
    ),
    SanitizedFault(
        "float4 load on an odd stride",
        "memcheck",
        "misaligned",
        """(const float* A, float* C) {
  const float4 a = *(const float4*)(A + threadIdx.x * {{8||7}});
  C[threadIdx.x] = a.x + a.w;
}""",
        IN_OUT,
        unseen="two of the four floats are used, and ptxas loads those alone: SASS has no 16-byte access",
    ),
    SanitizedFault(
        "float2 load at an odd element",
        "memcheck",
        "misaligned",
        """(const float* A, float* C) {
  const float2 a = *(const float2*)(A + threadIdx.x * 2 {{||+ 1}});
  C[threadIdx.x] = a.x + a.y;
}""",
        IN_OUT,
    ),
    SanitizedFault(
        "float4 from a tile padded by one",
        "memcheck",
        "misaligned",
        """(const float* A, float* C) {
  __shared__ __align__(16) float tile[64 * {{8||5}}];
  for (int i = 0; i < 4; i++) tile[threadIdx.x * {{8||5}} + i] = A[threadIdx.x * 4 + i];
  __syncthreads();
  const float4 a = *(const float4*)&tile[(63 - threadIdx.x) * {{8||5}}];
  C[threadIdx.x] = a.x + a.y + a.z + a.w;
}""",
        IN_OUT,
    ),
    SanitizedFault(
        "cp.async from a misaligned source",
        "memcheck",
        "misaligned",
        pipeline(copy_16("{{A + 4 * t||A + 5 * t}}"), WAIT, "__syncthreads();"),
        IN_OUT,
    ),
)

INITCHECK = (
    SanitizedFault(
        "reads its output before writing it",
        "initcheck",
        "uninitialised_read",
        """(const float* A, float* C, float beta) {
  C[threadIdx.x] = A[threadIdx.x] {{||+ beta * C[threadIdx.x]}};
}""",
        {**IN_OUT, "beta": 0.0},
        uninitialised=("C",),
    ),
    SanitizedFault(
        "workspace only partly filled",
        "initcheck",
        "uninitialised_read",
        """(const float* A, float* W, float* C) {
  if (threadIdx.x < {{64||48}}) W[threadIdx.x] = A[threadIdx.x];
  __syncthreads();
  C[threadIdx.x] = W[63 - threadIdx.x];
}""",
        {"A": FLOATS, "W": OUT, "C": OUT},
        uninitialised=("W", "C"),
    ),
    SanitizedFault(
        "sum into a buffer that nobody zeroed",
        "initcheck",
        "uninitialised_read",
        """(const float* A, float* W) {
  {{W[threadIdx.x] = 0.0f;||}}
  for (int i = threadIdx.x; i < 256; i += 64) W[threadIdx.x] += A[i];
}""",
        {"A": FLOATS, "W": OUT},
        uninitialised=("W",),
    ),
)
