"""The record and the samples after a run: what still holds, and what the new session adds."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kernelab.plan.arms import Arm, Plan
from kernelab.plan.expression import parse
from kernelab.records.timing import (
    ArmStatus,
    Conditions,
    Failure,
    ProcessFacts,
    SessionMember,
    SessionRecord,
    TimedArm,
    TimedPair,
    TimedProblem,
    TimingRecord,
)
from kernelab.timing.extension import interval
from kernelab.timing.groups import Pair, bereft
from kernelab.timing.job import ProcessResult
from kernelab.timing.peak import above_bandwidth, impossible
from kernelab.timing.samples import Sample
from kernelab.timing.session import SessionOutcome
from kernelab.timing.sessions import Work, newest_session_of, wanted_pairs
from kernelab.timing.summary import summarise


class Refused(Protocol):
    """See experiment.Refusal."""

    @property
    def status(self) -> ArmStatus: ...

    @property
    def note(self) -> str: ...


@dataclass(frozen=True)
class Known:
    """What is known before the new session: the last run's record and samples, and what of them still holds."""

    experiment: str
    digest: str
    plan: Plan
    record: TimingRecord | None
    samples: Sequence[Sample]
    work: Work
    digests: Mapping[str, str]
    refused: Mapping[str, Refused]


@dataclass(frozen=True)
class NewSession:
    """A session that has just ended, under the conditions that the run expected. before, after: the environment."""

    id: str
    outcome: SessionOutcome
    conditions: Conditions
    locked_clock_mhz: int | None
    other_processes: Sequence[str]
    before: Mapping[str, str]
    after: Mapping[str, str]


def merge(known: Known, new: NewSession | None) -> tuple[TimingRecord, list[Sample]]:
    """The record and the samples that take the place of the last run's.

    Sessions that no pair refers to any more are dropped with their samples; the new session is always kept.
    """
    pairs = list(known.work.kept)
    failures = list(known.work.failed)
    sessions = list(known.record.sessions) if known.record else []
    samples = list(known.samples)
    if new is not None:
        failures += _failures(known, new)
        if new.outcome.results:
            sessions.append(_session_record(known, new))
            samples += new.outcome.samples
            pairs += _new_pairs(known, new, failures)
    used = {pair.session for pair in pairs} | ({new.id} if new else set())
    sessions = [session for session in sessions if session.id in used]
    card = (
        new.outcome.results[-1].card
        if new and new.outcome.results
        else known.record.card
        if known.record
        else None
    )
    record = TimingRecord(
        digest=known.digest,
        experiment=known.experiment,
        card=card,
        sessions=sessions,
        pairs=sorted(pairs, key=_in_order(known)),
        failures=failures,
        arms=_arms(known, sessions, failures),
        problems=_problems(known, new),
    )
    return record, [sample for sample in samples if sample.session in used]


def _new_pairs(known: Known, new: NewSession, failures: Sequence[Failure]) -> list[TimedPair]:
    """What the new session answers: its comparisons, and the arms that were timed though no comparison is left."""
    gone = _gone(known, failures)
    found = []
    for group in new.outcome.groups:
        arms = [m.arm for m in group.members if m.role in ("base", "arm") and m.arm not in gone]
        found += [
            TimedPair(base=base, arm=arm, session=new.id) for base, arm in wanted_pairs(arms, group.pairs)
        ]
    return found


def _gone(known: Known, failures: Sequence[Failure]) -> set[str]:
    """The arms that failed, and those that are bereft by them."""
    planned = known.plan.experiments[known.experiment]
    failed = {failure.arm for failure in failures}
    pairs = [(c.base, c.arm) for c in planned.comparisons]
    return failed | bereft(pairs, failed, ladder=planned.design == "ladder")


def _failures(known: Known, new: NewSession) -> list[Failure]:
    """The arms that the new session could not time, and those whose figures cannot be."""
    found: dict[str, tuple[ArmStatus, str]] = {
        arm: (fault.status, fault.note) for arm, fault in new.outcome.faults.items()
    }
    for arm in dict.fromkeys(member.arm for group in new.outcome.groups for member in group.members):
        if note := _impossible(known.plan, known.plan.arms[arm], new.outcome):
            found[arm] = ("impossible", note)
    conditions = _conditions(new)
    return [
        Failure(arm=arm, status=status, note=note, digest=known.digests[arm], conditions=conditions)
        for arm, (status, note) in found.items()
    ]


def _impossible(plan: Plan, arm: Arm, outcome: SessionOutcome) -> str:
    """Which of an arm's samples are faster than the card can be, in a line; empty where none is."""
    card = outcome.results[-1].card
    own = [sample for sample in outcome.samples if sample.arm.partition("#")[0] == arm.name]
    flops, nbytes = _cost(plan, arm, "flops"), _cost(plan, arm, "bytes")
    if culprit := impossible(own, flops, card.multiprocessors, card.fp32_lanes):
        rate, clock = flops / culprit.time_ms * 1e-9, culprit.sm_clock_mhz
        figure = f"{rate:.1f} TFLOP/s at {clock:.0f} MHz is above the card's FP32 peak"
    elif arm.l2 == "cold" and (culprit := above_bandwidth(own, nbytes, card)):
        figure = f"{nbytes / culprit.time_ms * 1e-6:.0f} GB/s is more than the card's memory carries"
    else:
        return ""
    return f"{figure}: it skips work (process {culprit.process}, round {culprit.round})"


def _session_record(known: Known, new: NewSession) -> SessionRecord:
    outcome = new.outcome
    members = [member for group in outcome.groups for member in group.members]
    sizes = outcome.results[0].sizes
    of_policy = functools.partial(interval, policy=known.plan.timing)
    return SessionRecord(
        id=new.id,
        conditions=_conditions(new),
        members={m.name: SessionMember(arm=m.arm, role=m.role, digest=known.digests[m.arm]) for m in members},
        groups=[[member.name for member in group.members] for group in outcome.groups],
        rounds=sizes.rounds,
        launches=sizes.launches,
        strides=sizes.strides,
        processes=[ProcessFacts(seed=r.seed, warmup_s=r.warmup_s, steady=r.steady) for r in outcome.results],
        times={
            m.name: summarise([s for s in outcome.samples if s.arm == m.name], of_policy) for m in members
        },
        locked_clock_mhz=new.locked_clock_mhz,
        extended=outcome.extended,
        reason=outcome.reason,
        other_processes=list(new.other_processes),
        environment_before=dict(new.before),
        environment_after=dict(new.after),
    )


def _conditions(new: NewSession) -> Conditions:
    results: Sequence[ProcessResult] = new.outcome.results
    if not results:
        return new.conditions
    last = results[-1]
    return new.conditions.model_copy(
        update={
            "driver": last.driver,
            "cuda_runtime": last.cuda_runtime,
            "cupy": last.cupy,
            "cublas": last.cublas,
        }
    )


def _arms(
    known: Known, sessions: Sequence[SessionRecord], failures: Sequence[Failure]
) -> dict[str, TimedArm]:
    planned = known.plan.experiments[known.experiment]
    failed = {failure.arm: failure for failure in failures}
    gone = _gone(known, failures)
    arms = {}
    for name in (*planned.arms, *planned.references):
        if name in known.refused:
            arms[name] = TimedArm(status=known.refused[name].status, note=known.refused[name].note)
        elif name in failed:
            arms[name] = TimedArm(status=failed[name].status, note=failed[name].note)
        elif name in gone:
            base = next(arm for arm in _partners(known, name) if arm in failed)
            note = f"its base {base} could not be timed: {failed[base].status}"
            arms[name] = TimedArm(status="not_measured", note=note)
        else:
            arms[name] = _timed_arm(known, name, sessions)
    return arms


def _timed_arm(known: Known, name: str, sessions: Sequence[SessionRecord]) -> TimedArm:
    digest = known.digests[name]
    holding = [s for s in sessions if name in s.members and s.members[name].digest == digest]
    session = newest_session_of(name, holding)
    if session is None:
        return TimedArm(status="not_measured", note="it was not timed")
    reference = _reference_in(known.plan, known.plan.arms[name], session)
    return TimedArm(
        status="ok",
        session=session.id,
        reference_ms=session.times[reference].time_ms if reference else None,
        **session.times[name].model_dump(),
    )


def _partners(known: Known, name: str) -> list[str]:
    comparisons = known.plan.experiments[known.experiment].comparisons
    return [one for c in comparisons for one in (c.base, c.arm) if name in (c.base, c.arm) and one != name]


def _reference_in(plan: Plan, arm: Arm, session: SessionRecord) -> str:
    for name in session.members:
        other = plan.arms.get(name)
        if other is None or plan.kernel(other).library is None:
            continue
        if (other.problem, other.data, other.l2) == (arm.problem, arm.data, arm.l2):
            return name
    return ""


def _problems(known: Known, new: NewSession | None) -> list[TimedProblem]:
    """The problems of the experiment, with the input digests of the newest session that had them."""
    digests = {(p.problem, p.data): p.inputs_sha256 for p in known.record.problems} if known.record else {}
    if new is not None and new.outcome.results:
        digests |= {(i.problem, i.data): i.inputs_sha256 for i in new.outcome.results[-1].inputs}
    planned = known.plan.experiments[known.experiment]
    arms = {(a.problem, a.data): a for a in (known.plan.arms[name] for name in planned.arms)}
    return [
        TimedProblem(
            problem=problem,
            data=data,
            values=dict(known.plan.problems[problem].values),
            flops=_cost(known.plan, arm, "flops"),
            bytes=_cost(known.plan, arm, "bytes"),
            inputs_sha256=digests.get((problem, data), {}),
        )
        for (problem, data), arm in sorted(arms.items())
    ]


def _cost(plan: Plan, arm: Arm, what: str) -> float:
    return float(parse(getattr(plan.operation(arm), what))(plan.problems[arm.problem].values))


def _in_order(known: Known) -> Callable[[TimedPair], tuple[int, str, str]]:
    planned = known.plan.experiments[known.experiment]
    place: dict[Pair, int] = {(c.base, c.arm): index for index, c in enumerate(planned.comparisons)}
    return lambda pair: (place.get((pair.base, pair.arm), len(place)), pair.base, pair.arm)
