"""The problems that arms are checked and timed at."""

from __future__ import annotations

from typing import Any


def _problem(m: int, n: int, k: int, alpha: float = 1.0, beta: float = 0.0) -> dict[str, Any]:
    return {"m": m, "n": n, "k": k, "alpha": alpha, "beta": beta}


CHECKS = {
    "edges": _problem(1000, 520, 333, 1.5, -0.5),
    "edges_aligned": _problem(1000, 520, 332, 1.5, -0.5),
    "wide": _problem(300, 4100, 77),
    "two_waves": _problem(4097, 1988, 129),
    "late_at_once": _problem(4100, 1988, 132, -1.0, 0.25),
    "late_in_slices": _problem(6000, 3000, 700),
    "odd": _problem(513, 1023, 255, 1.0, 1.0),
    "shallow": _problem(5000, 5000, 8),
}
TIMES = {
    "square_4096": _problem(4096, 4096, 4096),
    "square_1024": _problem(1024, 1024, 1024),
    "square_2048": _problem(2048, 2048, 2048),
    "square_8192": _problem(8192, 8192, 8192),
    "frontier_ragged": _problem(4001, 3996, 1023, 1.0, 0.5),
    "skinny": _problem(16384, 512, 4096),
    "deep": _problem(1024, 1024, 16384),
}
