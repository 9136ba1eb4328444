"""Counters of both devices side by side, and the rules that explain a difference."""

from __future__ import annotations

import math
from itertools import chain

import pytest
from against_hardware.rows import (
    METRICS,
    NO_METRIC,
    OTHER_ISA,
    Code,
    close,
    code_of,
    compare_counters,
    counted,
    explain,
    measured_counter,
    quotient,
    widths_in_ptx,
    widths_in_sass,
)

from kernelab.build.sass import Instruction
from kernelab.device.emulated import Counters, SiteCounters
from kernelab.records.profile import Metric, ProfiledKernel

PTX = """.visible .entry other(
)
{
  ld.global.v2.f32 {%f1, %f2}, [%rd1];
}
.visible .entry sgemm(
  .param .u64 sgemm_param_0
)
{
  ld.param.u64 %rd1, [sgemm_param_0];
  @%p1 ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1]; // ld.global.f64 in a comment
  ld.shared.f32 %f5, [%r1];
  ld.volatile.shared.f32 %f5, [%r1];
  st.shared.v4.f32 [%r1], {%f1, %f2, %f3, %f4};
  st.global.b32 [%rd1], %r5;
  { cp.async.cg.shared.global [%r1], [%rd1], 16; }
  cp.async.ca.shared.global [%r1], [%rd1], 4, %r7;
}
"""


def instruction(opcode: str, predicate: str = "") -> Instruction:
    return Instruction(0, predicate, opcode, "", None)


def kernel(**values: float) -> ProfiledKernel:
    metrics = {metric: Metric(value=values[name], unit="") for name in values for metric in METRICS[name][0]}
    return ProfiledKernel(name="sgemm", metrics=metrics)


def site(
    opcode: str, space: str, kind: str, requests: int, sectors: int = 0, wavefronts: int = 0
) -> SiteCounters:
    return SiteCounters(
        opcode, space, kind, 1, None, None, requests=requests, sectors=sectors, wavefronts=wavefronts
    )


def test_widths_of_an_entry_of_ptx():
    assert widths_in_ptx(PTX, "sgemm") == {
        "global_load": {16: 1},
        "shared_load": {4: 2},
        "shared_store": {16: 1},
        "global_store": {4: 1},
        "global_copy": {4: 1, 16: 1},
    }


def test_widths_of_machine_code_leave_out_what_never_runs():
    sass = [
        *map(
            instruction,
            (
                "LDG.E.128.CONSTANT",
                "LDS",
                "LDS.64",
                "LDS.U.128",
                "STS.U8",
                "STG.E",
                "FFMA",
                "LDGSTS.E.BYPASS.128",
            ),
        ),
        instruction("LDS", "@!PT"),
    ]
    code = code_of(PTX, sass, "sgemm", 8)
    assert code.idle_lds == 1
    assert (
        code.sass
        == widths_in_sass(sass)
        == {
            "global_load": {16: 1},
            "shared_load": {4: 1, 8: 1, 16: 1},
            "shared_store": {1: 1},
            "global_store": {4: 1},
            "global_copy": {16: 1},
        }
    )


def test_copies_are_counted_apart():
    counters = Counters(
        [
            site("ld.global.f32", "global", "load", 10, sectors=40),
            site("cp.async.cg", "global", "load", 3, sectors=48),
            site("cp.async.cg", "shared", "store", 3, wavefronts=12),
            site("st.shared.f32", "shared", "store", 5, wavefronts=7),
            site("ld.shared.f32", "shared", "load", 6, wavefronts=8),
        ],
        {"fma": 100, "add": 11},
    )
    found = counted(counters)
    assert found["global_load_sectors"] == 40
    assert found["global_copy_sectors"] == 48
    assert found["shared_store_wavefronts"] == 7
    assert found["shared_copy_wavefronts"] == 12
    assert found["shared_wavefronts"] == 27
    assert found["instructions"] == 111


def test_a_counter_is_the_first_choice_that_the_card_has_all_of():
    first, second = METRICS["global_copy_sectors"]
    both = {name: Metric(value=v, unit="") for name, v in zip(second, (5.0, 7.0), strict=True)}
    assert measured_counter("global_copy_sectors", ProfiledKernel(name="k", metrics=both)) == 12
    assert (
        measured_counter(
            "global_copy_sectors", ProfiledKernel(name="k", metrics={second[0]: both[second[0]]})
        )
        is None
    )
    all_of_them = {**both, first[0]: Metric(value=3.0, unit="")}
    assert measured_counter("global_copy_sectors", ProfiledKernel(name="k", metrics=all_of_them)) == 3


SAME = Code({}, {}, 0, 8)
WIDER = Code({"shared_load": {4: 64}}, {"shared_load": {4: 32, 16: 8}}, 0, 8)
IDLE = Code({}, {}, 6, 8)
COUNTS = dict.fromkeys((*METRICS, "shared_copy_requests", "shared_copy_wavefronts"), 0) | {
    "global_load_sectors": 1000,
    "global_copy_sectors": 500,
    "shared_load_requests": 640,
    "shared_store_wavefronts": 100,
    "shared_copy_wavefronts": 40,
    "shared_wavefronts": 800,
}


@pytest.mark.parametrize(
    ("counter", "measured", "code", "words"),
    [
        ("global_load_sectors", 1500, SAME, "counts the 500 sectors of LDGSTS (cp.async) here too"),
        ("global_copy_sectors", 0, SAME, "does not count the 500 sectors of LDGSTS (cp.async) here"),
        ("global_copy_sectors", 1000, SAME, ""),
        ("shared_store_wavefronts", 140, SAME, "counts the 40 wavefronts of LDGSTS"),
        ("shared_wavefronts", 760, SAME, "does not count the 40 wavefronts"),
        ("shared_wavefronts", 840, SAME, ""),
        ("shared_load_requests", 400, WIDER, "LDS of 32 x 4, 8 x 16 bytes for PTX of 64 x 4"),
        ("shared_wavefronts", 400, WIDER, "ptxas changed the widths"),
        ("shared_load_requests", 640 / 4 - 1, WIDER, ""),
        ("shared_load_requests", 640 * 4 + 1, WIDER, ""),
        ("shared_load_requests", 0, WIDER, ""),
        ("global_load_sectors", 400, WIDER, ""),
        ("shared_load_requests", 640 + 6 * 8, IDLE, "6 more of each warp"),
        ("shared_load_requests", 640 + 6 * 8 + 1, IDLE, ""),
        ("shared_load_requests", 640 - 48, IDLE, ""),
        ("shared_load_requests", 688, SAME, ""),
        ("shared_load_requests", None, SAME, NO_METRIC),
    ],
)
def test_what_explains_a_difference(counter, measured, code, words):
    said = explain(counter, COUNTS, measured, code)
    assert words in said
    assert bool(said) is bool(words)


def test_rows_agree_within_one_per_cent_or_by_an_explanation():
    measured = kernel(
        global_load_sectors=1005,
        shared_load_requests=640,
        shared_store_wavefronts=77,
        shared_wavefronts=760,
        instructions=5,
    )
    rows = {row.counter: row for row in compare_counters("13_final", "exact", COUNTS, measured, SAME)}
    assert list(rows) == list(METRICS)
    assert (rows["global_load_sectors"].agrees, rows["global_load_sectors"].explanation) == (True, "")
    assert not rows["shared_store_wavefronts"].agrees
    assert rows["shared_wavefronts"].agrees
    assert rows["instructions"].explanation == OTHER_ISA
    assert rows["global_store_sectors"].explanation == NO_METRIC
    assert rows["global_store_sectors"].ratio is None
    assert rows["shared_load_requests"].ratio == 1


def test_within_one_per_cent():
    assert close(101, 100)
    assert not close(101.1, 100)
    assert close(0, 0)
    assert not close(1, 0)
    assert quotient(1, 0) == math.inf
    assert quotient(0, 0) == 1


def test_metrics_are_named_once():
    names = [name for choices in METRICS.values() for name in chain(*choices)]
    assert len(names) == len(set(names))
    assert all(name.endswith(".sum") for name in names)


def test_the_total_may_hold_what_is_neither_load_nor_store() -> None:
    from against_hardware.rows import remainder

    assert "holds 4096 more" in remainder(0, 0, 0, 0, 4096, 0)
    assert "counts 4096 for the writes of cp.async" in remainder(98304, 98304, 0, 0, 99648, 4096)
    assert remainder(100, 50, 0, 0, 4096, 0) == ""
    assert remainder(0, 0, 100, 50, 4096, 0) == ""
