"""Warp instructions, atomics, and waiting for other warps and blocks."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_body import K, T, check, out


def test_shuffles(run):
    x = T % 32
    check(run, "C[t] = __shfl_sync(~0u, t, 5);", T - x + 5)
    check(run, "C[t] = __shfl_up_sync(~0u, t, 3);", np.where(x >= 3, T - 3, T))
    check(run, "C[t] = __shfl_down_sync(~0u, t, 3);", np.where(x < 29, T + 3, T))
    check(run, "C[t] = __shfl_xor_sync(~0u, t, 9);", T ^ 9)
    check(run, "C[t] = __shfl_xor_sync(~0u, t, 4, 8);", T ^ 4)
    check(run, "C[t] = __shfl_sync(~0u, t, 3, 8);", T // 8 * 8 + 3)
    check(run, "C[t] = __shfl_down_sync(~0u, t, 3, 8);", np.where(T % 8 < 5, T + 3, T))
    check(run, "double v = t; C[t] = (int)(2 * __shfl_xor_sync(~0u, v, 1));", 2 * (T ^ 1))


def test_warp_reduction_by_shuffles(run):
    ran = check(
        run,
        "int v = t; for (int s = 16; s; s /= 2) v += __shfl_xor_sync(~0u, v, s); C[t] = v;",
        np.where(T < 32, 496, 496 + 1024),
    )
    assert ran.result.advice == []


def test_shuffle_inside_a_divergent_branch(run):
    wanted = np.where(T % 32 < 16, T ^ 1, T * 10)
    check(run, "int v = t * 10; if (t % 32 < 16) v = __shfl_xor_sync(0xffffu, t, 1); C[t] = v;", wanted)


def test_votes_and_matches(run):
    check(
        run,
        "C[t] = __ballot_sync(~0u, t % 3 == 0);",
        [sum(1 << i for i in range(32) if (i + 32 * (t // 32)) % 3 == 0) for t in range(64)],
        dtype=np.uint32,
    )
    check(run, "C[t] = __any_sync(~0u, t == 40) * 2 + __all_sync(~0u, t < 32);", np.where(T < 32, 1, 2))
    check(
        run, "C[t] = __match_any_sync(~0u, t % 4);", [0x11111111 << t % 4 for t in range(64)], dtype=np.uint32
    )
    check(run, "int p; C[t] = __match_all_sync(~0u, t / 32, &p); C[t] += p;", [0] * 64, dtype=np.uint32)
    check(
        run,
        "C[t] = __popc(__activemask()); if (t % 2) C[t] = __popc(__activemask());",
        32 - 16 * (T % 2),
        seeds=(0,),
    )


def test_redux(run):
    check(
        run,
        "C[t] = __reduce_add_sync(~0u, t) - __reduce_min_sync(~0u, t) + __reduce_max_sync(~0u, -t);",
        np.where(T < 32, 496, 1520 - 32 - 32),
    )
    check(
        run,
        "C[t] = __reduce_xor_sync(~0u, (unsigned)t) + __reduce_or_sync(~0u, (unsigned)t);",
        np.where(T < 32, 31, 63),
    )


@pytest.mark.parametrize(
    ("name", "start", "wanted"),
    [
        ("atomicAdd(p, t)", 5, 5 + 2016),
        ("atomicSub(p, 1)", 5, -59),
        ("atomicMax(p, t)", 9, 63),
        ("atomicMin(p, t)", 9, 0),
        ("atomicAnd(p, ~(1 << (t % 32)))", -1, 0),
        ("atomicOr(p, 1 << (t % 8))", 0, 255),
        ("atomicXor(p, t)", 0, 0),
        ("atomicInc((unsigned*)p, 9u)", 0, 4),
        ("atomicDec((unsigned*)p, 9u)", 0, 6),
    ],
)
@pytest.mark.parametrize("where", ["global", "shared"])
def test_atomics(run, name, start, wanted, where):
    if where == "global":
        body = f"{name.replace('p,', 'C,').replace('*)p', '*)C')};"
        ran = run(
            f"{K}k(int* C) {{ const int t = threadIdx.x; {body} }}",
            (1,),
            (64,),
            {"C": np.full(1, start, np.int32)},
        )
    else:
        body = f"""__shared__ int one; int* p = &one; if (t == 0) one = {start}; __syncthreads(); {name};
          __syncthreads(); if (t == 0) C[0] = one;"""
        ran = run(f"{K}k(int* C) {{ const int t = threadIdx.x; {body} }}", (1,), (64,), {"C": out(1)})
    assert [str(h) for h in ran.result.hazards] == []
    assert ran["C"].tolist() == [wanted]


def test_atomics_return_every_old_value_once(run):
    source = K + "k(int* C, int* n) { C[atomicAdd(n, 1)] = threadIdx.x; }"
    ran = run(source, (1,), (64,), {"C": out(), "n": out(1)}, uninitialised=("C",), order_seed=3)
    assert sorted(ran["C"].tolist()) == list(range(64))


def test_compare_and_swap_and_floats(run):
    source = (
        K
        + """k(float* sum, double* wide, int* tickets) {
      atomicAdd(sum, 0.5f); atomicAdd(wide, (double)threadIdx.x);
      int old = *(volatile int*)tickets, seen;
      do { seen = old; old = atomicCAS(tickets, seen, seen + 3); } while (old != seen);
    }"""
    )
    ran = run(source, (2,), (64,), {"sum": out(1, np.float32), "wide": out(1, np.float64), "tickets": out(1)})
    assert [str(h) for h in ran.result.hazards] == []
    assert (ran["sum"][0], ran["wide"][0], ran["tickets"][0]) == (64.0, 2 * 2016.0, 3 * 128)


def test_spin_lock_between_blocks(run):
    source = (
        K
        + """k(int* lock, int* count) {
      if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {}
        __threadfence(); *count += 1; __threadfence();
        atomicExch(lock, 0);
      }
    }"""
    )
    for seed in (0, 1, 2):
        ran = run(source, (40,), (32,), {"lock": out(1), "count": out(1)}, order_seed=seed)
        assert [str(h) for h in ran.result.hazards] == []
        assert ran["count"].tolist() == [40]


def test_waiting_for_a_later_block(run):
    """Block 0 waits for the last block, thousands of lanes later: cohorts must take turns."""
    source = (
        K
        + """k(volatile int* flag, int* C) {
      if (blockIdx.x == 0 && threadIdx.x == 0) { while (flag[0] == 0) {} __threadfence(); C[0] = C[1]; }
      if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) { C[1] = 7; __threadfence(); flag[0] = 1; }
    }"""
    )
    ran = run(source, (64,), (1024,), {"flag": out(1), "C": out(2)})
    assert [str(h) for h in ran.result.hazards] == []
    assert ran["C"].tolist() == [7, 7]
