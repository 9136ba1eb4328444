"""Problems whose k-tiles an int cannot count go to the guarded kernel, and no others do."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelab.operation.launches import plan_launches
from kernelab.plan.catalogue import read_catalogue

FOLDER = Path(__file__).parents[3] / "kernels" / "sgemm"
CATALOGUE = read_catalogue(FOLDER / "kernels.yaml", "kernels/sgemm/kernels.yaml")
PERSISTENT = [name for name, kernel in CATALOGUE.kernels.items() if "flags" in kernel.workspaces]


def last_entry(name: str, side: int, **moved: str) -> str:
    kernel = CATALOGUE.kernels[name]
    problem = {"m": side, "n": side, "k": side, "alpha": 1.0, "beta": 0.0}
    return plan_launches(CATALOGUE.operation, kernel, {**kernel.defaults(), **moved}, problem)[-1].entry


def shared_out(side: int, bk: int) -> int:
    """k-tiles of a cube, all of them shared out."""
    return -(-side // 256) * -(-side // 128) * -(-side // bk)


def test_the_frontier_has_kernels_whose_blocks_stay() -> None:
    assert [name[:2] for name in PERSISTENT] == ["21", "22", "23", "24", "25"]


@pytest.mark.parametrize("name", [name for name in PERSISTENT if name[:2] != "22"])
def test_all_tiles_shared_out_is_bounded_by_an_int(name: str) -> None:
    bk = int(CATALOGUE.kernels[name].defaults()["BK"])
    side = 4096
    while shared_out(side, bk) < 2**31:
        side += 4096
    assert last_entry(name, side - 4096, SHARED_TILES="all") == "sgemm"
    assert last_entry(name, side, SHARED_TILES="all") == "sgemm_guarded"


@pytest.mark.parametrize("name", PERSISTENT)
def test_fewer_tiles_shared_out_are_not(name: str) -> None:
    assert last_entry(name, 98304, SHARED_TILES="last") == "sgemm"
    assert (
        last_entry(name, 4097, SHARED_TILES="last") == "sgemm_guarded"
    )  # rows that are no multiples of 16 bytes
