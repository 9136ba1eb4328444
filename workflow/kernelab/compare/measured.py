"""From a timing record and its samples to what a verdict is made of: log ratios inside one session, with their A/A control."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kernelab.compare.verdict import Comparison, Session
from kernelab.records.timing import SessionRecord, TimingRecord
from kernelab.timing.rounds import PairRounds, pair_rounds
from kernelab.timing.samples import Sample


@dataclass(frozen=True)
class Measured:
    """A timing record and the raw samples beside it."""

    record: TimingRecord
    samples: Sequence[Sample]

    def session_of(self, base: str, arm: str) -> SessionRecord | None:
        """The session that timed a comparison, or None."""
        for pair in self.record.pairs:
            if (pair.base, pair.arm) == (base, arm):
                return self.record.session(pair.session)
        return None

    def rounds(self, base: str, arm: str) -> PairRounds | None:
        """The log ratios of a comparison; None where it was not timed, or by fewer than two processes."""
        session = self.session_of(base, arm)
        if session is None:
            return None
        found = pair_rounds(self.samples, session.id, (base, arm))
        return found if len(found.time) > 1 else None

    def control(self, base: str, arm: str) -> tuple[str, str] | None:
        """The A/A control that speaks for a comparison: its base's own, or else its group's first."""
        session = self.session_of(base, arm)
        if session is None:
            return None
        together = next((group for group in session.groups if base in group and arm in group), [])
        controls = [
            (session.members[name].arm, name) for name in together if session.members[name].role == "aa"
        ]
        own = [control for control in controls if control[0] == base]
        return next(iter(own or controls), None)

    def why_not(self, base: str, arm: str) -> str:
        """Why a comparison has no ratio, in a phrase."""
        for name in (base, arm):
            timed = self.record.arms.get(name)
            if timed is not None and timed.status != "ok":
                return f"{name}: {timed.status}: {timed.note}".rstrip(": ")
        if self.session_of(base, arm) is None:
            return "the two arms were not timed in one session"
        if self.control(base, arm) is None:
            return "its session has no A/A control"
        return "an interval needs two processes or more"


def judged_comparison(
    name: str, measured: Measured, base: str, arm: str, confounds: tuple[str, ...], identical_code: bool
) -> tuple[Comparison, dict[str, Session]]:
    """What `verdict.judge` takes for one comparison, and the session that it refers to."""
    rounds, control, session = (
        measured.rounds(base, arm),
        measured.control(base, arm),
        measured.session_of(base, arm),
    )
    if rounds is None or control is None or session is None:
        return Comparison(name, confounds=confounds, identical_code=identical_code), {}
    aa = pair_rounds(measured.samples, session.id, control)
    # Two bases in one session have an A/A control each: to the rule they are two sessions.
    key = f"{session.id} {control[1]}"
    comparison = Comparison(name, key, rounds.time, rounds.cycles, confounds, identical_code)
    return comparison, {key: Session(aa.time, aa.throttled)}


def cell_rounds(
    samples: Sequence[Sample], session: str, members: Sequence[str]
) -> dict[str, list[list[float]]]:
    """Per member, per process: log time of each round that all the members took part in, both halves averaged.

    Empty lists where there is no such round.
    """
    visits: dict[tuple[int, int], dict[tuple[str, str], float]] = {}
    wanted = set(members)
    for sample in samples:
        if sample.session == session and sample.arm in wanted:
            visits.setdefault((sample.process, sample.round), {})[(sample.half, sample.arm)] = math.log(
                sample.time_ms
            )
    found: dict[str, dict[int, list[float]]] = {name: {} for name in members}
    for (process, _), logs in sorted(visits.items()):
        if len(logs) == 2 * len(wanted):
            for name in members:
                both = (logs[("forward", name)], logs[("mirror", name)])
                found[name].setdefault(process, []).append(sum(both) / 2)
    return {name: list(processes.values()) for name, processes in found.items()}
