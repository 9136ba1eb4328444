"""The repository's own kernels, predicted for the card that they were measured on."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from predicted_builds import REPOSITORY, Catalogue

from kernelab.predict.emulation import MOST_BYTES, sample, smaller_problem

TABLE = REPOSITORY / "results" / "snapshots" / "nvidia-h200" / "table.csv"
RUNGS = (
    "01_naive",
    "02_gmem_coalesced",
    "03_smem",
    "04_1d_blocktiling",
    "05_2d_blocktiling",
    "06_2d_transposed",
    "07_vectorized",
    "08_warptiling",
)


@pytest.fixture(scope="module")
def measured() -> dict[str, float]:
    with TABLE.open(newline="") as stream:
        return {
            row["arm"].partition("@")[0]: float(row["time_ms"])
            for row in csv.DictReader(stream)
            if row["time_ms"]
        }


def test_the_first_rungs_come_out_in_measured_order(catalogue: Catalogue, measured: dict[str, float]) -> None:
    predicted = [catalogue.predicted(f"{rung}/default").ms for rung in RUNGS]
    times = [measured[f"{rung}/default"] for rung in RUNGS]
    assert times == sorted(times, reverse=True)
    assert predicted == sorted(predicted, reverse=True)
    assert all(0.75 < p / t < 1.4 for p, t in zip(predicted, times, strict=True))


def test_what_bounds_a_rung_is_what_the_profiler_says(catalogue: Catalogue) -> None:
    """01 waits for the LSU pipe (ncu: 98% busy), 11_staged for its loads (long scoreboard 0.81 of 3.47)."""
    assert catalogue.predicted("01_naive/default").bound == "shared"
    assert catalogue.predicted("11_staged/default").bound == "latency"


def test_conflict_free_lanes_are_predicted_faster(catalogue: Catalogue) -> None:
    rows = catalogue.predicted("08_warptiling/default")
    columns = catalogue.predicted("08_warptiling/LANE_MAP=column_major")
    assert rows.ms < columns.ms
    assert rows.parts["shared"] < columns.parts["shared"]


def test_the_emulated_device_counts_what_the_profiler_counted(catalogue: Catalogue) -> None:
    """LDS of rung 08: 4.027e8 wavefronts of 1.342e8 requests; of 05 and on: 5 a request."""
    assert _traffic(catalogue, "08_warptiling/default")["LDS", 128].pipe_cycles == 3.0
    assert _traffic(catalogue, "06_2d_transposed/default")["LDS", 128].pipe_cycles == 5.0
    naive = _traffic(catalogue, "01_naive/default")["LDG", 32]
    assert naive.sectors == naive.pipe_cycles == 16.5


def _traffic(catalogue: Catalogue, key: str) -> dict:  # type: ignore[type-arg]
    build = catalogue.build(key)
    operation = catalogue.plan.operations[build.operation]
    found = sample(
        catalogue.compiled(key).ptx,
        operation.operation,
        operation.kernels[build.kernel],
        build.levels,
        catalogue.plan.problems["square_4096"].values,
        REPOSITORY / operation.folder,
    )
    assert found is not None
    return found[-1].traffic


def test_the_emulated_problem_is_small_and_takes_the_same_launch(catalogue: Catalogue) -> None:
    build = catalogue.build("13_final/default")
    operation = catalogue.plan.operations[build.operation]
    small = smaller_problem(
        operation.operation,
        operation.kernels[build.kernel],
        build.levels,
        catalogue.plan.problems["square_4096"].values,
    )
    assert small == {"m": 512, "n": 512, "k": 512, "alpha": 1.0, "beta": 0.0}
    assert MOST_BYTES >= 3 * 4 * 512 * 512


def test_no_prediction_reads_the_measured_table(
    monkeypatch: pytest.MonkeyPatch, catalogue: Catalogue
) -> None:
    opened: list[str] = []
    really = Path.open

    def spy(self: Path, *arguments: object, **options: object) -> object:
        opened.append(self.as_posix())
        return really(self, *arguments, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", spy)
    catalogue.predicted("03_smem/default")
    assert not [path for path in opened if "snapshots" in path]
