"""The one pre-declared extension, and the interval of a mean over processes: the statistics of kernelab.statistics."""

from __future__ import annotations

from collections.abc import Sequence

from kernelab.plan.config import TimingPolicy
from kernelab.statistics.estimate import estimate, estimate_medians, extension
from kernelab.statistics.policy import VerdictPolicy
from kernelab.timing.groups import Group
from kernelab.timing.rounds import pair_rounds
from kernelab.timing.samples import Sample


def extension_due(
    samples: Sequence[Sample], session: str, groups: Sequence[Group], policy: TimingPolicy
) -> tuple[bool, str]:
    """Whether a session goes on to its extended number of processes, and why or why not.

    It looks at the width of the intervals of all ratios, the A/A controls among them, and never at a ratio.
    """
    if policy.processes < 2:
        return False, "one process gives no interval"
    verdict = VerdictPolicy.of_timing(policy)
    pairs = dict.fromkeys(pair for group in groups for pair in (*group.controls, *group.pairs))
    estimates = [
        estimate(rounds, verdict) for pair in pairs if (rounds := pair_rounds(samples, session, pair).time)
    ]
    if not estimates:
        return False, "nothing is compared"
    due = extension(estimates, verdict)
    return due.needed, due.reason


def interval(values: Sequence[float], policy: TimingPolicy) -> tuple[float, float]:
    """The 95% t interval of the mean of one value a process (at least two), narrower where a session was extended
    only as far as the first stage's spread allows."""
    verdict = VerdictPolicy.of_timing(policy)
    found = estimate_medians(values, verdict, rounds=len(values))
    return found.log_mean - found.half_width, found.log_mean + found.half_width
