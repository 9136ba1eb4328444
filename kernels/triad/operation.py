"""Triad, a = b + s c: the float64 reference."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


def reference(problem: Mapping[str, int | float], arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """a (n) in float64."""
    return {"a": arrays["b"].astype(np.float64) + problem["s"] * arrays["c"].astype(np.float64)}
