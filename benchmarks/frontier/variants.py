"""Writes .frontier/variants.json: variants of rungs 21 to 23 for search.py, drawn at random with a fixed seed.

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

SHARES = {"23_spare_warps": 0.66, "21_stream_k": 0.28, "22_late_transposition": 0.06}
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
    "22_late_transposition": TURNS,
    "23_spare_warps": {
        "BK": {"12": 30, "8": 1},
        "POLL_AT": {"4": 1, "6": 1, "7": 1, "8": 2, "9": 2, "10": 2},
        "MOVER_REGISTERS": {"40": 5, "56": 6, "72": 1},
        **ORDERS,
    },
}


def main(count: int) -> None:
    """Draws the variants; the defaults of each rung come first."""
    cat = catalogue()
    random.seed(23)
    drawn: dict[str, dict[str, Any]] = {}
    for name, share in SHARES.items():
        space, wanted = SPACES[name], round(count * share)
        seen: list[dict[str, str]] = []
        while len(seen) < wanted:
            levels = (
                {
                    key: random.choices(list(weights), list(weights.values()))[0]
                    for key, weights in space.items()
                }
                if seen
                else {}
            )
            every = {**cat.kernels[name].defaults(), **levels}
            if every in seen or int(every["POLL_AT"]) >= int(every["BK"]):
                continue
            seen.append(every)
            changed = {
                key: level for key, level in levels.items() if level != cat.kernels[name].defaults()[key]
            }
            build = describe_build(cat, name, changed)
            runs = {
                problem: describe_run(cat, name, changed, values)
                for problem, values in TIMES.items()
                if problem != "square_8192"
            }
            settings = {key: every[key] for key in space}
            drawn[build["label"]] = {
                "kernel": name,
                "settings": settings,
                "build": build,
                "runs": runs,
            }
    (WORK / "variants.json").write_text(json.dumps(drawn))
    print(f"{len(drawn)} variants in {WORK.name}/variants.json")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 480)
