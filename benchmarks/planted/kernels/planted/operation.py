"""The reference of the planted work: every chain converges to 2 x, and there are eight."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


def reference(problem: Mapping[str, int | float], arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """y = 16 x in float64."""
    return {"y": 16.0 * arrays["x"].astype(np.float64)}
