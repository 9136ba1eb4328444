"""Planted faults: small kernels, each with one mistake and a clean twin.

In a source `{{good||bad}}` marks what differs; the line that the report must name ends in `// HERE`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np

FLOATS = np.arange(4096, dtype=np.float32)


def zeros(count: int, dtype: type = np.float32) -> np.ndarray:
    return np.zeros(count, dtype)


@dataclass
class Fault:
    """One planted mistake, the kind of hazard that it must give, and how to launch it."""

    name: str
    kind: str
    source: str
    arguments: dict = field(default_factory=dict)
    grid: tuple[int, ...] = (1,)
    block: tuple[int, ...] = (64,)
    uninitialised: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    dynamic_shared: int = 0
    options: dict = field(default_factory=dict)
    arch: str = "compute_86"

    def text(self, bad: bool) -> str:
        chosen = re.sub(
            r"\{\{(.*?)\|\|(.*?)\}\}", lambda m: m.group(2 if bad else 1), self.source, flags=re.S
        )
        return 'extern "C" __global__ void ' + chosen.strip()

    @property
    def lines(self) -> set[int]:
        return {i for i, line in enumerate(self.text(True).splitlines(), 1) if "// HERE" in line}


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

COPY = """
__device__ void copy16(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from));
}
extern "C" __global__ void """

PIPELINE = """k(const float* A, float* C) {
  __shared__ __align__(16) float tile[256];
  const int t = threadIdx.x;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
    :: "r"((unsigned)__cvta_generic_to_shared(tile + 4 * t)), "l"(A + 4 * t) : "memory");
  COMMIT
  WAIT
  SYNC
  C[t] = tile[INDEX]; // HERE
}"""


def pipeline(commit: str, wait: str, sync: str = "__syncthreads();", index: str = "255 - t") -> str:
    return (
        PIPELINE.replace("COMMIT", commit).replace("WAIT", wait).replace("SYNC", sync).replace("INDEX", index)
    )


BULK = """k(const float* A, float* C) {
  __shared__ __align__(128) float tile[64];
  __shared__ unsigned long long barrier;
  const unsigned bar = (unsigned)__cvta_generic_to_shared(&barrier), to = (unsigned)__cvta_generic_to_shared(tile);
  const int t = threadIdx.x;
  if (t == 0) {
    INIT asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(bar) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], EXPECT;" :: "r"(bar) : "memory"); // HERE
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"
                 :: "r"(to), "l"(A), "r"(bar) : "memory");
  }
  __syncthreads();
  WAIT
  C[t] = tile[63 - t]; // HERE
}"""

WAIT_LOOP = """unsigned done = 0; while (!done) // HERE
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }" // HERE
                 : "=r"(done) : "r"(bar) : "memory"); // HERE"""

COMMIT = 'asm volatile("cp.async.commit_group;" ::: "memory");'
WAIT = 'asm volatile("cp.async.wait_group 0;" ::: "memory");'
IN_OUT = {"A": FLOATS, "C": zeros(64)}

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
    Fault("no wait for cp.async", "cp_async_not_waited", pipeline(COMMIT, "{{" + WAIT + "||}}"), IN_OUT),
    Fault(
        "wait leaves the newest group out",
        "cp_async_not_waited",
        pipeline(COMMIT, WAIT.replace("0;", "{{0||1}};")),
        IN_OUT,
    ),
    Fault("cp.async never committed", "cp_async_not_waited", pipeline("{{" + COMMIT + "||}}", WAIT), IN_OUT),
    Fault(
        "barrier missing after the wait",
        "race_shared",
        pipeline(COMMIT, WAIT, "{{__syncthreads();||}}")
        .replace("// HERE", "")
        .replace('"l"(A + 4 * t) : "memory");', '"l"(A + 4 * t) : "memory"); // HERE'),
        IN_OUT,
    ),
    Fault(
        "empty group counted as if it held the copy",
        "cp_async_not_waited",
        pipeline("{{" + COMMIT + COMMIT + "||" + COMMIT + "}}", WAIT.replace("0;", "1;"), index="4 * t"),
        IN_OUT,
    ),
    Fault(
        "store into a tile that is being copied",
        "cp_async_not_waited",
        """k(const float* A, float* C) {
  __shared__ __align__(16) float tile[256];
  const int t = threadIdx.x;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
    :: "r"((unsigned)__cvta_generic_to_shared(tile + 4 * t)), "l"(A + 4 * t) : "memory");
  {{asm volatile("cp.async.wait_all;" ::: "memory");||}}
  tile[4 * t] = 0.0f; // HERE
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  C[t] = tile[4 * t + 1];
}""",
        IN_OUT,
    ),
    Fault(
        "cp.async past the end of its source",
        "out_of_bounds_global",
        """k(const float* A, float* C) {
  __shared__ __align__(16) float tile[256];
  const int t = threadIdx.x, size = {{t < 50 ? 16 : 0||16}};
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
    :: "r"((unsigned)__cvta_generic_to_shared(tile + 4 * t)), "l"(A + 4 * t), "r"(size) : "memory"); // HERE
  asm volatile("cp.async.wait_all;" ::: "memory");
  C[t] = tile[4 * t];
}""",
        {"A": FLOATS[:200], "C": zeros(64)},
    ),
    Fault(
        "cp.async from a misaligned source",
        "misaligned",
        """k(const float* A, float* C) {
  __shared__ __align__(16) float tile[256];
  const int t = threadIdx.x;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
    :: "r"((unsigned)__cvta_generic_to_shared(tile + 4 * t)), "l"(A + {{4||5}} * t) : "memory"); // HERE
  asm volatile("cp.async.wait_all;" ::: "memory");
  C[t] = tile[4 * t];
}""",
        IN_OUT,
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
    *(
        Fault(
            name,
            kind,
            BULK.replace("INIT", init)
            .replace("EXPECT", expect)
            .replace("WAIT", wait)
            .replace("WAIT", WAIT_LOOP),
            IN_OUT,
            arch="compute_90",
            options={"instruction_limit": 20_000},
        )
        for name, kind, init, expect, wait in (
            ("bulk copy that nobody waits for", "cp_async_not_waited", "", "256", "{{WAIT||}}"),
            ("mbarrier never initialised", "invalid_mbarrier", "{{||if (false)}}", "256", "WAIT"),
            ("more bytes expected than copied", "timeout", "", "{{256||512}}", "WAIT"),
        )
    ),
    Fault(
        "stage released before all lanes have read it",
        "race_shared",
        """k(float* C) {
  __shared__ float stage[32];
  __shared__ unsigned long long barrier;
  const unsigned bar = (unsigned)__cvta_generic_to_shared(&barrier);
  const int t = threadIdx.x;
  if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(bar) : "memory");
  if (t < 32) stage[t] = (float)t;
  __syncthreads();
  if (t < 32) {
    C[t] = stage[31 - t];
    {{__syncwarp();||}}
    if (t == 0) asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(bar) : "memory");
  } else {
    unsigned done = 0;
    while (!done)
      asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                   : "=r"(done) : "r"(bar) : "memory");
    stage[t - 32] = 0.0f; // HERE
  }
}""",
        {"C": zeros(64)},
        arch="compute_90",
    ),
]
