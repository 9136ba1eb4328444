"""Rungs 21 and 23 to 25 and the ring of matrix loads away from their defaults: their settings must change no result."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelab.build.kernel import build_kernel, write_build
from kernelab.build.toolchain import find_toolchain
from kernelab.check.job import CheckJob
from kernelab.check.on_emulated import EmulatedChecker
from kernelab.plan.catalogue import read_catalogue

FOLDER = Path(__file__).parents[3] / "kernels" / "sgemm"

# Two tiles of C by two with edges, in pieces of one k-tile: sums are handed over from block to block.
EDGES = {"m": 300, "n": 132, "k": 52, "alpha": 1.5, "beta": -0.5}
# Rows of A that TMA cannot copy.
UNALIGNED = {"m": 260, "n": 132, "k": 29, "alpha": -1.0, "beta": 0.0}
CASES = {
    "movers": (
        "23_spare_warps",
        {
            "SHARED_TILES": "all",
            "FFMA_ORDER": "serpentine_by_step",
            "QUAD_ORDER": "4",
            "LOAD_ORDER": "after_each_quad",
            "RELEASE_AT": "in_last_step",
            "PARTIALS": "scaled",
        },
        EDGES,
    ),
    "movers_late_loads": (
        "23_spare_warps",
        {
            "SHARED_TILES": "last",
            "FFMA_ORDER": "serpentine_backwards",
            "QUAD_ORDER": "1",
            "LOAD_ORDER": "inside_next_quads",
            "A_LATE": "2",
            "PARTIALS": "single",
        },
        EDGES,
    ),
    "movers_of_transposed": (
        "23_spare_warps",
        {
            "BK": "8",
            "POLL_AT": "6",
            "QUAD_ORDER": "2",
            "LOAD_ORDER": "after_first_quad",
            "PARTIALS": "column_1032",
        },
        UNALIGNED,
    ),
    # A spare warp takes A as groups of four rows, by ldmatrix; with edges in both directions.
    "quads": (
        "23_spare_warps",
        {"MOVE_QUADS": "true", "SHARED_TILES": "all"},
        EDGES,
    ),
    "quads_of_8": (
        "23_spare_warps",
        {"MOVE_QUADS": "true", "BK": "8", "POLL_AT": "6", "SHARED_TILES": "last"},
        {**EDGES, "k": 44},
    ),
    # Rows of A that do not come in fours, and rows that TMA cannot copy: transposed beforehand, spread over the stage.
    "quads_of_odd_rows": (
        "23_spare_warps",
        {"MOVE_QUADS": "true", "SHARED_TILES": "all"},
        {**EDGES, "m": 301},
    ),
    "quads_of_transposed": (
        "23_spare_warps",
        {"MOVE_QUADS": "true", "SHARED_TILES": "all"},
        {**EDGES, "k": 51},
    ),
    # Rung 25: A split into halves, with edges in both directions and rows that do not come in fours or eights.
    "halves": ("25_matrix_loads", {"SHARED_TILES": "all"}, {**EDGES, "m": 301}),
    "halves_of_8": (
        "25_matrix_loads",
        {
            "BK": "8",
            "POLL_AT": "6",
            "SHARED_TILES": "last",
            "QUAD_ORDER": "3",
            "LOAD_ORDER": "inside_next_quads",
            "A_LATE": "0",
            "FFMA_ORDER": "serpentine_backwards",
            "PARTIALS": "row_3210",
        },
        {**EDGES, "k": 44},
    ),
    # Rows of A that TMA cannot copy: transposed beforehand, split on the way to the stage. C is not read.
    "halves_of_transposed": ("25_matrix_loads", {"SHARED_TILES": "last_two", "READ_ROWS": "8"}, UNALIGNED),
    # Shares of k-tiles with a wave of whole tiles before them, and too few tiles for one.
    "gap": (
        "24_code_gap",
        {"CODE_GAP": "0", "SHARED_TILES": "last_two", "READ_ROWS": "4"},
        EDGES,
    ),
    "gap_inside": (
        "24_code_gap",
        {"UNGUARDED_INSIDE": "true", "SHARED_TILES": "last", "QUAD_ORDER": "1"},
        {"m": 512, "n": 128, "k": 24, "alpha": 0.5, "beta": 0.0},
    ),
    "gap_of_transposed": (
        "24_code_gap",
        {"BK": "8", "POLL_AT": "5", "UNGUARDED_INSIDE": "false", "LOAD_ORDER": "before_rows"},
        {**UNALIGNED, "m": 301},
    ),
    "turns": (
        "21_stream_k",
        {"FILL_AT": "2", "SHARED_TILES": "all", "QUAD_ORDER": "1", "PARTIALS": "row_3210", "READ_ROWS": "2"},
        EDGES,
    ),
    # The last eight rows of A lack four, three, and all but one; some warps have no row or no column of C.
    "matrix_ring": (
        "cp_async_matrix_loads",
        {"BM": "256", "BN": "64", "BK": "8", "STAGES": "2", "MIN_BLOCKS": "none", "FFMA_ORDER": "rows"},
        EDGES,
    ),
    "matrix_ring_of_odd_rows": ("cp_async_matrix_loads", {}, {**UNALIGNED, "m": 261, "n": 68}),
    "matrix_ring_of_one_row": ("cp_async_matrix_loads", {"STAGES": "3"}, {**EDGES, "m": 129, "n": 4}),
    "matrix_ring_inside": (
        "cp_async_matrix_loads",
        {"BN": "256", "STAGES": "6", "BK": "8"},
        {"m": 256, "n": 256, "k": 56, "alpha": 0.5, "beta": 0.0},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_it_is_right_and_clean_when_emulated(case: str, tmp_path: Path) -> None:
    name, moved, problem = CASES[case]
    catalogue = read_catalogue(FOLDER / "kernels.yaml", "kernels/sgemm/kernels.yaml")
    kernel = catalogue.kernels[name]
    few_sms = {"SMS": "66"} if "SMS" in kernel.parameters else {}
    levels = {**kernel.defaults(), **few_sms, **moved}
    assert kernel.violated(levels) is None
    built = build_kernel(
        FOLDER / str(kernel.source),
        arch="sm_90",
        toolchain=find_toolchain("nvrtc"),
        defines={key: str(kernel.parameters[key].macro_value(level)) for key, level in levels.items()},
    )
    assert built.status == "ok", built.compilation.log
    write_build(built, tmp_path)
    values = catalogue.operation.problem_values(problem, case)
    checker = EmulatedChecker(
        CheckJob(
            device="emulated",
            uuid="",
            folder=str(FOLDER),
            operation=catalogue.operation,
            kernel_name=name,
            kernel=kernel,
            levels=levels,
            library="",
            cubin=str(tmp_path / "kernel.cubin"),
            ptx=str(tmp_path / "kernel.ptx"),
            problems={case: values},
            seed=7,
        )
    )
    result, _ = checker.check(values, lambda stage: None)
    assert (result.status, result.note) == ("ok", result.note)
    assert result.correct
    assert result.hazards == ()
