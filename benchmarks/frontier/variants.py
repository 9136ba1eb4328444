"""Writes .frontier/variants.json: variants of rungs 21 and 23 for search.py.

Of rung 23 first the best of run 3, with and without MOVE_QUADS, then the best that screen.py found, with MOVE_QUADS (every
fourth without), then some drawn at random with a fixed seed; of rung 21 the last alone.

Usage: PYTHONPATH=workflow python3 benchmarks/frontier/variants.py [how many]     needs no GPU
Most settings only move instructions about, and ptxas answers with another schedule and another choice of registers: in run 1
such variants of one design lay 2 points apart. What is drawn are the catalogue's own parameters, within its constraints.
"""

from __future__ import annotations

import json
import random
import sys
from typing import Any

from describe import WORK, catalogue, describe_build, describe_run
from problems import TIMES

SCREENED = WORK / "screened.json"
SHARES = {"23_spare_warps": 0.97, "21_stream_k": 0.03}
AT_RANDOM = 0.1  # share of rung 23's variants, where there are screened ones
# The ten best of run 3 at 4096 cubed (timed again), in the order of SPACES.
ANCHORS = """
8 56 false all serpentine 3 before_rows 0 after_last_step 2 row_1032
7 40 false last serpentine 1 before_rows 0 after_last_step 2 row_1032
9 56 false all serpentine 3 after_first_quad 0 after_last_step 2 row_1032
9 40 false all serpentine 3 after_each_quad 0 after_last_step 8 row_1032
6 40 false all serpentine 1 before_rows 0 after_last_step 4 row_1032
6 56 false last serpentine 1 after_each_quad 0 after_last_step 2 row_1032
9 40 false all serpentine 1 before_rows 0 in_last_step 2 row_1032
9 56 false last serpentine 1 before_rows 0 after_last_step 4 row_3210
8 56 false all serpentine 3 after_each_quad 0 after_last_step 4 row_1032
6 40 false all serpentine 1 before_rows 0 after_last_step 2 row_1032
"""
# Levels and their weights, larger where ptxas leaves few register-bank conflicts. A parameter that is not here keeps its
# default.
ORDERS: dict[str, dict[str, int]] = {
    "SHARED_TILES": {"last": 1, "all": 1},
    "FFMA_ORDER": {"serpentine": 12, "serpentine_by_step": 2, "rows": 1},
    "QUAD_ORDER": {"0": 3, "1": 1, "2": 1, "3": 1, "4": 1},
    "LOAD_ORDER": {"before_rows": 3, "after_first_quad": 1, "after_each_quad": 1},
    "RELEASE_AT": {"after_last_step": 2, "in_last_step": 1},
    "READ_ROWS": {"2": 2, "4": 2, "8": 1},
    "PARTIALS": {"row_1032": 6, "row_3210": 3, "column_1032": 1, "scaled": 2},
}
TURNS: dict[str, dict[str, int]] = {
    "BK": {"14": 3, "12": 2},
    "AHEAD": {"4": 2, "3": 1, "5": 1},
    "POLL_AT": {"8": 1, "9": 1, "10": 2, "11": 3, "12": 2},
    "FILL_AT": {"with_wait": 2, "1": 1, "2": 2, "3": 1},
    **ORDERS,
}
SPACES = {
    "21_stream_k": TURNS,
    "23_spare_warps": {
        "POLL_AT": {"2": 1, "3": 1, "4": 1, "5": 1, "6": 2, "7": 2, "8": 3, "9": 2, "10": 2, "11": 1},
        "MOVER_REGISTERS": {"40": 2, "56": 1},
        "MOVE_QUADS": {"false": 1, "true": 3},
        "SHARED_TILES": {"last": 1, "all": 2},
        "FFMA_ORDER": {"serpentine": 4, "serpentine_backwards": 2, "serpentine_by_step": 1},
        "QUAD_ORDER": {"0": 1, "1": 2, "2": 1, "3": 2},
        "LOAD_ORDER": {
            "before_rows": 2,
            "after_first_quad": 1,
            "after_each_quad": 1,
            "inside_first_quads": 1,
            "inside_next_quads": 1,
        },
        "A_LATE": {"0": 8, "1": 3, "2": 1, "3": 1},
        "RELEASE_AT": {"after_last_step": 3, "in_last_step": 1},
        "READ_ROWS": {"2": 3, "4": 2, "8": 1},
        "PARTIALS": {"row_1032": 3, "single": 3, "row_3210": 1},
    },
}


def main(count: int) -> None:
    """Draws the variants; the defaults of each rung come first."""
    cat = catalogue()
    random.seed(23)
    drawn: dict[str, dict[str, Any]] = {}
    for name, share in SHARES.items():
        kernel, space, wanted = cat.kernels[name], SPACES[name], round(count * share)
        defaults = kernel.defaults()
        seen: list[dict[str, str]] = []
        chosen = [{}, *_chosen(name, round(wanted * (1 - AT_RANDOM)))]
        while len(seen) < wanted:
            levels = (
                chosen.pop(0)
                if chosen
                else {key: random.choices(list(w), list(w.values()))[0] for key, w in space.items()}
            )
            every = {**defaults, **levels}
            if every in seen or kernel.violated(every) is not None:
                continue
            seen.append(every)
            changed = {key: level for key, level in levels.items() if level != defaults[key]}
            build = describe_build(cat, name, changed)
            runs = {
                problem: describe_run(cat, name, changed, values)
                for problem, values in TIMES.items()
                if problem != "square_8192"
            }
            drawn[build["label"]] = {
                "kernel": name,
                "settings": {key: every[key] for key in space},
                "build": build,
                "runs": runs,
            }
    (WORK / "variants.json").write_text(json.dumps(drawn))
    print(f"{len(drawn)} variants in {WORK.name}/variants.json")


def _chosen(name: str, most: int) -> list[dict[str, str]]:
    """The anchors and what screen.py found, best first."""
    if name != "23_spare_warps":
        return []
    chosen: list[dict[str, str]] = []
    for line in ANCHORS.strip().splitlines():
        levels = dict(zip(SPACES[name], line.split(), strict=True))
        chosen += [{**levels, "MOVE_QUADS": "true"}, levels]
    found = json.loads(SCREENED.read_text()) if SCREENED.exists() else []
    for number, row in enumerate(row for row in found if row["kernel"] == name):
        chosen.append({**row["levels"], "MOVE_QUADS": "false" if number % 4 == 3 else "true"})
    return chosen[:most]


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 400)
