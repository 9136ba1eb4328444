"""Reading a results folder: what is missing or damaged is named."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kernelab.errors import UserError
from kernelab.report.gaps import failed, gaps
from kernelab.report.published import read_published
from kernelab.report.reader import read_results


def test_everything_is_there(lab: Path) -> None:
    results = read_results(lab / "results")
    assert results.on_gpu
    assert [row["kernel"] for row in results.rows_of("unroll")][:2] == ["01_first", "01_first"]
    assert results.compared("unroll") is results.compared("unroll")  # read once
    assert len(results.samples("unroll")) > 100
    assert results.sass("01_first/default") is not None
    assert results.sass("") is None
    assert results.build("") is None


def test_a_snapshot_lacks_the_listings_alone(lab: Path, tmp_path: Path) -> None:
    folder = tmp_path / "snapshot"
    shutil.copytree(lab / "results", folder, ignore=shutil.ignore_patterns("*.sass"))
    (folder / "provenance.txt").write_text("made on a day\n")
    results = read_results(folder)
    assert results.sass("01_first/default") is None
    assert results.provenance == ["made on a day"]


@pytest.mark.parametrize("name", ["plan.json", "table.csv", "comparisons.csv", "claims.csv"])
def test_what_is_missing_is_named_with_the_command_that_makes_it(
    lab: Path, tmp_path: Path, name: str
) -> None:
    folder = tmp_path / "results"
    shutil.copytree(lab / "results", folder)
    (folder / name).unlink()
    with pytest.raises(UserError, match=rf"{name}: not made yet; run snakemake"):
        read_results(folder)


@pytest.mark.parametrize(("name", "text"), [("plan.json", "{"), ("toolchain.json", "[1]")])
def test_what_is_damaged_is_named(lab: Path, tmp_path: Path, name: str, text: str) -> None:
    folder = tmp_path / "results"
    shutil.copytree(lab / "results", folder)
    (folder / name).write_text(text)
    with pytest.raises(UserError, match=name):
        read_results(folder)


def test_gaps_say_why_and_what_to_do(bare: Path) -> None:
    results = read_results(bare / "results")
    assert failed(results) == []
    (time,) = [gap for gap in gaps(results) if gap.what == "time"]
    assert time.count == len({row["arm"] for row in results.table})
    assert "GPU" in time.why
    assert "NVIDIA GPU" in time.remedy


def test_missing_counters_have_their_own_reasons() -> None:
    results = read_results(Path(__file__).parents[3] / "results" / "snapshots" / "nvidia-h200")
    reasons = {gap.why: gap for gap in gaps(results) if gap.what == "counters"}
    (unasked,) = [gap for why, gap in reasons.items() if "profile.experiments" in why]
    assert "13_final/default@square_4096" not in unasked.arms
    assert "config.yaml" in unasked.remedy
    for why, gap in reasons.items():
        if "died under ncu" in why:
            assert "logs" in gap.remedy


def test_published_figures(lab: Path, tmp_path: Path) -> None:
    (source,) = read_published(lab / "kernels" / "scale")
    assert source.pct_of_cublas == {"01_first": 40.0, "03_third": 90.5}
    assert read_published(tmp_path) == ()
    (tmp_path / "published.yaml").write_text("figures:\n  - {source: a, card: b, pct: {}}\n")
    with pytest.raises(UserError, match=r"published\.yaml"):
        read_published(tmp_path)
