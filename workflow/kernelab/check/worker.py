"""The process that checks one arm: `python -m kernelab.check.worker`.

A CheckJob comes on standard input; events go to standard output, one JSON a line.

A kernel may hang or crash this process, or ruin its CUDA context for good: that is data, and check.arm makes a status of it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from typing import TextIO

from pydantic import BaseModel

from kernelab.check.job import CheckJob, Done, Progress, Refusal, Result, Stage
from kernelab.check.judgement import Checker
from kernelab.errors import BrokenMachine, UserError

PR_SET_PDEATHSIG = 1


def main() -> int:
    """Check the arm that standard input describes."""
    _die_with_parent()
    channel = _claim_stdout()

    def say(event: BaseModel) -> None:
        channel.write(event.model_dump_json() + "\n")
        channel.flush()

    job = CheckJob.model_validate_json(sys.stdin.read())
    try:
        _check(job, say)
    except UserError as error:
        say(Refusal(kind="user_error", message=str(error)))
    except (BrokenMachine, MemoryError) as error:
        say(Refusal(kind="broken_machine", message=" ".join(str(error).split()) or "out of memory"))
    say(Done())
    # The end of a process with a dead CUDA context, or with a kernel still running, may itself hang or crash.
    sys.stderr.flush()
    os._exit(0)


def _check(job: CheckJob, say: Callable[[BaseModel], None]) -> None:
    say(Progress(problem="", stage="start"))
    if job.device == "gpu":
        from kernelab.check.on_cuda import CudaChecker

        checker: Checker = CudaChecker(job)
    else:
        from kernelab.check.on_emulated import EmulatedChecker

        checker = EmulatedChecker(job)
    for name, values in job.problems.items():

        def at(stage: Stage, name: str = name) -> None:
            say(Progress(problem=name, stage=stage))

        result, stopped = checker.check(values, at)
        say(Result(problem=name, result=result, stopped=stopped))
        if stopped:
            return


def _claim_stdout() -> TextIO:
    """Keep standard output for the events; what operation.py or a kernel prints goes to standard error."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return channel


def _die_with_parent() -> None:
    """Ask Linux to kill this process when its parent dies, so that a killed run leaves nothing on the card."""
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    except (OSError, AttributeError):
        return


if __name__ == "__main__":
    sys.exit(main())
