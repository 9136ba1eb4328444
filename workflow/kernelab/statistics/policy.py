"""The thresholds of a verdict, fixed before anything is measured."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernelab.plan.config import TimingPolicy


@dataclass(frozen=True)
class VerdictPolicy:
    """What a verdict demands of the measurement.

    Fractions, not percent; effects are fractions of time (0.01 is 1%).

    alpha               error rate of each test; the intervals are 1 - alpha and 1 - 2 alpha
    margin              two arms whose times differ by less are equivalent
    smallest_effect     a difference that is smaller does not count, however certain
    throttled_share     a session with more of its rounds throttled is unstable
    processes           fresh processes of a session (3 under `quick`)
    extended_processes  processes after the one extension; equal to `processes` where there is none
    extend_above        the 95% half-width (log ratio) above which a session is extended
    claim_tolerance     a claimed figure is met within `margin`, or within this share of its effect

    Raises ValueError, naming the field, for a value out of range.
    """

    alpha: float = 0.05
    margin: float = 0.01
    smallest_effect: float = 0.005
    throttled_share: float = 0.2
    processes: int = 6
    extended_processes: int = 12
    extend_above: float = 0.005
    claim_tolerance: float = 0.1

    def __post_init__(self) -> None:
        if not 0.0 < self.alpha < 0.5:
            raise ValueError(f"policy alpha is {self.alpha}; it must lie between 0 and 0.5")
        for name in ("margin", "smallest_effect", "extend_above"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0.0):
                raise ValueError(f"policy {name} is {value}; it must be a positive fraction, as 0.01 for 1%")
        for name in ("throttled_share", "claim_tolerance"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise ValueError(f"policy {name} is {getattr(self, name)}; it must lie in [0, 1)")
        if self.processes < 2:
            raise ValueError(f"policy processes is {self.processes}; an interval needs at least two")
        if self.extended_processes < self.processes:
            raise ValueError(
                f"policy extended_processes is {self.extended_processes},"
                f" fewer than processes ({self.processes})"
            )

    @classmethod
    def of_timing(cls, timing: TimingPolicy) -> VerdictPolicy:
        """The thresholds of sessions that are timed by a policy.

        A first stage of one process has no spread: all processes then count as one stage, of two at least.
        """
        first = timing.processes if timing.processes > 1 else timing.extend_to
        return cls(
            processes=max(2, first),
            extended_processes=max(2, timing.extend_to),
            extend_above=timing.half_width,
        )

    @property
    def log_margin(self) -> float:
        """The margin as a log ratio: symmetric, so that swapping the arms cannot change a verdict."""
        return math.log1p(self.margin)

    @property
    def log_smallest_effect(self) -> float:
        """The smallest effect that counts, as a log ratio."""
        return math.log1p(self.smallest_effect)


QUICK = VerdictPolicy(processes=3, extended_processes=3)
"""The policy of `quick`: three processes, no extension."""
