"""FFMA, y = f^k(x) with f(x) = a x + b: the float64 reference."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


def reference(problem: Mapping[str, int | float], arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """y (n) in float64, by the closed form: k steps move x to a^k (x - fixed) + fixed, with fixed = b / (1 - a).

    The kernel gets a and b as float32, so they are rounded here as well.
    """
    a, b = float(np.float32(problem["a"])), float(np.float32(problem["b"]))
    x, k = arrays["x"].astype(np.float64), int(problem["k"])
    if a == 1.0:
        return {"y": x + k * b}
    fixed = b / (1.0 - a)
    return {"y": a**k * (x - fixed) + fixed}
