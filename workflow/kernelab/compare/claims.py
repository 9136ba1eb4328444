"""A claimed figure beside the measured one: does the claim hold here?

A claim of time, against a verdict, by the first line that applies:

    refused        the verdict is `confounded`
    not_measured   the verdict is `not_measured`
    inconclusive   the verdict is `inconclusive` or `unstable`
    claimed no difference:
        holds      `equivalent`, `within_margin` or `identical_code`
        stronger   otherwise: there is an effect where none was claimed
    claimed faster or slower:
        no_effect  `equivalent` or `identical_code`
        reversed   the measured direction is the other one
        holds      the claim has no figure, or its figure is not excluded: the 95% interval of the ratio
                   meets the claimed ratio's band
        weaker     the interval lies wholly on the side of the band that is nearer to no effect
        stronger   the interval lies wholly beyond the band

The band is, in log ratio, the claimed effect +- the larger of the margin (1%) and a tenth of that effect:
claims are quoted to one or two digits, and 6.4 times is no more precise than 4 per cent.

A claim about a count or a share (registers, wavefronts, stalls) has no interval: `change_status` and
`level_status` compare the figures themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from kernelab.compare.verdict import Kind, Verdict
from kernelab.statistics.estimate import Estimate
from kernelab.statistics.policy import VerdictPolicy


class Status(StrEnum):
    """What became of a claim."""

    HOLDS = "holds"
    REVERSED = "reversed"
    NO_EFFECT = "no_effect"
    WEAKER = "weaker"
    STRONGER = "stronger"
    REFUSED = "refused"
    INCONCLUSIVE = "inconclusive"
    NOT_MEASURED = "not_measured"


class Expect(StrEnum):
    """The direction that is claimed."""

    FASTER = "faster"
    SLOWER = "slower"
    EQUIVALENT = "equivalent"


@dataclass(frozen=True)
class TimeClaim:
    """A claim that a change makes a kernel faster, slower, or no different.

    ratio   the claimed time(arm) / time(base); None where only the direction is claimed

    Raises ValueError for a ratio that is not positive and finite, or contradicts the direction.
    """

    expect: Expect
    ratio: float | None = None

    def __post_init__(self) -> None:
        if self.ratio is None:
            return
        if not (math.isfinite(self.ratio) and self.ratio > 0.0):
            raise ValueError(f"a claimed time ratio of {self.ratio} is not positive and finite")
        fits = {
            Expect.FASTER: self.ratio < 1.0,
            Expect.SLOWER: self.ratio > 1.0,
            Expect.EQUIVALENT: self.ratio == 1.0,
        }
        if not fits[self.expect]:
            raise ValueError(
                f"a claim of {self.expect} contradicts its time ratio {self.ratio:g} (arm over base)"
            )

    @classmethod
    def by_percent(cls, expect: Expect, by_pct: float | None) -> TimeClaim:
        """`faster` by 4 is 4% less time (ratio 0.96), `slower` by 4 is 4% more (1.04).

        Raises ValueError for a percentage that is not positive, of 100 or more for `faster`, or given
        with `equivalent`.
        """
        if by_pct is None:
            return cls(expect)
        if expect is Expect.EQUIVALENT:
            raise ValueError("a claim of equivalent takes no percentage")
        if not (math.isfinite(by_pct) and by_pct > 0.0):
            raise ValueError(f"a claim of {expect} by {by_pct}% needs a positive percentage")
        if expect is Expect.FASTER and by_pct >= 100.0:
            raise ValueError(f"a claim of faster by {by_pct:g}% would take no time at all")
        return cls(expect, 1.0 - by_pct / 100.0 if expect is Expect.FASTER else 1.0 + by_pct / 100.0)


@dataclass(frozen=True)
class ClaimResult:
    """The status of a claim, and one phrase that says by which figures.

    measured: the ratio of times with its intervals, where one was measured (a refused claim shows it too).
    """

    status: Status
    reason: str
    measured: Estimate | None


_NO_ANSWER = {
    Kind.CONFOUNDED: Status.REFUSED,
    Kind.NOT_MEASURED: Status.NOT_MEASURED,
    Kind.INCONCLUSIVE: Status.INCONCLUSIVE,
    Kind.UNSTABLE: Status.INCONCLUSIVE,
}


def time_status(claim: TimeClaim, verdict: Verdict, policy: VerdictPolicy) -> ClaimResult:
    """The status of a claim of time, by the rule at the head of this module."""
    measured = verdict.time
    if verdict.kind in _NO_ANSWER:
        return ClaimResult(_NO_ANSWER[verdict.kind], f"{verdict.kind}: {verdict.reason}", measured)
    if claim.expect is Expect.EQUIVALENT:
        if verdict.kind in (Kind.FASTER, Kind.SLOWER):
            return ClaimResult(Status.STRONGER, f"no effect was claimed; it is {verdict.kind}", measured)
        return ClaimResult(Status.HOLDS, f"it is {verdict.kind}", measured)
    if verdict.direction == 0:
        return ClaimResult(Status.NO_EFFECT, f"it is {verdict.kind}", measured)
    if verdict.direction != (1 if claim.expect is Expect.SLOWER else -1):
        return ClaimResult(Status.REVERSED, f"claimed {claim.expect}, measured {_signed(verdict)}", measured)
    if claim.ratio is None or measured is None:
        return ClaimResult(Status.HOLDS, f"it is {verdict.kind}; no figure was claimed", measured)
    return _size_status(claim.ratio, measured, policy)


def _size_status(ratio: float, measured: Estimate, policy: VerdictPolicy) -> ClaimResult:
    claimed = abs(math.log(ratio))
    tolerance = max(policy.log_margin, policy.claim_tolerance * claimed)
    effect = abs(measured.log_mean)
    figures = (
        f"claimed {ratio:.4g}, measured {measured.ratio:.4f} ({measured.low:.4f} to {measured.high:.4f})"
    )
    if effect + measured.half_width < claimed - tolerance:
        return ClaimResult(Status.WEAKER, figures, measured)
    if effect - measured.half_width > claimed + tolerance:
        return ClaimResult(Status.STRONGER, figures, measured)
    return ClaimResult(Status.HOLDS, figures, measured)


def change_status(
    claimed: tuple[float, float], measured: tuple[float, float], *, resolution: float, policy: VerdictPolicy
) -> Status:
    """The status of a claimed change (base, arm) of a count or a share, as registers from 202 to 227.

    resolution: the smallest change that means anything, in the figure's own unit (0 for exact counts).
    `no_effect` where the measured change is no larger, `reversed` where it has the other sign, `weaker` or
    `stronger` where it misses the claimed change by more than a tenth of that and than the resolution.
    A claim of no change (equal figures) holds while the measured change is within the resolution, and is
    `stronger` otherwise. Raises ValueError for a value that is not finite, or a negative resolution.
    """
    _finite(*claimed, *measured, resolution)
    if resolution < 0.0:
        raise ValueError(f"a resolution of {resolution} is negative")
    wanted, found = claimed[1] - claimed[0], measured[1] - measured[0]
    if wanted == 0.0:
        return Status.HOLDS if abs(found) <= resolution else Status.STRONGER
    if abs(found) <= resolution:
        return Status.NO_EFFECT
    if (found > 0.0) != (wanted > 0.0):
        return Status.REVERSED
    return _within(abs(wanted), abs(found), max(resolution, policy.claim_tolerance * abs(wanted)))


def level_status(claimed: float, measured: float, *, resolution: float, policy: VerdictPolicy) -> Status:
    """The status of a claimed figure of one arm, as 0 bank conflicts or 41.7% occupancy.

    `weaker` where the measured figure is less, `stronger` where it is more, by more than a tenth of the
    claimed figure and than the resolution (its unit). Raises ValueError as `change_status`.
    """
    _finite(claimed, measured, resolution)
    if resolution < 0.0:
        raise ValueError(f"a resolution of {resolution} is negative")
    return _within(claimed, measured, max(resolution, policy.claim_tolerance * abs(claimed)))


def _within(claimed: float, measured: float, tolerance: float) -> Status:
    if abs(measured - claimed) <= tolerance:
        return Status.HOLDS
    return Status.WEAKER if measured < claimed else Status.STRONGER


def _finite(*values: float) -> None:
    if not all(math.isfinite(value) for value in values):
        raise ValueError("a claimed or measured figure is not a finite number")


def _signed(verdict: Verdict) -> str:
    return "faster" if verdict.direction < 0 else "slower"
