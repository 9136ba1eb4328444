"""How well an order agrees with measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

RESAMPLES = 2000


@dataclass(frozen=True)
class Agreement:
    """Spearman's rank correlation over `count` configurations, and its 95% interval by bootstrap."""

    count: int
    rho: float
    low: float
    high: float


def spearman(predicted: ArrayLike, measured: ArrayLike) -> float:
    """Spearman's rank correlation: Pearson's of the ranks, ties sharing their mean rank. NaN where one side is constant."""
    first, second = rankdata(predicted), rankdata(measured)
    first, second = first - first.mean(), second - second.mean()
    spread = float(np.sqrt((first @ first) * (second @ second)))
    return float(first @ second) / spread if spread else float("nan")


def agreement(predicted: Sequence[float], measured: Sequence[float], seed: int = 1) -> Agreement:
    """Rank correlation with its interval: the percentiles of RESAMPLES draws of whole configurations, with replacement.

    Raises:
        ValueError: fewer than three configurations.
    """
    if len(predicted) < 3:
        raise ValueError("three configurations at least are needed for a rank correlation")
    first, second = np.asarray(predicted, float), np.asarray(measured, float)
    random = np.random.default_rng(seed)
    draws = random.integers(0, len(first), (RESAMPLES, len(first)))
    with np.errstate(invalid="ignore"):
        found = [spearman(first[draw], second[draw]) for draw in draws]
    low, high = np.nanpercentile(found, [2.5, 97.5])
    return Agreement(len(first), spearman(first, second), float(low), float(high))


def regret_pct(predicted: Sequence[float], measured: Sequence[float], tried: int) -> float:
    """How much slower than the best of all the best is of the `tried` that were predicted fastest, in percent."""
    order = np.argsort(np.asarray(predicted, float), kind="stable")[:tried]
    values = np.asarray(measured, float)
    return float(100 * (values[order].min() / values.min() - 1))
