"""Counters against brute-force definitions, one request at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelab.device.emulated import counters

WIDTHS = (4, 8, 16)


def requests(width: int) -> st.SearchStrategy[tuple[list[int], list[bool]]]:
    slots = st.integers(0, 63)
    pattern = st.one_of(
        st.lists(slots, min_size=32, max_size=32),
        st.tuples(slots, st.integers(0, 8)).map(lambda p: [(p[0] + i * p[1]) % 256 for i in range(32)]),
        st.tuples(slots, st.sampled_from([1, 2, 4, 8, 16])).map(
            lambda p: [p[0] + i // p[1] for i in range(32)]
        ),
        st.tuples(slots, st.sampled_from([1, 2, 4, 8])).map(lambda p: [p[0] + i % p[1] for i in range(32)]),
    )
    active = st.one_of(st.just([True] * 32), st.lists(st.booleans(), min_size=32, max_size=32).filter(any))
    return st.tuples(pattern.map(lambda p: [width * x for x in p]), active)


def slow_sectors(addresses: list[int], active: list[bool], width: int) -> int:
    return len({a // 32 for x, on in zip(addresses, active, strict=True) if on for a in range(x, x + width)})


def slow_wavefronts(addresses: list[int], active: list[bool], width: int) -> int:
    """Bank by bank: a part of the warp takes as many wavefronts as its busiest bank has distinct words."""

    def cost(lanes: range) -> int:
        words = {a // 4 for i in lanes if active[i] for a in range(addresses[i], addresses[i] + width, 4)}
        return max((sum(w % 32 == bank for w in words) for bank in range(32)), default=0)

    if width == 4:
        return cost(range(32))
    size = {8: 16, 16: 8}[width]
    merged = any(
        all(not (active[i] and active[i ^ d]) or addresses[i] == addresses[i ^ d] for i in range(32))
        for d in (1, 2)
    )
    size *= 2 if merged else 1
    return sum(cost(range(i, i + size)) for i in range(0, 32, size))


@pytest.mark.parametrize("width", WIDTHS)
@settings(max_examples=60)
@given(data=st.data())
def test_against_the_definition(width, data):
    cases = data.draw(st.lists(requests(width), min_size=1, max_size=4))
    for addresses, active in cases:
        lanes = np.flatnonzero(active)
        array = np.array(addresses, np.int64)[lanes][None]
        warped, mask = counters.by_warp(array, None if len(lanes) == 32 else lanes)
        assert counters.sectors(warped, width).tolist() == [[slow_sectors(addresses, active, width)]]
        waves, ideal = counters.wavefronts(warped, mask, width)
        assert waves.tolist() == [[slow_wavefronts(addresses, active, width)]]
        words = {a // 4 for i in lanes for a in range(addresses[i], addresses[i] + width, 4)}
        assert ideal.tolist() == [[-(-len(words) // 32)]]


@pytest.mark.parametrize(
    ("addresses", "width", "wanted"),
    [
        ([4 * i for i in range(32)], 4, 1),  # one word in each bank
        ([0] * 32, 4, 1),  # broadcast
        ([8 * i for i in range(32)], 4, 2),  # stride 2
        ([128 * i for i in range(32)], 4, 32),  # all in bank 0
        ([132 * i for i in range(32)], 4, 1),  # padded by one
        ([8 * i for i in range(32)], 8, 2),  # 64-bit: a wavefront for each half-warp
        ([16 * i for i in range(32)], 16, 4),  # 128-bit: one for each quarter
        ([16 * (i // 4) for i in range(32)], 16, 2),  # neighbours agree: quarters are served in pairs
        ([0] * 32, 16, 2),
    ],
)
def test_known_patterns(addresses, width, wanted):
    warped, mask = counters.by_warp(np.array([addresses], np.int64), None)
    assert counters.wavefronts(warped, mask, width)[0].tolist() == [[wanted]]


def test_counts_of_a_kernel(run):
    source = """extern "C" __global__ void k(const float* A, float* C, int stride) {
      __shared__ float tile[64 * 33];
      tile[threadIdx.x * stride] = A[threadIdx.x * 2];
      __syncthreads();
      if (threadIdx.x < 48) C[threadIdx.x] = tile[(threadIdx.x + 1) * stride % (64 * stride)];
    }"""
    for stride, waves in ((32, 32), (33, 1)):
        ran = run(
            source,
            (2,),
            (64,),
            {"A": np.ones(128, np.float32), "C": np.zeros(64, np.float32), "stride": stride},
            detect_races=False,
        )
        got = ran.result.counters.summary()
        assert got["global_load_requests"] == 4
        assert got["global_load_sectors"] == 4 * 8
        assert got["global_store_requests"] == 4
        assert got["global_store_sectors"] == 2 * (4 + 2)
        assert got["shared_store_wavefronts"] == 4 * waves
        assert got["shared_load_wavefronts"] == 2 * (waves + min(waves, 16))
        assert got["shared_store_excess_wavefronts"] == 4 * (waves - 1)
        site = next(s for s in ran.result.counters.sites if s.kind == "store" and s.space == "global")
        assert (site.executed, site.lanes, site.bytes, site.source_line) == (4, 96, 384, 5)


def test_instruction_mix_counts_warps(run):
    source = """extern "C" __global__ void k(float* C) {
      float x = C[threadIdx.x];
      for (int i = 0; i < 10; i++) x = fmaf(x, x, 1.0f);
      C[threadIdx.x] = x;
    }"""
    ran = run(source, (3,), (64,), {"C": np.zeros(64, np.float32)}, detect_races=False)
    assert ran.result.counters.mix["fma.rn.f32"] == 60
    assert ran.result.instructions == sum(ran.result.counters.mix.values())
