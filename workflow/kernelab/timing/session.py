"""One session: its fresh processes, one after the other, and what becomes of it when an arm fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from kernelab.plan.arms import Plan
from kernelab.records.record import settings_digest
from kernelab.timing.extension import extension_due
from kernelab.timing.faults import ArmFault
from kernelab.timing.groups import Group, without
from kernelab.timing.job import BuiltArm, Job, JobGroup, JobMember, ProcessResult
from kernelab.timing.journal import Journal
from kernelab.timing.samples import Sample, sample_from_row
from kernelab.timing.schedule import seed_of

RunProcess = Callable[[Job], ProcessResult]
Say = Callable[[str], None]


@dataclass(frozen=True)
class SessionPlan:
    """What a session times. digests: per arm; root: the project; conditions: a text that identifies them."""

    id: str
    plan: Plan
    root: Path
    builds: Mapping[str, BuiltArm]
    groups: tuple[Group, ...]
    digests: Mapping[str, str]
    conditions: str


@dataclass(frozen=True)
class SessionOutcome:
    """What came of it.

    groups     what was timed to the end; empty where nothing could be
    faults     per arm, how it failed
    extended, reason   of the extension
    """

    groups: tuple[Group, ...]
    results: list[ProcessResult]
    samples: list[Sample]
    faults: dict[str, ArmFault]
    extended: bool
    reason: str


def run_session(
    wanted: SessionPlan, journal: Journal, run: RunProcess, before: Callable[[], None], say: Say
) -> SessionOutcome:
    """Run a session to its end.

    When an arm fails, the session starts anew without it (and without what it takes along), so that all of its
    processes time the same members.

    Args:
        wanted: what to time.
        journal: where finished processes are kept.
        run: runs one process.
        before: called before each process; it refuses (by a UserError) when the card is in use.
        say: told in a line what happens.
    """
    groups = wanted.groups
    faults: dict[str, ArmFault] = {}
    while groups:
        try:
            results, samples, extended, reason = _processes(wanted, groups, journal, run, before, say)
        except ArmFault as fault:
            groups = _give_up(groups, [fault], faults, say)
            continue
        wrong = {arm: note for result in results for arm, note in result.wrong.items()}
        if not wrong:
            return SessionOutcome(groups, results, samples, faults, extended, reason)
        blamed = [ArmFault("wrong_result", note, arm) for arm, note in wrong.items()]
        groups = _give_up(groups, blamed, faults, say)
    return SessionOutcome((), [], [], faults, False, "")


def _processes(
    wanted: SessionPlan,
    groups: Sequence[Group],
    journal: Journal,
    run: RunProcess,
    before: Callable[[], None],
    say: Say,
) -> tuple[list[ProcessResult], list[Sample], bool, str]:
    policy = wanted.plan.timing
    key = _key(wanted, groups)
    results = journal.begin(key, policy.extend_to)
    if results:
        say(f"goes on after {len(results)} processes of a run that was ended")
    seed = seed_of(key)
    target, extended, reason = policy.processes, False, ""
    with TemporaryDirectory(prefix="kernelab-") as scratch:
        while len(results) < target or not reason:
            if len(results) >= policy.processes and not reason:
                samples = _samples(results[: policy.processes])
                extended, reason = extension_due(samples, wanted.id, groups, policy)
                target = policy.extend_to if extended else policy.processes
                if extended:
                    say(reason)
                continue
            before()
            number = len(results)
            say(f"process {number + 1} of {target}")
            job = Job(
                root=str(wanted.root.resolve()),
                plan=wanted.plan,
                session=wanted.id,
                process=number,
                seed=seed_of(seed, number),
                groups=[_job_group(group) for group in groups],
                builds=dict(wanted.builds),
                budget_s=policy.budget_s / policy.processes,
                sizes=results[0].sizes if results else None,
                references=scratch,
                result=str(Path(scratch) / "result.json"),
            )
            result = run(job)
            if result.wrong:
                return [result], [], False, ""
            journal.keep(key, number, result)
            results.append(result)
    results = results[:target]
    return results, _samples(results), extended, reason


def _give_up(
    groups: Sequence[Group],
    blamed: Sequence[ArmFault],
    faults: dict[str, ArmFault],
    say: Say,
) -> tuple[Group, ...]:
    """The groups without the members that failed and those that they take along; notes what failed."""
    remaining = list(groups)
    for fault in blamed:
        arm = next(m.arm for group in groups for m in group.members if fault.member in (m.name, m.arm))
        faults[arm] = fault
        for index, group in enumerate(remaining):
            if not any(member.name == arm for member in group.members):
                continue
            shrunk, along = without(group, arm)
            remaining[index : index + 1] = [] if shrunk is None else [shrunk]
            rest = f" and, with it, {', '.join(along)}" if along else ""
            say(f"{arm}: {fault.status}: {fault.note}; it is left out{rest}")
            break
    return tuple(remaining)


def _key(wanted: SessionPlan, groups: Sequence[Group]) -> str:
    members = [[(m.name, wanted.digests[m.arm]) for m in group.members] for group in groups]
    return settings_digest([wanted.id, members, wanted.conditions])[:16]


def _samples(results: Sequence[ProcessResult]) -> list[Sample]:
    return [sample_from_row(row) for result in results for row in result.rows]


def _job_group(group: Group) -> JobGroup:
    members = [JobMember(name=m.name, arm=m.arm, role=m.role) for m in group.members]
    return JobGroup(members=members, anchor=group.anchor)
