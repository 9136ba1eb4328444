"""A ratio with its interval, from per-process, per-round log ratios.

The process is the unit. Rounds of one process share its memory placement and its clocks, so they are
not independent: they are reduced to one median a process, and Student's t interval is taken over those
medians. After the pre-declared extension the spread of the first stage alone sets the interval's width
(Stein 1945): its decision to go on looked at that spread, so the spread of all processes would be too small.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from kernelab.statistics.policy import VerdictPolicy

Rounds = Sequence[ArrayLike]
"""One sequence a process, of one value a round; processes in the order in which they ran."""

LARGEST_LOG_RATIO = 50.0
"""A ratio of e^50 is a unit error, never a measurement."""


@dataclass(frozen=True)
class Estimate:
    """A ratio arm / base and its t intervals.

    ratio, low, high    the ratio and its 1 - alpha interval (95%)
    low90, high90       the 1 - 2 alpha interval (90%), by which equivalence is judged
    half_width          half the 1 - alpha interval in log ratio (0.002 is about 0.2%)
    processes, rounds   how many entered, rounds over all processes
    log_mean, standard_error, degrees, alpha   what the intervals were made from
    """

    ratio: float
    low: float
    high: float
    low90: float
    high90: float
    half_width: float
    processes: int
    rounds: int
    log_mean: float
    standard_error: float
    degrees: float
    alpha: float

    def p_different(self) -> float:
        """Two-sided p value of the ratio being 1: below alpha exactly when [low, high] excludes 1."""
        if self.standard_error == 0.0:
            return 1.0 if self.log_mean == 0.0 else 0.0
        return 2.0 * student_cdf(self.degrees, -abs(self.log_mean) / self.standard_error)

    def p_outside(self, log_margin: float) -> float:
        """P value of the ratio lying outside the margin, by two one-sided tests (Schuirmann 1987).

        Below alpha exactly when [low90, high90] lies inside the margin.
        """
        room = log_margin - abs(self.log_mean)
        if self.standard_error == 0.0:
            return 0.0 if room > 0.0 else 1.0
        return student_cdf(self.degrees, -room / self.standard_error)


@dataclass(frozen=True)
class Extension:
    """Whether a session goes on to `extended_processes`, and why."""

    needed: bool
    reason: str


def process_medians(rounds: Rounds, what: str = "log ratios") -> tuple[list[float], int]:
    """The median of each process's rounds, and the number of rounds in all.

    Raises ValueError, starting with `what`, for no process, an empty one, or a value that is no log ratio.
    """
    if len(rounds) == 0:
        raise ValueError(f"{what}: no process was measured")
    medians, total = [], 0
    for number, values in enumerate(rounds, start=1):
        array = np.asarray(values, dtype=np.float64)
        if array.ndim != 1 or array.size == 0:
            raise ValueError(f"{what}: process {number} must hold one value a round, and at least one round")
        if not (np.abs(array) <= LARGEST_LOG_RATIO).all():  # also catches NaN
            raise ValueError(f"{what}: process {number} holds a value that is not a finite log ratio")
        medians.append(float(np.median(array)))
        total += array.size
    return medians, total


def estimate(rounds: Rounds, policy: VerdictPolicy, what: str = "log ratios") -> Estimate:
    """The ratio and its intervals from per-process, per-round log ratios.

    Raises ValueError as `process_medians`, and for fewer than two processes.
    """
    medians, total = process_medians(rounds, what)
    return estimate_medians(medians, policy, rounds=total, what=what)


def estimate_medians(
    medians: Sequence[float], policy: VerdictPolicy, *, rounds: int, what: str = "log ratios"
) -> Estimate:
    """As `estimate`, from the medians themselves (log ratios, in the order in which the processes ran)."""
    count = len(medians)
    if count < 2:
        raise ValueError(f"{what}: {count} process gives no interval; at least two are needed")
    # fsum: the result cannot depend on the order of the processes of a stage.
    stage = medians[: policy.processes] if count > policy.processes else medians
    centre = math.fsum(stage) / len(stage)
    degrees = len(stage) - 1
    variance = math.fsum((value - centre) ** 2 for value in stage) / degrees
    return from_moments(
        math.fsum(medians) / count,
        math.sqrt(variance / count),
        degrees,
        alpha=policy.alpha,
        processes=count,
        rounds=rounds,
    )


def from_moments(
    log_mean: float, standard_error: float, degrees: float, *, alpha: float, processes: int, rounds: int
) -> Estimate:
    """The estimate whose t intervals have this centre, standard error (log ratio) and degrees of freedom."""
    wide = student_quantile(degrees, 1.0 - alpha / 2.0) * standard_error
    narrow = student_quantile(degrees, 1.0 - alpha) * standard_error
    return Estimate(
        ratio=math.exp(log_mean),
        low=math.exp(log_mean - wide),
        high=math.exp(log_mean + wide),
        low90=math.exp(log_mean - narrow),
        high90=math.exp(log_mean + narrow),
        half_width=wide,
        processes=processes,
        rounds=rounds,
        log_mean=log_mean,
        standard_error=standard_error,
        degrees=degrees,
        alpha=alpha,
    )


def difference(first: Estimate, second: Estimate) -> Estimate:
    """The ratio second / first of two ratios from separate processes, with Welch's interval (1947).

    Raises ValueError where the two were made at different alpha.
    """
    if first.alpha != second.alpha:
        raise ValueError(f"estimates at alpha {first.alpha} and {second.alpha} cannot be compared")
    a, b = first.standard_error**2, second.standard_error**2
    if a + b == 0.0:
        degrees = min(first.degrees, second.degrees)
    else:
        # Shares, not squares of variances: those underflow for very quiet measurements.
        share = a / (a + b)
        degrees = 1.0 / (share**2 / first.degrees + (1.0 - share) ** 2 / second.degrees)
    return from_moments(
        second.log_mean - first.log_mean,
        math.sqrt(a + b),
        degrees,
        alpha=first.alpha,
        processes=first.processes + second.processes,
        rounds=first.rounds + second.rounds,
    )


def extension(estimates: Sequence[Estimate], policy: VerdictPolicy) -> Extension:
    """Whether a session's one extension is due: an interval is too wide. It never looks at a ratio.

    estimates: of every arm of the session that runs in its first stage, the A/A control among them.
    Raises ValueError where there is none.
    """
    if not estimates:
        raise ValueError("a session without estimates cannot be extended")
    count = max(item.processes for item in estimates)
    widest = max(item.half_width for item in estimates)
    if policy.extended_processes <= policy.processes:
        return Extension(False, "the policy has no extension")
    if count != policy.processes:
        return Extension(False, f"{count} processes ran; an extension starts from {policy.processes}, once")
    if widest <= policy.extend_above:
        return Extension(False, f"the widest interval is +-{widest:.2%}, at most {policy.extend_above:.2%}")
    return Extension(
        True,
        f"the widest interval is +-{widest:.2%}, above {policy.extend_above:.2%}:"
        f" {policy.processes} to {policy.extended_processes} processes",
    )


@lru_cache(maxsize=1024)
def student_quantile(degrees: float, probability: float) -> float:
    """The quantile of Student's t distribution."""
    from scipy.special import stdtrit  # a tenth of the import time of scipy.stats

    return float(stdtrit(degrees, probability))


def student_cdf(degrees: float, value: float) -> float:
    """The distribution function of Student's t."""
    from scipy.special import stdtr

    return float(stdtr(degrees, value))
