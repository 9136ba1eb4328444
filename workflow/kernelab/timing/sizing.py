"""How many launches make a sample. Pure.

Event times have a resolution of about half a microsecond, so a short launch is repeated until its sample lasts
`sample_ms`. How it is repeated depends on the method variable `l2`:

cold    every launch is preceded by its own flush and enclosed by its own two events, and the sample is the mean:
        so every launch is cold, and the resolution averages out. A launch of `sample_ms` is timed once,
        exactly as nvbench's cold measurement does.
hot     one untimed launch, then all launches back to back between two events.
"""

from __future__ import annotations

import math

MOST_COLD = 64
MOST_QUEUED = 512
"""Kernels that wait behind the spin kernel. The driver's queue holds about 1,024; a full one would block the host,
which then could not release the spin kernel."""


def launches(estimate_ms: float, sample_ms: float, l2: str, kernels_per_launch: int = 1) -> int:
    """Launches of one sample.

    Args:
        estimate_ms: time of one launch, from the warm-up.
        sample_ms: shortest sample.
        l2: cold or hot.
        kernels_per_launch: kernels that one launch of the arm's sequence queues.
    """
    queued = max(1, kernels_per_launch)
    # A cold launch queues a flush, a possible restore of its output and two events beside its kernels.
    most = min(MOST_COLD, MOST_QUEUED // (queued + 4)) if l2 == "cold" else MOST_QUEUED // queued
    if estimate_ms * most <= sample_ms:
        return max(1, most)
    return max(1, min(math.ceil(sample_ms / estimate_ms), most))
