"""Figures: drawn from the results, valid Vega-Lite, with every number in a CSV."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

alt = pytest.importorskip("altair")
pytest.importorskip("vl_convert")

from kernelab.report.charts.theme import CONFIG, Figure, printable  # noqa: E402
from kernelab.report.figures import drawings  # noqa: E402
from kernelab.report.reader import Results, read_results  # noqa: E402

LADDER = {"ladder-speed", "ladder-roofline", "ladder-stalls", "ladder-occupancy", "ladder-bound"}


@pytest.fixture(scope="module")
def results(lab: Path) -> Results:
    return read_results(lab / "results")


@pytest.fixture(scope="module")
def figures(lab: Path, results: Results) -> dict[str, Figure]:
    drawn = [drawing.draw() for drawing in drawings(results, lab)]
    return {figure.name: figure for figure in drawn if figure is not None}


def values(figure: Figure, key: str) -> list[dict[str, Any]]:
    """The rows that hold a key, of all layers."""
    rows = [row for rows in figure.spec["datasets"].values() if isinstance(rows, list) for row in rows]
    return [row for row in rows if key in row]


def test_every_design_has_its_figure(figures: dict[str, Figure]) -> None:
    wanted = LADDER | {
        f"{name}-{kind}"
        for name in ("ladder", "unroll", "both_bases", "steps", "grid")
        for kind in ("forest", "samples")
    }
    assert set(figures) == wanted | {"both_bases-interaction", "grid-interaction", "steps-waterfall"}


def test_each_is_valid_and_says_what_it_shows(figures: dict[str, Figure]) -> None:
    for figure in figures.values():
        alt.Chart.from_dict(printable(figure.spec, 500))  # raises for what is not Vega-Lite
        assert len(figure.alt) > 20
        assert figure.source.endswith((".csv", ".csv.gz"))


def test_a_forest_holds_the_ratios_of_the_csv(figures: dict[str, Figure], results: Results) -> None:
    drawn = {row["label"]: 1.0 + row["change"] for row in values(figures["unroll-forest"], "change")}
    listed = {
        f"{row['variable']}: {row['base_level']} to {row['level']}": float(row["ratio"])
        for row in results.comparisons
        if row["experiment"] == "unroll"
    }
    assert {label: ratio for label, ratio in drawn.items() if not label.startswith("A/A")} == pytest.approx(
        listed, rel=1e-5
    )
    assert any(label.startswith("A/A on 01_first") for label in drawn)


def test_the_ladder_stands_beside_what_was_published(figures: dict[str, Figure], results: Results) -> None:
    bars = {row["kernel"]: row["share"] for row in values(figures["ladder-speed"], "text")}
    listed = {
        row["kernel"]: float(row["pct_of_cublas"])
        for row in results.rows_of("ladder")
        if row["pct_of_cublas"]
    }
    assert list(bars) == ["00_library", "01_first", "02_second", "03_third"]
    assert bars["00_library"] == 100.0
    assert {kernel: bars[kernel] for kernel in ("01_first", "02_second")} == pytest.approx(
        {k: listed[k] for k in ("01_first", "02_second")}
    )
    published = {(row["kernel"], row["share"]) for row in values(figures["ladder-speed"], "source")}
    assert published == {("01_first", 40.0), ("03_third", 90.5)}


def test_samples_are_those_of_the_csv(figures: dict[str, Figure], results: Results) -> None:
    taken = results.samples("unroll")
    spec = json.dumps(figures["unroll-samples"].spec)
    (table,) = [text for text in figures["unroll-samples"].spec["datasets"].values() if isinstance(text, str)]
    rows = list(csv.DictReader(table.splitlines()))
    assert len(rows) == len(taken)
    assert [float(row["time"]) for row in rows] == pytest.approx(
        [sample.time_ms for sample in taken], rel=1e-4
    )
    assert "#aa" in spec


def test_a_waterfall_adds_up(figures: dict[str, Figure]) -> None:
    rows = values(figures["steps-waterfall"], "kind")
    steps = [row for row in rows if row["kind"] in ("gain", "loss")][:2]
    assert steps[0]["after"] == steps[1]["before"]
    assert next(row["after"] for row in rows if row["kind"] == "start") == steps[0]["before"]
    assert next(row["after"] for row in rows if row["kind"] == "end") == steps[1]["after"]


def test_stalls_sum_to_those_of_the_table(figures: dict[str, Figure], results: Results) -> None:
    drawn: dict[str, float] = {}
    for row in values(figures["ladder-stalls"], "warps"):
        drawn[row["kernel"]] = drawn.get(row["kernel"], 0.0) + row["warps"]
    listed = {
        row["kernel"]: sum(float(row[c]) for c in row if c.startswith("ncu_stall_") and row[c])
        for row in results.rows_of("ladder")
    }
    assert drawn == pytest.approx(listed, rel=1e-5)
    written = {row["kernel"]: float(row["waiting"]) for row in values(figures["ladder-stalls"], "waiting")}
    assert written == pytest.approx(listed, rel=1e-2)


def test_without_a_gpu_only_what_needs_none_is_drawn(bare: Path) -> None:
    drawn = [drawing.draw() for drawing in drawings(read_results(bare / "results"), bare)]
    assert {figure.name for figure in drawn if figure is not None} == {"ladder-bound"}


def test_a_printable_figure_has_colours_of_its_own(figures: dict[str, Figure]) -> None:
    for figure in figures.values():
        alone = json.dumps(printable(figure.spec, 500))
        assert "var(--" not in alone
        assert '"container"' not in alone
    assert "var(--" in json.dumps(CONFIG)
