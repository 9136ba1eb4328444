"""A recorded comparison as the verdict that it was: what claims and comparisons between boxes are judged by."""

from __future__ import annotations

from kernelab.compare.verdict import Kind, Note, Verdict
from kernelab.records.compare import ComparedPair, Ratio
from kernelab.statistics.estimate import Estimate, from_moments
from kernelab.statistics.policy import VerdictPolicy


def verdict_of(pair: ComparedPair, policy: VerdictPolicy) -> Verdict:
    """The verdict that a record holds."""

    def estimate(ratio: Ratio | None) -> Estimate | None:
        if ratio is None:
            return None
        return from_moments(
            ratio.log_mean,
            ratio.standard_error,
            ratio.degrees,
            alpha=policy.alpha,
            processes=pair.processes,
            rounds=pair.rounds,
        )

    return Verdict(
        kind=Kind(pair.verdict),
        direction=pair.direction,
        reason=pair.reason,
        notes=tuple(Note(note) for note in pair.notes),
        time=estimate(pair.ratio),
        cycles=estimate(pair.cycles),
        clock=estimate(pair.clock),
        aa_half_width=pair.aa_half_width,
        p_value=pair.p_value,
        levels=pair.levels,
    )
