"""The figures of the README are those of the snapshot, and what it names exists."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "README.md").read_text()
SNAPSHOT = ROOT / "results" / "snapshots" / "nvidia-h200"


def rows_of(name: str) -> list[dict[str, str]]:
    with (SNAPSHOT / name).open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_the_ladder_is_the_snapshots() -> None:
    for row in (row for row in rows_of("table.csv") if row["experiment"] == "ladder"):
        figures = (
            f"{float(row['time_ms']):.4g} | {float(row['tflops']):.2f} | {float(row['pct_of_cublas']):.1f} | "
            f"{row['registers']} | {row['occupancy_pct']} |"
        )
        assert f"| `{row['kernel']}` | {figures}" in TEXT


def test_the_verdicts_are_the_snapshots() -> None:
    known = {
        f"{r['verdict']} | {float(r['ratio']):.4f} ({float(r['ratio_low']):.4f} to {float(r['ratio_high']):.4f})"
        for r in rows_of("comparisons.csv")
        if r["ratio"]
    }
    shown = re.findall(r"\| (\w+ \| \d\.\d{4} \(\d\.\d{4} to \d\.\d{4}\)) \|", TEXT)
    assert len(shown) > 5
    assert set(shown) <= known


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#]+)\)", TEXT))))
def test_links_lead_somewhere(link: str) -> None:
    assert (ROOT / link).exists()


@pytest.mark.parametrize("name", sorted(set(re.findall(r"benchmarks/\w+\.py", TEXT))))
def test_benchmarks_exist(name: str) -> None:
    assert (ROOT / name).is_file()


def test_the_benchmark_figures_are_the_snapshots() -> None:
    agreement = rows_of("benchmarks/nvbench_agreement.csv")
    worst = max(abs(float(row["ratio"]) - 1.0) for row in agreement) * 100.0
    assert f"agree with nvbench to {worst:.2f}%" in TEXT
    pairs = rows_of("benchmarks/aa_on_hardware.csv")
    assert f"of {len(pairs)} comparisons of a kernel with itself none is called" in " ".join(TEXT.split())
    assert {row["verdict"] for row in pairs} == {"equivalent"}
    assert {row["covered"] for row in rows_of("benchmarks/planted_slowdown.csv")} == {"True"}
