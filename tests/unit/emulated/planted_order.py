"""Planted faults between threads: races, barriers, warp instructions, endless waits."""

from __future__ import annotations

import numpy as np
from planted_fault import FLOATS, IN_OUT, Fault, zeros

TILE = """k(const float* A, float* C, int n) {
  __shared__ float tile[64];
  float sum = 0.0f;
  for (int i = 0; i < n; i += 64) {
    tile[threadIdx.x] = A[i + threadIdx.x];%s
    {{__syncthreads();||}}
    sum += tile[63 - threadIdx.x];%s
    __syncthreads();
  }
  C[threadIdx.x] = sum;
}"""


FAULTS = [
    Fault(
        "dropped barrier before reading a tile", "race_shared", TILE % (" // HERE", ""), {**IN_OUT, "n": 256}
    ),
    Fault(
        "dropped barrier before refilling a tile",
        "race_shared",
        """k(const float* A, float* C, int n) {
  __shared__ float tile[64];
  float sum = 0.0f;
  for (int i = 0; i < n; i += 64) {
    tile[threadIdx.x] = A[i + threadIdx.x]; // HERE
    __syncthreads();
    sum += tile[63 - threadIdx.x];
    {{__syncthreads();||}}
  }
  C[threadIdx.x] = sum;
}""",
        {**IN_OUT, "n": 256},
    ),
    Fault(
        "two threads store to one word",
        "race_shared",
        """k(float* C) {
  __shared__ float tile[64];
  tile[{{threadIdx.x||threadIdx.x / 2}}] = (float)threadIdx.x; // HERE
  __syncthreads();
  C[threadIdx.x] = tile[threadIdx.x / 2];
}""",
        {"C": zeros(64)},
    ),
    Fault(
        "wrong stage of a double buffer",
        "race_shared",
        """k(const float* A, float* C, int n) {
  __shared__ float tile[2][64];
  float sum = 0.0f;
  int stage = 0;
  tile[0][threadIdx.x] = A[threadIdx.x];
  __syncthreads();
  for (int i = 64; i < n; i += 64) {
    tile[{{stage ^ 1||stage}}][threadIdx.x] = A[i + threadIdx.x]; // HERE
    sum += tile[stage][63 - threadIdx.x];
    __syncthreads();
    {{stage ^= 1;||}}
  }
  C[threadIdx.x] = sum + tile[stage][threadIdx.x];
}""",
        {**IN_OUT, "n": 256},
    ),
    Fault(
        "warp reduction without __syncwarp",
        "race_shared",
        """k(const float* A, float* C) {
  __shared__ float part[64];
  const int t = threadIdx.x;
  part[t] = A[t];
  __syncwarp();
  for (int step = 16; step > 0; step /= 2) {
    const float other = part[t ^ step];
    {{__syncwarp();||}}
    part[t] += other; // HERE
    {{__syncwarp();||}}
  }
  C[t] = part[t];
}""",
        IN_OUT,
    ),
    Fault(
        "split-k sum without atomics",
        "race_global",
        """k(const float* A, float* C) {
  const float a = A[blockIdx.x * 64 + threadIdx.x];
  {{atomicAdd(&C[threadIdx.x], a);||C[threadIdx.x] += a;}} // HERE
}""",
        IN_OUT,
        (4,),
    ),
    Fault(
        "reads a neighbour's output",
        "race_global",
        """k(const float* A, float* B, float* C) {
  B[threadIdx.x] = A[threadIdx.x]; // HERE
  {{__syncthreads();||}}
  C[threadIdx.x] = B[63 - threadIdx.x];
}""",
        {"A": FLOATS, "B": zeros(64), "C": zeros(64)},
        uninitialised=("B",),
    ),
    Fault(
        "hand-over between blocks without a fence",
        "race_global",
        """k(float* data, int* flag, float* C) {
  if (blockIdx.x == 0) {
    data[threadIdx.x] = (float)threadIdx.x; // HERE
    {{__threadfence();||}}
    __syncthreads();
    if (threadIdx.x == 0) { {{__threadfence();||}} atomicExch(flag, 1); }
  } else {
    if (threadIdx.x == 0) { while (atomicAdd(flag, 0) == 0) {} {{__threadfence();||}} }
    __syncthreads();
    C[threadIdx.x] = data[threadIdx.x];
  }
}""",
        {"data": zeros(64), "flag": zeros(1, np.int32), "C": zeros(64)},
        (2,),
    ),
    Fault(
        "counter read while others add",
        "race_shared",
        """k(int* C) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  atomicAdd(&count, 1);
  {{__syncthreads();||}}
  C[threadIdx.x] = count; // HERE
}""",
        {"C": zeros(64, np.int32)},
    ),
    Fault(
        "barrier in both arms of a divergent branch",
        "barrier_divergence",
        """k(const float* A, float* C) {
  __shared__ float tile[64];
  tile[threadIdx.x] = A[threadIdx.x];
  if (threadIdx.x < {{32||16}}) {
    asm volatile("bar.sync 0;" ::: "memory"); // HERE
    C[threadIdx.x] = tile[threadIdx.x + 32];
  } else {
    asm volatile("bar.sync 0;" ::: "memory"); // HERE
    C[threadIdx.x] = tile[{{threadIdx.x - 32||0}}];
  }
}""",
        IN_OUT,
    ),
    Fault(
        "named barrier that too few reach",
        "deadlock",
        """k(float* C) {
  if (threadIdx.x < {{64||32}})
    asm volatile("bar.sync 1, 64;" ::: "memory"); // HERE
  C[threadIdx.x] = 1.0f;
}""",
        {"C": zeros(64)},
    ),
    Fault(
        "consumer waits, producer never arrives",
        "deadlock",
        """k(float* C) {
  __shared__ float tile[32];
  if (threadIdx.x < 32) {
    tile[threadIdx.x] = 1.0f;
    {{asm volatile("bar.arrive 2, 64;" ::: "memory");||}}
  } else {
    asm volatile("bar.sync 2, 64;" ::: "memory"); // HERE
    C[threadIdx.x] = tile[threadIdx.x - 32];
  }
}""",
        {"C": zeros(64)},
    ),
    Fault(
        "barrier count that is not whole warps",
        "invalid_barrier",
        """k(float* C) {
  asm volatile("bar.sync 1, {{64||48}};" ::: "memory"); // HERE
  C[threadIdx.x] = 1.0f;
}""",
        {"C": zeros(64)},
    ),
    Fault(
        "shuffle from a lane outside the mask",
        "invalid_shuffle",
        """k(const float* A, float* C) {
  float a = A[threadIdx.x];
  if (threadIdx.x % 32 < 16)
    a += __shfl_sync(0xffffu, a, threadIdx.x % 32 + {{0||8}}); // HERE
  C[threadIdx.x] = a;
}""",
        IN_OUT,
    ),
    Fault(
        "shuffle from a lane that has exited",
        "invalid_shuffle",
        """k(const float* A, float* C, int n) {
  if (threadIdx.x >= n) return;
  C[threadIdx.x] = __shfl_down_sync(0xffffffffu, A[threadIdx.x], {{0||8}}); // HERE
}""",
        {**IN_OUT, "n": 40},
    ),
    Fault(
        "lane left out of its own mask",
        "invalid_mask",
        """k(const float* A, float* C) {
  C[threadIdx.x] = __shfl_xor_sync({{0xffffffffu||0x7fffffffu}}, A[threadIdx.x], 0); // HERE
}""",
        IN_OUT,
    ),
    Fault(
        "loop whose bound is never met",
        "timeout",
        """k(volatile int* flag, float* C) {
  {{if (threadIdx.x == 0) *flag = 1;||}}
  while (*flag == 0) {} // HERE
  C[threadIdx.x] = 1.0f;
}""",
        {"flag": zeros(1, np.int32), "C": zeros(64)},
        options={"instruction_limit": 20_000},
    ),
    Fault(
        "store through a cast-away const",
        "write_to_read_only",
        """k(const float* A, float* C) {
  C[threadIdx.x] = A[threadIdx.x];
  {{||((float*)A)[threadIdx.x] = 0.0f;}} // HERE
}""",
        IN_OUT,
        read_only=("A",),
    ),
    Fault(
        "failed check",
        "trap",
        """k(const float* A, float* C) {
  if (A[threadIdx.x] {{<||>}} 0.0f) __trap(); // HERE
  C[threadIdx.x] = 1.0f;
}""",
        IN_OUT,
    ),
    Fault(
        "reduction buffer reused too early",
        "race_shared",
        """k(const float* A, float* C) {
  __shared__ float part[64];
  part[threadIdx.x] = A[threadIdx.x];
  __syncthreads();
  const float first = part[63 - threadIdx.x];
  {{__syncthreads();||}}
  part[threadIdx.x] = 2.0f * first; // HERE
  __syncthreads();
  C[threadIdx.x] = part[63 - threadIdx.x];
}""",
        IN_OUT,
    ),
]
