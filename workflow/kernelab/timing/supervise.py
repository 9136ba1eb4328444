"""The parent's side of a worker: start it, watch it, and end it when it overruns what it announced."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryFile

from pydantic import ValidationError

from kernelab.errors import UserError
from kernelab.timing.faults import ArmFault
from kernelab.timing.job import BROKEN_EXIT, FAULT_EXIT, Announcement, Fault, Job, ProcessResult

GRACE_S = 15.0
"""Beyond a limit that the worker should have kept by itself."""

START_S = 120.0
"""For a worker to say its first word."""

CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)
"""How an arm can take its process down. SIGKILL is not among them: that is the machine, out of memory."""

REAP_S = 60.0
TAIL = 2000


def worker_command() -> list[str]:
    """The command of a worker."""
    return [sys.executable, "-m", "kernelab.timing.worker"]


def run_process(
    job: Job, command: Sequence[str] | None = None, *, inherited: Sequence[int] = ()
) -> ProcessResult:
    """Run one fresh process to its end.

    Args:
        job: what it is to do.
        command: in place of the worker's own.
        inherited: descriptors that it keeps open, such as the card's lock.

    Raises:
        ArmFault: an arm failed, hung (it is killed), or took the process down.
        UserError: the machine is to blame, or the worker could not be ended.
    """
    result = Path(job.result)
    result.unlink(missing_ok=True)
    with (
        TemporaryFile() as errors,
        running(command or worker_command(), errors.fileno(), inherited) as process,
    ):
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(job.model_dump_json().encode())
            process.stdin.close()
        fault, member = _watch(process)
        code = reap(process)
        errors.seek(0)
        words = errors.read()[-TAIL:].decode(errors="replace").strip()
        if code not in (0, FAULT_EXIT, BROKEN_EXIT):
            print(words, file=sys.stderr)  # an error of ours: its trace belongs in the log
        last = words.splitlines()[-1] if words else "it said nothing"
        if fault is not None:
            raise fault
        if code == 0 and result.is_file():
            return ProcessResult.model_validate_json(result.read_text())
        if -code in CRASHES and member:
            raise ArmFault("launch_error", f"its process ended by {signal.Signals(-code).name}", member)
        raise UserError(f"timing on {job.plan.device.name} failed (exit {code}): {last}")


@contextlib.contextmanager
def running(
    command: Sequence[str], errors: int, inherited: Sequence[int]
) -> Iterator[subprocess.Popen[bytes]]:
    """The process, which never outlives the block."""
    package = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"LC_ALL": "C", "PYTHONPATH": path}
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        env=environment,
        start_new_session=True,
        pass_fds=inherited,
    )
    try:
        yield process
    finally:
        kill(process)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()


def _watch(process: subprocess.Popen[bytes]) -> tuple[ArmFault | None, str]:
    """Follow the announcements to their end; the fault that ended them, and the member that was last worked on."""
    lines: queue.Queue[bytes | None] = queue.Queue()
    reader = threading.Thread(target=read_lines, args=(process, lines), daemon=True)
    reader.start()
    said = Announcement(step="start", limit_s=START_S)
    while True:
        try:
            line = lines.get(timeout=said.limit_s + GRACE_S)
        except queue.Empty:
            kill(process)
            if not said.member:
                what = f"a worker hung at '{said.step}' for {said.limit_s:g} s"
                raise UserError(f"timing: {what}; does nvidia-smi answer?") from None
            return ArmFault(
                "timeout", f"{said.step}: not done after {said.limit_s:g} s", said.member
            ), said.member
        if line is None:
            return None, said.member
        if (heard := _parse(line)) is None:
            continue
        if isinstance(heard, Fault):
            return ArmFault(heard.status, heard.note, heard.member), heard.member
        said = heard


def read_lines(process: subprocess.Popen[bytes], lines: queue.Queue[bytes | None]) -> None:
    """Put what a process writes into a queue, a line at a time, and None at its end."""
    assert process.stdout is not None
    with contextlib.suppress(ValueError, OSError):
        for line in process.stdout:
            lines.put(line)
    lines.put(None)


def _parse(line: bytes) -> Announcement | Fault | None:
    for kind in (Announcement, Fault):
        with contextlib.suppress(ValidationError):
            return kind.model_validate_json(line)
    return None


def reap(process: subprocess.Popen[bytes]) -> int:
    """The exit code of a process that has said its last word; one that stays is killed."""
    try:
        return process.wait(REAP_S)
    except subprocess.TimeoutExpired:
        kill(process)
        return process.wait()


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the process with all its children. A process that the driver will not let go is reported, not waited for."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    try:
        process.wait(REAP_S)
    except subprocess.TimeoutExpired:
        raise UserError(
            f"the worker {process.pid} cannot be killed: the driver holds it; the GPU may need a reset"
        ) from None
