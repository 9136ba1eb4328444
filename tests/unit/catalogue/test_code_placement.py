"""Rung 24's default gap keeps its two loops apart in the instruction cache, by the NVRTC that is here; a bad gap does not."""

from __future__ import annotations

import pytest
from compiled_rung import rung_24  # first: it makes placement.py importable

# isort: split
from placement import placement


@pytest.mark.parametrize("moved", [{}, {"SHARED_TILES": "all"}], ids=["defaults", "all shared"])
def test_the_default_gap_leaves_room_for_both_loops(moved: dict[str, str]) -> None:
    assert placement(rung_24(**moved)).crowded == 0


def test_another_gap_does_not() -> None:
    assert placement(rung_24(CODE_GAP="128")).crowded > 5


def test_the_loops_are_as_long_as_the_page_says() -> None:
    found = placement(rung_24())
    hot, spare = (1 + last - first for first, last in (found.hot, found.spare))
    assert (round(hot, -3), round(spare, -2)) == (26000, 2400)
