"""Figures of the snapshots as the pages quote them, and what of a page is in no snapshot."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[3]
RUNS = ROOT / "benchmarks" / "frontier"  # run1.csv to run6.csv
SNAPSHOT = ROOT / "results" / "snapshots" / "nvidia-h200"
FRONTIER = SNAPSHOT / "frontier"
FRONTIER_24 = SNAPSHOT / "frontier_24"  # rung 24, on another card
FRONTIER_25 = SNAPSHOT / "frontier_25"  # rungs 13 to 25, on a third

FIGURE = re.compile(r"\d+\.\d+|\d+ ?%|\d+ (?:ms|MB|GB|registers|million|warps)")


def rows_of(name: str, folder: Path = SNAPSHOT) -> list[dict[str, str]]:
    with (folder / name).open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def with_interval(row: Mapping[str, str], *columns: str) -> str:
    """A figure and its interval, from three columns; by default the ratio of a comparison."""
    value, low, high = (float(row[column]) for column in columns or ("ratio", "ratio_low", "ratio_high"))
    return f"{value:.4f} ({low:.4f} to {high:.4f})"


def size_line(row: Mapping[str, str], theirs: Mapping[str, str], ours: Mapping[str, str]) -> str:
    """A comparison with cuBLAS, with both arms' times, as a line of docs/frontier.md."""
    shape = " x ".join(ours[side] for side in "mnk")
    beta = "" if ours["beta"] == "0" else f", beta {ours['beta']}"
    times = " | ".join(f"{float(arm['time_ms']):#.4g}" for arm in (theirs, ours))
    speed, low, high = (100 / float(row[bound]) for bound in ("ratio", "ratio_high", "ratio_low"))
    return f"| `{ours['problem']}` | {shape}{beta} | {times} | {with_interval(row)} | {speed:.1f} ({low:.1f} to {high:.1f}) |"


def rung_line(row: Mapping[str, str], step: Mapping[str, str] | None) -> str:
    """An arm of the ladder, and its comparison with the one before, as a line of docs/frontier.md."""
    over = f"{with_interval(step)} | {step['verdict']} |" if step else "| |"
    return f"| `{row['kernel']}` | {float(row['time_ms']):.3f} | {float(row['pct_of_cublas']):.1f} | {over}"


def setting_line(row: Mapping[str, str]) -> str:
    """A comparison with the defaults, as a line of docs/frontier.md."""
    return f"| `{row['level']}` | {with_interval(row)} | {row['verdict']} |"


def one_line(text: str) -> str:
    return " ".join(text.split())


def unchecked(page: str, lines: Collection[str], facts: Iterable[str]) -> list[str]:
    """The measured figures of a page that stand neither in these of its lines nor in these phrases."""
    rest = one_line("\n".join(line for line in page.splitlines() if line not in lines))
    for fact in sorted(facts, key=len, reverse=True):
        rest = rest.replace(fact, "")
    return FIGURE.findall(rest)
