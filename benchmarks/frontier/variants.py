"""Writes .frontier/variants.json: variants of probe.cu for search.py, drawn at random with a fixed seed.

Usage: python3 benchmarks/frontier/variants.py
Most settings only move instructions about, and ptxas answers with another schedule and another choice of registers: in run 1
such variants of one design lay 2 points apart.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

WORK = Path(__file__).resolve().parents[2] / ".frontier"

# columns of a thread tile, k-steps, transposition in the background, one seldom branch, how many
KINDS = [(8, 14, 0, 1, 15), (8, 14, 1, 0, 60), (8, 14, 1, 1, 200), (8, 12, 1, 1, 20)]
KINDS += [(12, 8, 0, 1, 60), (12, 10, 0, 1, 20), (12, 10, 1, 1, 20), (12, 8, 1, 1, 130)]


def draw(columns: int, depth: int, background: int, merged: int) -> dict[str, int]:
    """One variant, as macros of probe.cu."""
    order = random.choice([1, 1, 1, 1, 1, 4])
    place = 0 if order == 4 else random.choice([0, 0, 1, 2, 2, 3])
    variant = {
        "TN": columns,
        "BK": depth,
        "PEEK": depth - random.choice([2, 2, 3, 3, 4, 5]),
        "ISS": 2 if merged else random.choice([0, 1, 2, 3, 4, 5]),
        "LA": 4,
        "LDP": place,
        "ORD": order,
        "RAWQ": random.choice([0, 1, 1, 2]),
        "QO": random.choice([0, 0, 0, 1, 2, 3]),
        "REL": random.choice([0, 0, 1]),
        "PAR": random.choice([0, 1]),
        "MRG": merged,
        "OV": background,
    }
    if place == 0:
        variant |= {"ABF": random.choice([0, 1]), "SW": random.choice([0, 0, 0, 1, 2])}
    return variant


def main() -> None:
    """Writes the manifest."""
    random.seed(11)
    found = {}
    for *kind, count in KINDS:
        for _ in range(count):
            variant = draw(*kind)
            name = "probe_" + "_".join(f"{key}{value}" for key, value in variant.items())
            found[name] = {"name": name, "src": "probe", "d": variant, "entry": "o", "tr": "tr64"}
    listed = list(found.values())
    random.shuffle(listed)
    WORK.mkdir(exist_ok=True)
    (WORK / "variants.json").write_text(json.dumps(listed))
    print(f"{len(listed)} variants in {WORK.name}/variants.json")


if __name__ == "__main__":
    main()
