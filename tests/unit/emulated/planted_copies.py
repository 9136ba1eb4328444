"""Planted faults of asynchronous copies and mbarriers."""

from __future__ import annotations

import numpy as np
from planted_fault import FLOATS, IN_OUT, Fault, zeros

from kernelab.device.emulated import tensor_map
from kernelab.device.emulated.memory import GLOBAL_BASE

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

# One copy into a stage. Stage and mbarrier lie inside larger arrays: misaligned, they are still in bounds.
STAGED = """k(const float* A, const unsigned char* map, float* C) {
  __shared__ __align__(128) unsigned char stages[1408];
  __shared__ __align__(8) unsigned char barriers[24];
  const unsigned bar = (unsigned)__cvta_generic_to_shared(barriers) + BARRIER;
  const unsigned to = (unsigned)__cvta_generic_to_shared(stages) + STAGE;
  const int t = threadIdx.x;
  if (t == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(bar) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 256;" :: "r"(bar) : "memory");
    COPY
  }
  __syncthreads();
  WAIT
  C[t] = *(const float*)(stages + STAGE + 4 * t);
}"""

BULK_COPY = """asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], SIZE, [%2];"
      :: "r"(to), "l"((const char*)A + SOURCE), "r"(bar) : "memory"); // HERE"""


def tensor_copy(rank: int) -> str:
    corner = ", ".join(["%2"] * rank)
    return f"""asm volatile(
      "cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {{{corner}}}], [%3];"
      :: "r"(to), "l"(map), "r"(0), "r"(bar) : "memory"); // HERE"""


def misaligned(
    name: str,
    copy: str,
    rank: int = 2,
    *,
    stage: str = "1152",
    barrier: str = "8",
    source: str = "0",
    size: str = "256",
) -> Fault:
    """A misaligned operand of a copy of 256 bytes, which a tensor copy reads from a row of `rank` dimensions."""
    shape = (*[1] * (rank - 1), 64)
    values = {
        "COPY": copy,
        "STAGE": stage,
        "BARRIER": barrier,
        "SOURCE": source,
        "SIZE": size,
        "WAIT": WAIT_LOOP.replace("// HERE", ""),
    }
    text = STAGED
    for word, value in values.items():
        text = text.replace(word, value)
    # A is allocated first, so its address is known.
    tensor = np.frombuffer(tensor_map(GLOBAL_BASE, shape, shape), np.uint8)
    return Fault(
        name,
        "misaligned",
        text,
        {"A": FLOATS, "map": tensor, "C": zeros(64)},
        arch="compute_90",
        options={"instruction_limit": 20_000},
    )


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
    *(
        misaligned(
            f"{rank}d tensor copy to a stage of 1040 bytes", tensor_copy(rank), rank, stage="{{1152||1040}}"
        )
        for rank in range(1, 6)
    ),
    misaligned("tensor copy with a misaligned mbarrier", tensor_copy(2), barrier="{{8||12}}"),
    misaligned("bulk copy to a misaligned stage", BULK_COPY, stage="{{1040||1032}}"),
    misaligned("bulk copy from a misaligned source", BULK_COPY, source="{{16||8}}"),
    misaligned("bulk copy of a size that is no multiple of 16", BULK_COPY, size="{{256||248}}"),
    misaligned("bulk copy with a misaligned mbarrier", BULK_COPY, barrier="{{8||12}}"),
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
