"""Faults of order: races in shared memory, misused barriers. The tools racecheck and synccheck look for them."""

from __future__ import annotations

from against_hardware.fault import IN_OUT, OUT, WAIT, SanitizedFault, copy_16, pipeline

RACECHECK = (
    SanitizedFault(
        "dropped barrier before reading a tile",
        "racecheck",
        "race_shared",
        """(const float* A, float* C, int n) {
  __shared__ float tile[64];
  float sum = 0.0f;
  for (int i = 0; i < n; i += 64) {
    tile[threadIdx.x] = A[i + threadIdx.x];
    {{__syncthreads();||}}
    sum += tile[63 - threadIdx.x];
    __syncthreads();
  }
  C[threadIdx.x] = sum;
}""",
        {**IN_OUT, "n": 256},
    ),
    SanitizedFault(
        "dropped barrier before refilling a tile",
        "racecheck",
        "race_shared",
        """(const float* A, float* C, int n) {
  __shared__ float tile[64];
  float sum = 0.0f;
  for (int i = 0; i < n; i += 64) {
    tile[threadIdx.x] = A[i + threadIdx.x];
    __syncthreads();
    sum += tile[63 - threadIdx.x];
    {{__syncthreads();||}}
  }
  C[threadIdx.x] = sum;
}""",
        {**IN_OUT, "n": 256},
    ),
    SanitizedFault(
        "two warps store to one word",
        "racecheck",
        "race_shared",
        """(const float* A, float* C) {
  __shared__ float tile[64];
  tile[threadIdx.x {{||% 32}}] = A[threadIdx.x];
  __syncthreads();
  C[threadIdx.x] = tile[threadIdx.x {{||% 32}}];
}""",
        IN_OUT,
    ),
    SanitizedFault(
        "wrong stage of a double buffer",
        "racecheck",
        "race_shared",
        """(const float* A, float* C, int n) {
  __shared__ float tile[2][64];
  float sum = 0.0f;
  int stage = 0;
  tile[0][threadIdx.x] = A[threadIdx.x];
  __syncthreads();
  for (int i = 64; i < n; i += 64) {
    tile[{{stage ^ 1||stage}}][threadIdx.x] = A[i + threadIdx.x];
    sum += tile[stage][63 - threadIdx.x];
    __syncthreads();
    {{stage ^= 1;||}}
  }
  C[threadIdx.x] = sum + tile[stage][threadIdx.x];
}""",
        {**IN_OUT, "n": 256},
    ),
    SanitizedFault(
        "reduction buffer reused too early",
        "racecheck",
        "race_shared",
        """(const float* A, float* C) {
  __shared__ float part[64];
  part[threadIdx.x] = A[threadIdx.x];
  __syncthreads();
  const float first = part[63 - threadIdx.x];
  {{__syncthreads();||}}
  part[threadIdx.x] = 2.0f * first;
  __syncthreads();
  C[threadIdx.x] = part[63 - threadIdx.x];
}""",
        IN_OUT,
    ),
    SanitizedFault(
        "warp reduction without __syncwarp",
        "racecheck",
        "race_shared",
        """(const float* A, float* C) {
  __shared__ float part[64];
  const int t = threadIdx.x;
  part[t] = A[t];
  __syncwarp();
  for (int step = 16; step > 0; step /= 2) {
    const float other = part[t ^ step];
    {{__syncwarp();||}}
    part[t] += other;
    {{__syncwarp();||}}
  }
  C[t] = part[t];
}""",
        IN_OUT,
    ),
    SanitizedFault(
        "barrier missing after the wait",
        "racecheck",
        "race_shared",
        pipeline(copy_16("A + 4 * t"), WAIT, "{{__syncthreads();||}}"),
        IN_OUT,
    ),
    SanitizedFault(
        "no wait for cp.async",
        "racecheck",
        "cp_async_not_waited",
        pipeline(copy_16("A + 4 * t"), "{{" + WAIT + "||}}", "__syncthreads();"),
        IN_OUT,
    ),
)

SYNCCHECK = (
    SanitizedFault(
        "barrier in both arms of a divergent branch",
        "synccheck",
        "barrier_divergence",
        """(const float* A, float* C) {
  __shared__ float tile[64];
  tile[threadIdx.x] = A[threadIdx.x];
  {{__syncthreads();||}}
  if (threadIdx.x < 16) {
    {{||asm volatile("bar.sync 0;" ::: "memory");}}
    C[threadIdx.x] = tile[threadIdx.x + 32];
  } else {
    {{||asm volatile("bar.sync 0;" ::: "memory");}}
    C[threadIdx.x] = tile[0];
  }
}""",
        IN_OUT,
    ),
    SanitizedFault(
        "lane left out of its own __syncwarp",
        "synccheck",
        "invalid_mask",
        """(const float* A, float* C) {
  __shared__ float tile[64];
  tile[threadIdx.x] = A[threadIdx.x];
  __syncwarp({{0xffffffffu||0x7fffffffu}});
  C[threadIdx.x] = tile[threadIdx.x];
}""",
        IN_OUT,
    ),
    SanitizedFault(
        "barrier count that is not whole warps",
        "synccheck",
        "invalid_barrier",
        """(float* C, int count) {
  asm volatile("bar.sync 1, %0;" :: "r"({{count + 16||count}}) : "memory");
  C[threadIdx.x] = 1.0f;
}""",
        {"C": OUT, "count": 48},
    ),
)
