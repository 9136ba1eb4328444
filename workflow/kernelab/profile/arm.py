"""The step `profile`: one arm under ncu, into its report and a record. Every failure is a status; timing stands alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from kernelab.device.lock import card_lock
from kernelab.errors import UserError
from kernelab.plan.arms import Arm, Plan
from kernelab.profile.columns import METRICS
from kernelab.profile.ncu import (
    NO_NCU,
    NcuRun,
    command_line,
    find_ncu,
    judge,
    ncu_version,
    run_ncu,
    unknown_metrics,
)
from kernelab.profile.report import counted, read_report
from kernelab.profile.values import column_values
from kernelab.profile.worker import ProfileJob
from kernelab.records.profile import ProfiledKernel, ProfileRecord, ProfileStatus
from kernelab.records.record import write_bytes, write_record


class Code(Protocol):
    """Where an arm's machine code is."""

    @property
    def cubin(self) -> str: ...


class Reason(Protocol):
    """Why an arm is not to be launched: the status of its build or check, and a line."""

    @property
    def status(self) -> str: ...

    @property
    def note(self) -> str: ...


@dataclass(frozen=True)
class ProfileStep:
    """What the step reads and writes.

    plan, arm       which arm of the plan
    built           its machine code; None for a library function, and where it could not be built
    root            the project's folder
    report, record  profile/.../<problem>.ncu-rep and .json; the report is empty where there are no counters
    digest          of the plan's settings, for the record
    refused         why the arm is not to be launched, or None
    """

    plan: Plan
    arm: Arm
    built: Code | None
    root: Path
    report: Path
    record: Path
    digest: str
    refused: Reason | None = None


@dataclass(frozen=True)
class Profiler:
    """How ncu is found and run; the tests put their own in its place."""

    find: Callable[[], str | None] = find_ncu
    version: Callable[[str], str] = ncu_version
    run: Callable[[Sequence[str], float], NcuRun] = run_ncu


def profile_arm(
    step: ProfileStep, *, say: Callable[[str], None] = print, profiler: Profiler | None = None
) -> ProfileRecord:
    """Profile one arm, and write its two files.

    Args:
        step: what to profile, and where to.
        say: told in a line what came of it.
        profiler: in place of ncu.

    Raises:
        UserError: the card is in use, or a file cannot be written; never for want of ncu or of permission.
    """
    used = profiler or Profiler()
    ncu = used.find()
    report = b""
    if step.refused is not None:
        record = _failed(step, "not_profiled", f"{step.refused.status}: {step.refused.note}")
    elif ncu is None:
        record = _failed(step, "no_ncu", NO_NCU)
    else:
        record, report = _profiled(step, used, ncu, say)
    write_bytes(step.report, report)
    write_record(step.record, record)
    say(f"{step.arm.name}: {record.status}" + (f": {record.note}" if record.note else ""))
    return record


def _profiled(
    step: ProfileStep, profiler: Profiler, ncu: str, say: Callable[[str], None]
) -> tuple[ProfileRecord, bytes]:
    version = profiler.version(ncu)
    policy = step.plan.profile
    with TemporaryDirectory(prefix="kernelab-") as scratch, card_lock(step.plan.device.uuid):
        report, done, job = (Path(scratch) / name for name in ("profile.ncu-rep", "done", "job.json"))
        job.write_text(
            ProfileJob(
                root=str(step.root.resolve()),
                plan=step.plan,
                arm=step.arm.name,
                cubin=str(Path(step.built.cubin).resolve()) if step.built else "",
                done=str(done),
            ).model_dump_json()
        )
        program = [sys.executable, "-m", "kernelab.profile.worker", str(job)]
        run = profiler.run(command_line(ncu, report, program, policy.clock_control), policy.limit_s)
        if unknown := unknown_metrics(run.words):
            # ncu collects nothing at all when the card lacks one of the metrics.
            fewer = [name for name in METRICS if name not in unknown]
            done.unlink(missing_ok=True)
            run = profiler.run(
                command_line(ncu, report, program, policy.clock_control, fewer), policy.limit_s
            )
        status, note = judge(run, done.is_file(), policy.limit_s)
        if status != "ok":
            say(run.words.strip())  # all of them: the log is where a crash is looked into
            return _failed(step, status, note, version), b""
        return _read(step, report, version)


def _read(step: ProfileStep, report: Path, version: str) -> tuple[ProfileRecord, bytes]:
    """The record of a report whose program ended well."""
    try:
        kernels = read_report(report)
    except UserError as error:
        return _failed(step, "nan_counters", f"no counters: {error}", version), b""
    if not kernels:
        return _failed(
            step, "nan_counters", "ncu saw no kernel between profiler start and stop", version
        ), b""
    empty = [kernel.name for kernel in kernels if not counted(kernel)]
    if empty:
        note = f"ncu counted nothing (NaN) for {empty[0]}; another profiler or a driver reset may hold the counters: run again"
        return _failed(step, "nan_counters", note, version), b""
    record = ProfileRecord(
        digest=step.digest,
        arm=step.arm.name,
        status="ok",
        note="",
        ncu=version,
        kernels=kernels,
        values=column_values(kernels),
    )
    return record, report.read_bytes()


def _failed(step: ProfileStep, status: ProfileStatus, note: str, version: str = "") -> ProfileRecord:
    kernels: list[ProfiledKernel] = []
    return ProfileRecord(
        digest=step.digest,
        arm=step.arm.name,
        status=status,
        note=note,
        ncu=version,
        kernels=kernels,
        values={},
    )
