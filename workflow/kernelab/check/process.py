"""Running one checking process to its end, its crash or its wall-clock limit, and reading what it said."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

import kernelab
from kernelab.check.job import EVENT, CheckJob, Done, Progress, Refusal, Result
from kernelab.errors import BrokenMachine

AFTER_KILL_S = 30.0  # a driver that tears down a hung kernel takes some seconds
STDERR_TAIL = 600


@dataclass(frozen=True)
class Transcript:
    """What a checking process said and how it ended.

    Attributes:
        events: in order.
        returncode: negative for a signal, as subprocess has it.
        overran: it was killed at its limit.
        stderr: the end of what it wrote there.
    """

    events: tuple[Progress | Result | Refusal | Done, ...]
    returncode: int
    overran: bool
    stderr: str

    @property
    def last(self) -> Progress:
        """What it was last about to do."""
        said = [event for event in self.events if isinstance(event, Progress)]
        return said[-1] if said else Progress(problem="", stage="start")

    @property
    def finished(self) -> bool:
        return any(isinstance(event, Done) for event in self.events)

    @property
    def ending(self) -> str:
        """How it ended, in words."""
        if self.returncode >= 0:
            return f"exit status {self.returncode}"
        with contextlib.suppress(ValueError):
            return signal.Signals(-self.returncode).name
        return f"signal {-self.returncode}"


def converse(job: CheckJob, limit_s: float, keep_open: Sequence[int] = ()) -> Transcript:
    """Run the checking process on a job.

    Args:
        job: what to check.
        limit_s: wall-clock limit in seconds, after which the process is killed.
        keep_open: descriptors that it inherits (the card's lock).

    Raises:
        BrokenMachine: it cannot be started, or not be killed.
    """
    package_root = str(Path(kernelab.__file__).resolve().parents[1])
    path = os.pathsep.join(filter(None, (package_root, os.environ.get("PYTHONPATH"))))
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "kernelab.check.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
            pass_fds=tuple(keep_open),
            start_new_session=True,
        )
    except OSError as error:
        raise BrokenMachine(f"the checking process cannot be started: {error}") from error
    overran = False
    try:
        try:
            out, err = process.communicate(job.model_dump_json().encode(), limit_s)
        except subprocess.TimeoutExpired:
            overran = True
            _kill(process)
            out, err = process.communicate(timeout=AFTER_KILL_S)
    except subprocess.TimeoutExpired:
        raise BrokenMachine(
            f"the checking process {process.pid} cannot be killed; the driver holds it, and the card needs a reset"
        ) from None
    finally:
        _kill(process)
    return Transcript(
        _events(out), process.returncode, overran, err.decode(errors="replace")[-STDERR_TAIL:].strip()
    )


def _events(out: bytes) -> tuple[Progress | Result | Refusal | Done, ...]:
    events = []
    for line in out.splitlines():
        # The last line of a killed process may be cut off.
        with contextlib.suppress(ValidationError):
            events.append(EVENT.validate_json(line))
    return tuple(events)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and all that it started, if it still runs."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
