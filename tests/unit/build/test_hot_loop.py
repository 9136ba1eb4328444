from __future__ import annotations

from collections.abc import Callable

import pytest

from kernelab.build.hot_loop import count_mix, find_hot_loop, issue_bound_pct
from kernelab.build.sass import Instruction

Listing = Callable[[str], list[Instruction]]

TWO_LOOPS = """
    FFMA R0             // a remainder loop
    IADD3 R1
    @P0 BRA 0x0
    LDS.128 R0          // 0x30 the main loop
    FFMA R1
    FFMA R2
    FFMA R3
    @P0 BRA 0x30
    STG.E.128 R0
    EXIT
"""


def test_the_loop_with_most_ffmas_is_hot(listing: Listing) -> None:
    hot = find_hot_loop(listing(TWO_LOOPS), "sm_86")
    assert hot is not None
    assert (hot.start, hot.loops, hot.mix.instructions, hot.mix.ffma) == (0x30, 2, 5, 3)
    assert hot.mix.ffma_share_pct == 60.0
    assert hot.bound_pct_of_peak == 60.0


def test_an_outer_loop_does_not_beat_the_inner_one_that_does_the_work(listing: Listing) -> None:
    text = "FFMA R9\n" + "FFMA R0\n" * 8 + "@P0 BRA 0x10\nIADD3 R1\nBAR.SYNC 0x0\n@P1 BRA 0x0\nEXIT"
    hot = find_hot_loop(listing(text), "sm_86")
    assert hot is not None
    assert (hot.start, hot.mix.instructions) == (0x10, 9)


def test_an_outer_loop_that_does_most_of_the_work_itself_is_hot(listing: Listing) -> None:
    text = "FFMA R0\n" * 8 + "FFMA R1\n@P0 BRA 0x80\n@P1 BRA 0x0\nEXIT"
    hot = find_hot_loop(listing(text), "sm_86")
    assert hot is not None
    assert (hot.start, hot.mix.instructions) == (0, 11)


def test_without_ffma_the_longest_innermost_loop_is_hot_and_has_no_bound(listing: Listing) -> None:
    text = """
    NOP                  // an outer loop
    LDG.E.128 R0         // 0x10 the innermost one
    STG.E.128 R0
    @P0 BRA 0x10
    @P1 BRA 0x0
    MOV R1               // 0x50 a shorter one
    @P0 BRA 0x50
    EXIT
    """
    hot = find_hot_loop(listing(text), "sm_86")
    assert hot is not None
    assert (hot.start, hot.loops, hot.mix.widths) == (0x10, 3, {"ldg_128": 1, "stg_128": 1})
    assert hot.bound_pct_of_peak is None


def test_no_loop(listing: Listing) -> None:
    assert find_hot_loop(listing("FFMA R0\nEXIT"), "sm_86") is None


def test_widths_and_classes(listing: Listing) -> None:
    text = """
    LDS R0
    LDS.64 R0
    LDS.128 R0
    LDS.U.128 R0
    LDS.U8 R0
    STS.128 R0
    LDG.E.128.CONSTANT R0
    LDG.E R0
    LDGSTS.E.BYPASS.128 R0
    STL [R1]
    LDL R0
    LDSM.16.M88.4 R0
    IMAD.MOV.U32 R0
    IMAD R0
    UIADD3 UR0
    QUUX R0
    """
    mix = count_mix(listing(text))
    assert mix.widths == {
        "lds_32": 1,
        "lds_64": 1,
        "lds_128": 2,
        "lds_8": 1,
        "sts_128": 1,
        "ldg_128": 1,
        "ldg_32": 1,
        "ldgsts_128": 1,
        "stl_32": 1,
        "ldl_32": 1,
    }
    assert mix.classes == {
        "shared": 7,
        "global": 3,
        "local": 2,
        "move": 1,
        "integer": 1,
        "uniform": 1,
        "other": 1,
    }
    assert sum(mix.classes.values()) == sum(mix.opcodes.values()) == mix.instructions == 16


def test_share_of_stores_to_shared_memory(listing: Listing) -> None:
    mix = count_mix(listing("FFMA R0\n" * 99 + "STS.128 R0"))
    assert mix.sts_share_pct == 1.0


@pytest.mark.parametrize(
    ("arch", "ffma", "other", "bound"),
    [
        ("sm_86", 90, 10, 90.0),
        ("sm_90", 90, 10, 90.0),
        ("sm_75", 90, 10, 100.0),  # 180 clocks of the lanes hide 100 issue slots
        ("sm_80", 40, 60, 80.0),  # 100 issue slots for 80 clocks of the lanes
    ],
)
def test_issue_bound_by_lanes(listing: Listing, arch: str, ffma: int, other: int, bound: float) -> None:
    mix = count_mix(listing("FFMA R0\n" * ffma + "MOV R0\n" * other))
    assert issue_bound_pct(mix, arch) == bound


def test_a_packed_ffma_does_the_work_of_two(listing: Listing) -> None:
    mix = count_mix(listing("FFMA2 R0\n" * 30 + "MOV R0\n" * 70))
    assert issue_bound_pct(mix, "sm_100") == 60.0
