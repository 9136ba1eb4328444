"""Figures of the snapshots as the pages quote them, and what of a page is in no snapshot."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[3]
SNAPSHOT = ROOT / "results" / "snapshots" / "nvidia-h200"
FRONTIER = SNAPSHOT / "frontier"

FIGURE = re.compile(r"\d+\.\d+|\d+ ?%|\d+ (?:ms|MB|GB|registers|million|warps)")


def rows_of(name: str, folder: Path = SNAPSHOT) -> list[dict[str, str]]:
    with (folder / name).open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def with_interval(row: Mapping[str, str], *columns: str) -> str:
    """A figure and its interval, from three columns; by default the ratio of a comparison."""
    value, low, high = (float(row[column]) for column in columns or ("ratio", "ratio_low", "ratio_high"))
    return f"{value:.4f} ({low:.4f} to {high:.4f})"


def one_line(text: str) -> str:
    return " ".join(text.split())


def unchecked(page: str, lines: Collection[str], facts: Iterable[str]) -> list[str]:
    """The measured figures of a page that stand neither in these of its lines nor in these phrases."""
    rest = one_line("\n".join(line for line in page.splitlines() if line not in lines))
    for fact in sorted(facts, key=len, reverse=True):
        rest = rest.replace(fact, "")
    return FIGURE.findall(rest)
