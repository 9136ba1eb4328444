"""Two arms side by side, on the measured snapshot."""

from __future__ import annotations

import csv
import io
import json
import shutil
import statistics
from pathlib import Path

import pytest

from kernelab.cli.main import main
from kernelab.errors import UserError
from kernelab.report.beside import Beside, beside, find_arm
from kernelab.report.reader import Results, read_results

SNAPSHOT = Path(__file__).parents[3] / "results" / "snapshots" / "nvidia-h200"
CUBLAS = "00_cublas/default@square_4096"
FINAL = "13_final/default@square_4096"
WARPTILING = "08_warptiling/default@square_4096"
PROFILED = sorted(
    path.parents[1].name + "/" + path.parent.name + "@square_4096"
    for path in SNAPSHOT.glob("*/profile/*/*/square_4096.json")
    if json.loads(path.read_text())["status"] == "ok"
)


@pytest.fixture(scope="module")
def results() -> Results:
    return read_results(SNAPSHOT)


@pytest.fixture
def without_cublas(tmp_path: Path) -> Path:
    """A copy of the snapshot in which the library's launch died under ncu."""
    folder = tmp_path / "results"
    shutil.copytree(SNAPSHOT, folder)
    path = next(folder.glob("*/profile/00_cublas/default/square_4096.json"))
    died = {
        "status": "target_crashed",
        "note": "the launch died under ncu (exit 1): so it said.",
        "kernels": [],
        "values": {},
    }
    path.write_text(json.dumps(json.loads(path.read_text()) | died))
    return folder


def counted(arm: str) -> dict[str, float]:
    """The counters of an arm's one kernel, from its record."""
    build, _, problem = arm.partition("@")
    (record,) = SNAPSHOT.glob(f"*/profile/{build}/{problem}.json")
    (kernel,) = json.loads(record.read_text())["kernels"]
    return {name: metric["value"] for name, metric in kernel["metrics"].items()}


def figures(found: Beside) -> dict[tuple[str, str], tuple[float | None, float | None]]:
    return {(f.section, f.name): (f.first, f.second) for f in found.figures}


def test_figures_are_those_of_the_table(results: Results) -> None:
    found = beside(results, "08_warptiling", "13_final", experiment="against_cublas")
    rows = {row["arm"]: row for row in results.rows_of("against_cublas")}
    told = figures(found)
    for section, name, column in (
        ("time", "time_ms", "time_ms"),
        ("time", "sm_clock_mhz", "sm_clock_mhz"),
        ("counters", "fma_pipe_pct", "ncu_fma_pipe_pct"),
        ("counters", "dram_read_bytes", "ncu_dram_read_bytes"),
        ("stalls", "barrier", "ncu_stall_barrier"),
        ("static", "registers", "registers"),
        ("static", "lds_128", "lds_128"),
        ("static", "waves", "waves"),
    ):
        expected = tuple(float(rows[arm][column]) for arm in (WARPTILING, FINAL))
        assert told[section, name] == pytest.approx(expected, rel=1e-5), name
    loads = tuple(counted(arm)["smsp__sass_inst_executed_op_shared_ld.sum"] for arm in (WARPTILING, FINAL))
    assert told["executed", "shared loads"] == loads
    ratio = {f.name: f.ratio for f in found.figures if f.section == "time"}
    assert ratio["time_ms"] == pytest.approx(
        float(rows[FINAL]["time_ms"]) / float(rows[WARPTILING]["time_ms"])
    )
    assert found.experiments == ("against_cublas", "against_cublas")


def test_the_factors_make_up_the_time(results: Results) -> None:
    """Instructions, cycles an issue, SM activity and clock are all there is to a time.

    A launch under ncu is another launch than those that were timed: a few kernels differ by up to 2.3% there.
    """
    assert len(PROFILED) > 10
    off = []
    for arm in PROFILED:
        told = figures(beside(results, arm, FINAL if arm != FINAL else WARPTILING))
        product, measured = told["factors", "product"][0], told["factors", "time measured"][0]
        assert product is not None
        assert measured is not None
        off.append(abs(product / measured - 1.0))
    assert max(off) < 0.03
    assert statistics.median(off) < 0.003


def test_stalls_sum_to_what_a_warp_waits(results: Results) -> None:
    told = figures(beside(results, FINAL, WARPTILING))
    for side in (0, 1):
        stalls = sum(pair[side] or 0.0 for (section, _), pair in told.items() if section == "stalls")
        waits = told["counters", "warp_cycles_per_issue"][side]
        assert stalls + 1.0 == pytest.approx(waits, rel=0.01)  # and the issue itself


def test_matrix_loads_count_as_shared_loads() -> None:
    rungs = [f"{rung}/default@square_4096" for rung in ("24_code_gap", "25_matrix_loads")]
    found = figures(beside(read_results(SNAPSHOT / "frontier_25"), *rungs, "frontier"))
    loads = found["executed", "matrix loads (ldmatrix)"]
    shared = found["executed", "shared loads"]
    assert None not in (*loads, *shared)
    # Rung 24 transposes A by ldmatrix, rung 25 has no other loads of shared memory.
    assert 0 < float(loads[0] or 0) < float(shared[0] or 0)
    assert shared[1] == 0
    assert found["executed", "passes a shared load"] == pytest.approx((2, 4), rel=0.05)
    assert found["executed", "matrix stores (stmatrix)"][0] == 0


def test_the_experiment_that_compares_the_two_is_preferred(results: Results) -> None:
    assert beside(results, "12_double_buffered", "13_final").experiments[0] == "ladder"
    found = beside(results, FINAL, CUBLAS, profiles=False)
    assert found.experiments == ("against_cublas", "against_cublas")
    assert "(against_cublas): the other way round, " in found.summary[0]


def test_arms_of_different_sessions_have_no_ratio_of_times(results: Results) -> None:
    found = beside(results, "triad", "13_final", profiles=False)
    time = next(f for f in found.figures if f.name == "time_ms")
    assert None not in (time.first, time.second)
    assert time.ratio is None
    assert time.difference is None
    assert found.summary[0].startswith("no ratio of their times: they were not timed in one session (")


def test_a_missing_profile_is_one_line_that_says_what_to_do(
    without_cublas: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["beside", "13_final", "00_cublas", "--results", str(without_cublas)]
    assert main(command) == 1
    out, error = capsys.readouterr()
    assert out == ""
    assert error.count("\n") == 1
    assert (
        f"{CUBLAS}: not profiled: the launch died under ncu (exit 1): so it said; run `snakemake results/"
        in error
    )
    assert "--no-profile" in error
    assert main([*command, "--no-profile"]) == 0
    assert f"{CUBLAS} takes 0." in capsys.readouterr().out


def test_an_arm_that_was_never_profiled(results: Results) -> None:
    with pytest.raises(
        UserError, match=r"^triad/default@stream: not profiled: no profile was made; run `snakemake"
    ):
        beside(results, "triad", "13_final")


def test_what_ncu_says_of_a_library_fills_the_static_figures(without_cublas: Path) -> None:
    ours, library = (
        next(without_cublas.glob(f"*/profile/{kernel}/default/square_4096.json"))
        for kernel in ("13_final", "00_cublas")
    )
    library.write_text(ours.read_text().replace(FINAL, CUBLAS))
    told = figures(beside(read_results(without_cublas), CUBLAS, FINAL))
    for name in ("registers", "shared_bytes", "threads", "blocks", "occupancy_pct"):
        first, second = told["static", name]
        assert first == second, name  # the very same launch, once by ncu and once by our own records
    first, second = told["static", "waves"]
    assert first == pytest.approx(second, abs=1e-3)
    assert told["static", "ffma_share_pct"][0] is None  # that needs a listing


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("13_final", FINAL),
        ("13_final@square_4096", FINAL),
        ("13_final/default", FINAL),
        (FINAL, FINAL),
        ("13_final/A_PAD=2", "13_final/A_PAD=2@square_4096"),
    ],
)
def test_an_arm_may_be_named_in_short(results: Results, text: str, name: str) -> None:
    assert find_arm(results, text).name == name


def test_wrong_names_are_explained(results: Results) -> None:
    with pytest.raises(UserError, match=r"^13_finale: no arm of these results.*13_final"):
        find_arm(results, "13_finale")
    with pytest.raises(UserError, match=r"^13_final@ragged: no arm"):
        find_arm(results, "13_final@ragged")
    with pytest.raises(UserError, match="is both arms"):
        beside(results, "13_final", FINAL)
    with pytest.raises(UserError, match=r"^swizzel: no experiment of these results.*swizzle"):
        beside(results, "13_final", "08_warptiling", experiment="swizzel")
    with pytest.raises(
        UserError, match=r"^08_warptiling/default@square_4096: is not in swizzle, but in ladder"
    ):
        beside(results, "13_final", "08_warptiling", experiment="swizzle")


def test_it_is_filtered_and_printed_like_every_table(capsys: pytest.CaptureFixture[str]) -> None:
    options = [
        "--results",
        str(SNAPSHOT),
        "--where",
        "section=stalls",
        "--sort",
        "difference",
        "--format",
        "csv",
    ]
    assert main(["beside", "08_warptiling", "13_final", *options]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {row["section"] for row in rows} == {"stalls"}
    differences = [float(row["difference"]) for row in rows]
    assert differences == sorted(differences)
    assert differences[0] < 0
    assert {"membar", "sleeping"} <= {row["figure"] for row in rows}  # zeros are for programs
