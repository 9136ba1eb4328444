"""Planted faults of asynchronous copies and mbarriers."""

from __future__ import annotations

from planted_fault import FLOATS, IN_OUT, Fault, zeros

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

FAULTS = [
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
