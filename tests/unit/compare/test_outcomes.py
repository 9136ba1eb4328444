"""Which outcomes are told beside a verdict."""

from __future__ import annotations

import pytest

from kernelab.compare.outcomes import moved

LOOP = {
    "registers": 168,
    "hot_loop_instructions": 1630,
    "hot_loop_at": 16576,
    "ffma_share_pct": 94.233,
    "lds_128": 72,
    "ldsm": 0,
    "sass_FFMA": 1536,
    "emu_problem": "small",
    "emu_instructions": 570066,
}


def names(**changed: object) -> list[str]:
    return [name for name, *_ in moved(LOOP, LOOP | changed)]


def test_the_same_loop_at_another_place_is_told() -> None:
    assert moved(LOOP, LOOP | {"hot_loop_at": 13504}) == [("hot_loop_at", "16576", "13504")]
    assert names(hot_loop_at=13504, emu_instructions=567954) == ["hot_loop_at", "emu_instructions"]


@pytest.mark.parametrize(
    "name",
    ["registers", "hot_loop_instructions", "ffma_share_pct", "lds_128", "ldsm", "sass_FFMA", "sass_MOV"],
)
def test_the_place_is_not_told_of_a_loop_that_differs(name: str) -> None:
    assert names(**{"hot_loop_at": 13504, name: 1}) == [name]


def test_counters_that_wander_by_less_than_a_percent_are_not_told() -> None:
    counted = LOOP | {"ncu_dram_read_bytes": 1000.0}
    assert moved(counted, LOOP | {"ncu_dram_read_bytes": 1009.0}) == []
    assert [name for name, *_ in moved(counted, LOOP | {"ncu_dram_read_bytes": 1020.0})] == [
        "ncu_dram_read_bytes"
    ]
