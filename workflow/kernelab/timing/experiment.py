"""The step `time`: all arms of one experiment on one GPU, into raw samples and a record of the conditions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kernelab.device.card import cupy_version, driver_version
from kernelab.device.environment import capture
from kernelab.device.nvml import Monitor
from kernelab.errors import UserError
from kernelab.operation.launches import LaunchRefused
from kernelab.plan.arms import Arm, Plan
from kernelab.records.record import read_record, settings_digest, write_record
from kernelab.records.timing import ArmStatus, TimingRecord
from kernelab.timing.digests import arm_digest, expected_conditions
from kernelab.timing.groups import form_groups
from kernelab.timing.held import held_card
from kernelab.timing.job import BuiltArm
from kernelab.timing.journal import Journal
from kernelab.timing.merge import Known, NewSession, merge
from kernelab.timing.samples import Sample, read_samples, write_samples
from kernelab.timing.session import RunProcess, Say, SessionPlan, run_session
from kernelab.timing.sessions import divide, next_session_id
from kernelab.timing.supervise import run_process


@dataclass(frozen=True)
class Refusal:
    """Why an arm is not to be timed: its status after build and check, and a line."""

    status: ArmStatus
    note: str


@dataclass(frozen=True)
class TimeStep:
    """What the step reads and writes.

    plan, experiment   which experiment of the plan
    builds             by build key: the machine code of every arm that was built
    refused            by arm: those that build or check refuse
    root               the project's folder
    samples, record    timing/<experiment>.csv.gz and .json; what they hold is kept as far as it still holds
    digest             of the plan's settings, for the record
    """

    plan: Plan
    experiment: str
    builds: Mapping[str, BuiltArm]
    root: Path
    samples: Path
    record: Path
    digest: str
    refused: Mapping[str, Refusal] = field(default_factory=dict)


def time_experiment(
    step: TimeStep,
    *,
    say: Say = print,
    run: RunProcess | None = None,
    monitor: Callable[[str], Monitor] = Monitor,
) -> TimingRecord:
    """Time what is not timed yet.

    Args:
        step: what to time, and where to.
        say: told in a line what happens.
        run: runs one worker process, in place of a real one.
        monitor: NVML for a card's UUID.

    Raises:
        UserError: there is no GPU in the plan, the card is in use, or the machine is to blame.
    """
    plan = step.plan
    if plan.device.kind != "gpu":
        raise UserError(
            f"time {step.experiment}: needs a GPU, but the plan's device is {plan.device.id} (config.yaml: device)"
        )
    arms, references, refused, digests = _sorted_out(step)
    planned = plan.experiments[step.experiment]
    last, kept_samples = _last(step, say)
    pairs = [(c.base, c.arm) for c in planned.comparisons]
    ladder = planned.design == "ladder"
    with monitor(plan.device.uuid) as nvml:
        conditions = expected_conditions(plan.timing, driver_version(nvml), cupy_version())
        work = divide([arm.name for arm in arms], pairs, digests, conditions, last, ladder=ladder)
        known = Known(step.experiment, step.digest, plan, last, kept_samples, work, digests, refused)
        if not work.todo:
            say(
                "nothing has changed since it was timed"
                if work.kept
                else "there is nothing that can be timed"
            )
            record, samples = merge(known, None)
        else:
            again = {name for pair in work.todo for name in pair}
            hopeless = {failure.arm for failure in work.failed}
            groups = form_groups(
                [arm for arm in arms if arm.name in again],
                [arm for arm in references if arm.name not in hopeless],
                work.todo,
                ladder=ladder,
            )
            session = SessionPlan(
                id=next_session_id(last),
                plan=plan,
                root=step.root,
                builds=step.builds,
                groups=groups,
                digests=digests,
                conditions=settings_digest(conditions.model_dump()),
            )
            with held_card(plan.device.uuid, nvml, plan.timing, say) as card:
                runner = run or functools.partial(run_process, inherited=(card.lock,))
                before = capture(plan.device.uuid)
                outcome = run_session(session, Journal(step.record), runner, card.check, say)
                after = capture(plan.device.uuid)
            new = NewSession(
                session.id, outcome, conditions, card.locked_clock_mhz, card.others, before, after
            )
            record, samples = merge(known, new)
    write_samples(step.samples, samples)
    write_record(step.record, record)
    Journal(step.record).close()
    return record


def _sorted_out(step: TimeStep) -> tuple[list[Arm], list[Arm], dict[str, Refusal], dict[str, str]]:
    """The arms and references to be timed, those that are refused, and the digest of each."""
    planned = step.plan.experiments[step.experiment]
    refused: dict[str, Refusal] = {}
    digests: dict[str, str] = {}
    timed: dict[str, Arm] = {}
    for name in (*planned.arms, *planned.references):
        arm = step.plan.arms[name]
        if not arm.runs:
            refused[name] = Refusal("not_measured", arm.excluded or arm.static_only)
        elif name in step.refused:
            refused[name] = step.refused[name]
        elif arm.build and arm.build not in step.builds:
            refused[name] = Refusal("not_measured", f"its build {arm.build} is missing")
        else:
            try:
                digests[name] = arm_digest(step.plan, arm, step.builds)
            except LaunchRefused as reason:
                refused[name] = Refusal("launch_error", str(reason))
                continue
            timed[name] = arm
    arms = [timed[name] for name in planned.arms if name in timed]
    references = [timed[name] for name in planned.references if name in timed]
    return arms, references, refused, digests


def _last(step: TimeStep, say: Say) -> tuple[TimingRecord | None, list[Sample]]:
    """What the last run left, or nothing where it cannot be read."""
    if not step.record.is_file() or not step.samples.is_file():
        return None, []
    try:
        return read_record(step.record, TimingRecord), read_samples(step.samples)
    except UserError as error:
        say(f"times anew: {error}")
        return None, []
