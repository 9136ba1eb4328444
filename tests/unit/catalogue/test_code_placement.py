"""The default gaps of rungs 24 and 25 keep their two loops apart in the instruction cache, by the NVRTC that is here; a bad gap does not."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import pytest

from kernelab.build.kernel import build_kernel
from kernelab.build.toolchain import find_toolchain
from kernelab.plan.catalogue import read_catalogue

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "kernels" / "sgemm"
sys.path.insert(0, str(ROOT / "benchmarks" / "frontier"))

from placement import Placement, placement  # noqa: E402


@cache
def placed(rung: str = "24_code_gap", **moved: str) -> Placement:
    kernel = read_catalogue(FOLDER / "kernels.yaml", "kernels/sgemm/kernels.yaml").kernels[rung]
    levels = {**kernel.defaults(), **moved}
    built = build_kernel(
        FOLDER / str(kernel.source),
        arch="sm_90a",
        toolchain=find_toolchain("nvrtc"),
        defines={key: str(kernel.parameters[key].macro_value(level)) for key, level in levels.items()},
    )
    assert built.compilation.cubin is not None
    return placement(built.compilation.cubin)


@pytest.mark.parametrize(
    ("rung", "tiles"),
    [("24_code_gap", "last_two"), ("24_code_gap", "all"), ("25_matrix_loads", "all"), ("25_matrix_loads", "last_two")],
)
def test_the_default_gap_leaves_room_for_both_loops(rung: str, tiles: str) -> None:
    assert placed(rung, SHARED_TILES=tiles).crowded == 0


def test_another_gap_does_not() -> None:
    assert placed(CODE_GAP="128").crowded > 5


def test_the_loops_are_as_long_as_the_page_says() -> None:
    found = placed()
    hot, spare = (1 + last - first for first, last in (found.hot, found.spare))
    assert (round(hot, -3), round(spare, -2)) == (26000, 2400)
