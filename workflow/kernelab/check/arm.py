"""The step `check`: one build, or one library function, on one problem or on the operation's small ones, in a fresh process."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kernelab.check.job import CheckJob, Refusal, Result
from kernelab.check.process import Transcript, converse
from kernelab.device.lock import card_lock
from kernelab.errors import BrokenMachine, UserError
from kernelab.plan.arms import OperationPlan, Plan
from kernelab.records.build import BuildRecord
from kernelab.records.check import CheckedProblem, CheckRecord, CheckStatus, gravest
from kernelab.records.layout import SMALL
from kernelab.records.record import read_record, write_record

CUBIN, PTX = "kernel.cubin", "kernel.ptx"


def check_arm(
    plan: Plan, key: str, which: str, build_folder: Path | None, out: Path, digest: str, root: Path = Path()
) -> CheckRecord:
    """Check one arm and write its record.

    Args:
        plan: the plan.
        key: a build's key, or the name of a library kernel.
        which: a problem's name, or `small` for the operation's own checks.
        build_folder: where kernel.cubin and kernel.ptx are; None for a library kernel.
        out: the record's file.
        digest: of the settings that it is made from.
        root: the project's folder.

    Raises:
        UserError: operation.py fails, its reference holds NaN, or the plan knows no such build or problem.
        BrokenMachine: the check could not be made: no memory, no card, a process killed from outside.
    """
    kernel_name, variant, operation, _ = _subject(plan, key)
    job = make_job(plan, key, which, build_folder, root)

    def write(status: CheckStatus, note: str, results: dict[str, CheckedProblem]) -> CheckRecord:
        record = CheckRecord(
            digest=digest,
            kernel=kernel_name,
            variant=variant,
            device=plan.device.id,
            status=status,
            note=note,
            problems=results,
        )
        write_record(out, record)
        return record

    library = operation.kernels[kernel_name].library
    if library and job.device == "emulated":
        return write("not_measured", f"{library} needs a GPU", {})
    if not library and not (job.ptx if job.device == "emulated" else job.cubin):
        return write(*_without_code(build_folder), {})
    with _card(job) as held:
        transcript = converse(job, plan.check.limit_s, held)
    results = results_of(job, transcript, plan.check.limit_s)
    status = gravest(result.status for result in results.values())
    return write(status, _note(status, results), results)


def make_job(plan: Plan, key: str, which: str, build_folder: Path | None, root: Path = Path()) -> CheckJob:
    """What the checking process is to be told; the arguments are those of check_arm.

    Raises:
        UserError: the plan knows no such build or problem.
    """
    kernel_name, _, operation, levels = _subject(plan, key)
    library = next((k.library for _, k in sorted(operation.kernels.items()) if k.library), None)
    return CheckJob(
        device=plan.device.kind,
        uuid=plan.device.uuid,
        folder=str((root / operation.folder).resolve()),
        operation=operation.operation,
        kernel_name=kernel_name,
        kernel=operation.kernels[kernel_name],
        levels=levels,
        library=library or "",
        cubin=_code(build_folder, CUBIN),
        ptx=_code(build_folder, PTX),
        problems=_problems(plan, operation, which),
        seed=plan.check.seed,
    )


def results_of(job: CheckJob, transcript: Transcript, limit_s: float) -> dict[str, CheckedProblem]:
    """A result for every problem of a job, from what the checking process said and how it ended.

    Raises:
        UserError, BrokenMachine: the process refused, or ended in a way that says nothing about the kernel.
    """
    for event in transcript.events:
        if isinstance(event, Refusal):
            raise UserError(event.message) if event.kind == "user_error" else BrokenMachine(event.message)
    results = {event.problem: event.result for event in transcript.events if isinstance(event, Result)}
    stopped = next((e.problem for e in transcript.events if isinstance(e, Result) and e.stopped), "")
    if not stopped and not transcript.finished:
        stopped = transcript.last.problem
        results[stopped] = _broken_off(job, transcript, limit_s)
    for name in job.problems:
        if name not in results:
            results[name] = CheckedProblem(
                status="not_measured", note=f"not run: the check ended at {stopped}"
            )
    return {name: results[name] for name in job.problems}


def _broken_off(job: CheckJob, transcript: Transcript, limit_s: float) -> CheckedProblem:
    """What it means that the process ended in the middle of a problem."""
    at = transcript.last
    if transcript.overran:
        if at.stage != "run":
            doing = {"inputs": "making the inputs", "reference": "computing the reference"}.get(
                at.stage, f"stage {at.stage}"
            )
            where = f" of {at.problem}" if at.problem else ""
            raise UserError(
                f"{job.kernel_name}: {doing}{where} took more than {limit_s:g} s; raise check.limit_s in config.yaml"
            )
        if job.device == "emulated":
            # A slow emulation is not a slow kernel; one that never ends is found by the emulated device itself.
            return CheckedProblem(
                status="not_measured", note=f"the emulation did not end in {limit_s:g} s (check.limit_s)"
            )
        return CheckedProblem(
            status="timeout", note=f"the kernel did not end in {limit_s:g} s (check.limit_s)"
        )
    crashed = transcript.returncode in (
        -signal.SIGSEGV,
        -signal.SIGBUS,
        -signal.SIGFPE,
        -signal.SIGILL,
        -signal.SIGABRT,
    )
    if job.device == "gpu" and at.stage in ("load", "run") and crashed:
        return CheckedProblem(
            status="launch_error",
            note=f"the process died of {transcript.ending} while the kernel was launched",
        )
    detail = transcript.stderr.splitlines()[-1] if transcript.stderr else "it said nothing"
    raise BrokenMachine(
        f"the checking process ended with {transcript.ending} at stage {at.stage} of {at.problem or 'the start'}: {detail}"
    )


def _note(status: CheckStatus, results: dict[str, CheckedProblem]) -> str:
    """The first problem that has the record's status and something to say of it."""
    return next((f"{name}: {r.note}" for name, r in results.items() if r.status == status and r.note), "")


def _subject(plan: Plan, key: str) -> tuple[str, str, OperationPlan, dict[str, str]]:
    if key in plan.builds:
        build = plan.builds[key]
        return build.kernel, build.variant, plan.operations[build.operation], dict(build.levels)
    for operation in plan.operations.values():
        name = key.removesuffix("/default")
        if name in operation.kernels and operation.kernels[name].library:
            return name, "default", operation, {}
    raise UserError(f"{key}: no build of the plan; see the column build of results/plan.csv")


def _problems(plan: Plan, operation: OperationPlan, which: str) -> dict[str, dict[str, int | float]]:
    if which == SMALL:
        declared = operation.operation
        return {name: dict(declared.problem_values(values, name)) for name, values in declared.checks.items()}
    if which not in plan.problems or plan.problems[which].operation != operation.operation.name:
        raise UserError(
            f"{which}: no problem of {operation.operation.name} in the plan; see the column problem of results/plan.csv"
        )
    return {which: dict(plan.problems[which].values)}


def _without_code(folder: Path | None) -> tuple[CheckStatus, str]:
    """What it means that a build has no code: it did not compile, or could not be compiled here."""
    path = (folder or Path()) / "build.json"
    build = read_record(path, BuildRecord)
    return ("compile_error" if build.status == "compile_error" else "not_measured"), build.note


def _code(folder: Path | None, name: str) -> str:
    """The file of a build, absolute; empty where the build failed (its files are then empty)."""
    if folder is None or not (folder / name).is_file() or (folder / name).stat().st_size == 0:
        return ""
    return str((folder / name).resolve())


@contextmanager
def _card(job: CheckJob) -> Iterator[tuple[int, ...]]:
    """The card's lock, shared with other checks: a check beside somebody's measurement would disturb it."""
    with contextlib.ExitStack() as stack:
        yield (stack.enter_context(card_lock(job.uuid, shared=True)),) if job.device == "gpu" else ()
