"""The race detectors against brute force: small random programs, judged pair by pair."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelab.device.emulated import GlobalMemory, Launch, emulate, parse_ptx

THREADS = 64
WORDS = 6


@dataclass(frozen=True)
class Op:
    """One statement that some threads of some blocks execute: a read, write, atomic, fence or a synchronisation."""

    kind: str
    word: int = 0
    low: int = 0
    high: int = THREADS
    stride: int = 0  # thread t touches word + t * stride
    block: int | None = None

    def runs(self, block: int, thread: int) -> bool:
        return self.low <= thread < self.high and self.block in (None, block)

    def where(self, thread: int) -> int:
        return self.word + thread * self.stride


def program(ops: list[Op], shared: bool) -> str:
    """PTX: every statement under a predicate, the threads of a warp in step."""
    space = "shared" if shared else "global"
    body = []
    for op in ops:
        guards = [f"setp.ge.u32 %p1, %r0, {op.low};", f"setp.lt.and.u32 %p1, %r0, {op.high}, %p1;"]
        if op.block is not None:
            guards.append(f"setp.eq.and.u32 %p1, %r1, {op.block}, %p1;")
        address = [
            f"mad.lo.s32 %r2, %r0, {4 * op.stride}, {4 * op.word};",
            "cvt.u64.u32 %rd1, %r2;",
            "add.s64 %rd1, %rd1, %rd0;",
        ]
        if op.kind == "barrier":
            body.append("bar.sync 0;")
        elif op.kind == "named":
            body += [*guards, "@%p1 bar.sync 1, 32;"]
        elif op.kind == "syncwarp":
            body.append("bar.warp.sync 0xffffffff;")
        else:
            text = {
                "read": f"ld.{space}.u32 %r3, [%rd1];",
                "write": f"st.{space}.u32 [%rd1], %r0;",
                "atomic": f"atom.{space}.add.u32 %r3, [%rd1], 1;",
            }[op.kind]
            body += [*guards, *address, f"@%p1 {text}"]
    base = "mov.u64 %rd0, words;" if shared else "ld.param.u64 %rd0, [p];"
    return (
        ".version 8.5\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
        ".reg .pred %p<3>;\n.reg .b32 %r<5>;\n.reg .b64 %rd<3>;\n.shared .align 4 .b8 words[2048];\n"
        "mov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;\n" + base + "\n" + "\n".join(body) + "\nret;\n}\n"
    )


def brute_force(ops: list[Op], shared: bool, blocks: int) -> bool:
    """Whether any two conflicting accesses are unordered, by reachability over program order and synchronisations."""
    nodes: list[tuple[int, int, int]] = []  # statement, block, thread
    edges: dict[tuple, set] = {}
    last: dict[tuple[int, int], tuple] = {}

    def follow(block: int, thread: int, node: tuple) -> None:
        if (block, thread) in last:
            edges.setdefault(last[block, thread], set()).add(node)
        last[block, thread] = node

    for i, op in enumerate(ops):
        for block in range(blocks):
            for thread in range(THREADS):
                if op.kind in ("barrier", "syncwarp") or (op.kind == "named" and op.runs(block, thread)):
                    group = 0 if op.kind == "barrier" else thread // 32 if op.kind == "syncwarp" else 1
                    arrive, leave = (i, block, "in", group), (i, block, "out", group)
                    edges.setdefault(arrive, set()).add(leave)
                    if (block, thread) in last:
                        edges.setdefault(last[block, thread], set()).add(arrive)
                    last[block, thread] = leave
                elif op.kind in ("read", "write", "atomic") and op.runs(block, thread):
                    node = (i, block, thread)
                    nodes.append(node)
                    follow(block, thread, node)
    reach: dict[tuple, frozenset] = {}

    def reachable(node: tuple) -> frozenset:
        if node not in reach:
            found: set = set()
            for after in edges.get(node, ()):
                found.add(after)
                found |= reachable(after)
            reach[node] = frozenset(found)
        return reach[node]

    for a in nodes:
        for b in nodes:
            if a >= b or (a[1], a[2]) == (b[1], b[2]):
                continue
            one, two = ops[a[0]], ops[b[0]]
            if (
                one.where(a[2]) != two.where(b[2])
                or {one.kind, two.kind} <= {"read"}
                or {one.kind, two.kind} == {"atomic"}
                or (shared and a[1] != b[1])
            ):
                continue
            if b not in reachable(a) and a not in reachable(b):
                return True
    return False


def accesses(kinds: tuple[str, ...]) -> st.SearchStrategy[Op]:
    low = st.sampled_from([0, 1, 31, 32, 33])
    return st.builds(
        lambda kind, word, low, count, stride, block: Op(kind, word, low, low + count, stride, block),
        st.sampled_from(kinds),
        st.integers(0, WORDS),
        low,
        st.sampled_from([1, 1, 2, 31]),
        st.sampled_from([0, 1, 1]),
        st.sampled_from([None, 0, 1]),
    )


def programs(kinds: tuple[str, ...], synchronisations: tuple[str, ...]) -> st.SearchStrategy[list[Op]]:
    sync = st.sampled_from([Op(s, low=32, high=64) for s in synchronisations])
    return st.lists(st.one_of(accesses(kinds), accesses(kinds), sync), min_size=2, max_size=7)


def detected(ops: list[Op], shared: bool, blocks: int, seed: int = 0) -> bool:
    memory = GlobalMemory()
    address = memory.allocate("W", np.zeros(512, np.uint32))
    result = emulate(
        parse_ptx(program(ops, shared)),
        Launch("k", (blocks, 1, 1), (THREADS, 1, 1), [address]),
        memory,
        order_seed=seed,
    )
    kinds = {h.kind for h in result.hazards}
    assert kinds <= {"race_shared", "race_global", "uninitialised_read"}, kinds
    return bool(kinds & {"race_shared", "race_global"})


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "global"])
@pytest.mark.parametrize(
    ("kinds", "synchronisations"),
    [
        (("read", "write"), ("barrier",)),
        (("read", "write", "atomic"), ("barrier",)),
        (("read", "write", "atomic"), ("barrier", "syncwarp", "named")),
    ],
    ids=["intervals", "atomics", "clocks"],
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_same_verdict_as_brute_force(shared, kinds, synchronisations, data):
    ops = data.draw(programs(kinds, synchronisations))
    wanted = brute_force(ops, shared, 2)
    assert detected(ops, shared, 2) == wanted
    assert detected(ops, shared, 2, seed=data.draw(st.integers(1, 3))) == wanted


def test_both_verdicts_occur():
    write, read = Op("write", stride=1), Op("read", 1, 0, 63, 1)
    assert detected([write, read], True, 1)
    assert not detected([write, Op("barrier"), read], True, 1)
    assert detected([write, Op("syncwarp"), read], True, 1)
    assert not detected([write, Op("syncwarp"), Op("read", 1, 0, 31, 1)], True, 1)
    assert not detected([Op("atomic")], False, 2)
    assert detected([Op("atomic"), Op("read", 0, 0, 1)], False, 2)


CHAIN = """
__device__ void put(int* flag) { asm volatile("st.RELEASE.gpu.global.u32 [%0], 1;" :: "l"(flag) : "memory"); }
__device__ void await(int* flag) {
  int seen; do asm volatile("ld.ACQUIRE.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory"); while (!seen);
}
extern "C" __global__ void k(int* data, int* flags, int* C) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) { data[0] = 7; put(flags); }
  if (blockIdx.x == 1) { await(flags); data[1] = data[0] + 1; put(flags + 1); }
  if (blockIdx.x == 2) { await(flags + 1); C[0] = data[0] + data[1]; }
}"""


@pytest.mark.parametrize(
    ("release", "acquire", "races"),
    [
        ("release", "acquire", False),
        ("relaxed", "acquire", True),
        ("release", "relaxed", True),
    ],
)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_release_and_acquire_through_a_chain_of_blocks(run, release, acquire, races, seed):
    source = CHAIN.replace("RELEASE", release).replace("ACQUIRE", acquire)
    arguments = {"data": np.zeros(2, np.int32), "flags": np.zeros(2, np.int32), "C": np.zeros(1, np.int32)}
    ran = run(source, (3,), (32,), arguments, order_seed=seed)
    assert ("race_global" in ran.kinds) == races
    assert ran["C"].tolist() == [15]


@pytest.mark.parametrize("fence", ["", "__threadfence();"])
def test_counter_of_finished_blocks_needs_its_fence(run, fence):
    """The CUDA guide's threadFenceReduction: the last block to finish adds up what all have left."""
    source = """extern "C" __global__ void k(float* part, unsigned* count, float* C) {
      __shared__ bool last;
      if (threadIdx.x == 0) {
        part[blockIdx.x] = blockIdx.x + 1.0f;
        FENCE
        last = atomicInc(count, gridDim.x - 1) == gridDim.x - 1;
        FENCE
      }
      __syncthreads();
      if (last && threadIdx.x == 0) { float sum = 0; for (int i = 0; i < gridDim.x; i++) sum += part[i]; C[0] = sum; }
    }""".replace("FENCE", fence)
    arguments = {
        "part": np.zeros(8, np.float32),
        "count": np.zeros(1, np.uint32),
        "C": np.zeros(1, np.float32),
    }
    ran = run(source, (8,), (64,), arguments, uninitialised=("part",))
    assert ran["C"].tolist() == [36.0]
    assert ran.kinds == (set() if fence else {"race_global"})


def test_race_of_an_instruction_whose_first_lane_has_a_bad_address(run):
    ran = run(
        """extern "C" __global__ void k(float* C) {
  __shared__ float word[2];
  unsigned to = (unsigned)__cvta_generic_to_shared(word + 1);
  if (threadIdx.x == 0) to = 0;
  asm volatile("st.shared.u32 [%0], %1;" :: "r"(to), "r"(threadIdx.x) : "memory");
  __syncthreads();
  C[threadIdx.x] = word[1];
}""",
        (1,),
        (64,),
        {"C": np.zeros(64, np.float32)},
    )
    hazards = {h.kind: str(h) for h in ran.result.hazards}
    assert {"out_of_bounds_shared", "race_shared"} <= set(hazards), hazards
    assert "word + 4" in hazards["race_shared"]
