"""The same question on two bases, cards or dates: does the answer agree, flip or fade?"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kernelab.compare.verdict import Kind, Verdict
from kernelab.statistics.estimate import Estimate, difference, from_moments
from kernelab.statistics.policy import VerdictPolicy


class Answer(StrEnum):
    """How the second answer stands to the first."""

    AGREE = "agree"
    FLIP = "flip"
    FADE = "fade"
    UNCLEAR = "unclear"


@dataclass(frozen=True)
class Agreement:
    """Two verdicts on one question, set side by side.

    difference    ratio of the second over ratio of the first, with its interval; None where one was not timed
    size_differs  the interval of the difference excludes 1 and the difference exceeds the smallest effect
    """

    answer: Answer
    reason: str
    difference: Estimate | None
    size_differs: bool


def agreement(first: Verdict, second: Verdict, policy: VerdictPolicy) -> Agreement:
    """Whether two verdicts on the same change agree. Symmetric in the two, but for the ratio of `difference`.

    flip     both moved, in opposite directions
    fade     one moved, the other did not (or only within the margin), and the sizes differ
    agree    both moved the same way, or neither moved by more than the margin
    unclear  one of them is no answer (inconclusive, unstable, confounded, not measured), or one moved and
             the other did not, yet the interval of their difference does not tell them apart

    Identical code is an answer without a clock: its ratio is exactly 1.
    """
    gap = _difference(first, second, policy)
    differs = gap is not None and _apart(gap, policy)
    for place, verdict in (("first", first), ("second", second)):
        if verdict.kind in (Kind.INCONCLUSIVE, Kind.UNSTABLE, Kind.CONFOUNDED, Kind.NOT_MEASURED):
            return Agreement(Answer.UNCLEAR, f"the {place} is {verdict.kind}", gap, differs)
    pair = f"{first.kind}, then {second.kind}"
    if first.direction * second.direction < 0:
        return Agreement(Answer.FLIP, pair, gap, differs)
    if _large(first) == _large(second):
        return Agreement(Answer.AGREE, pair, gap, differs)
    if differs:
        return Agreement(Answer.FADE, pair, gap, differs)
    if first.direction == second.direction:
        return Agreement(Answer.AGREE, pair, gap, differs)
    return Agreement(Answer.UNCLEAR, f"{pair}, but the two cannot be told apart", gap, differs)


def _large(verdict: Verdict) -> bool:
    return verdict.kind in (Kind.FASTER, Kind.SLOWER)


def _apart(gap: Estimate, policy: VerdictPolicy) -> bool:
    return gap.p_different() < policy.alpha and abs(gap.log_mean) > policy.log_smallest_effect


def _difference(first: Verdict, second: Verdict, policy: VerdictPolicy) -> Estimate | None:
    one, other = (_ratio(verdict, policy) for verdict in (first, second))
    return None if one is None or other is None else difference(one, other)


def _ratio(verdict: Verdict, policy: VerdictPolicy) -> Estimate | None:
    if verdict.kind is Kind.IDENTICAL_CODE:
        return from_moments(0.0, 0.0, float("inf"), alpha=policy.alpha, processes=0, rounds=0)
    return verdict.time
