"""The process that holds the card of a search: `python -m kernelab.search.worker`, a job and then heats on standard input.

It begins before anything is compiled: the CUDA context, the inputs and the float64 reference are ready by the time the first
configuration is. Standard output carries announcements and replies only; whatever libraries print goes to standard error.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterable
from typing import IO

from pydantic import BaseModel

from kernelab.errors import BrokenMachine, UserError
from kernelab.search.heat import Heats, Ruin
from kernelab.search.job import Heat, Ruined, SearchJob
from kernelab.timing.faults import ArmFault
from kernelab.timing.job import BROKEN_EXIT, FAULT_EXIT, Fault
from kernelab.timing.progress import PipeProgress
from kernelab.timing.worker import START_LIMIT_S, die_with_the_parent, leave

MakeHeats = Callable[[SearchJob, PipeProgress], Heats]


def main(make: MakeHeats | None = None) -> None:
    """Serve until standard input ends; exits 0, FAULT_EXIT (a member failed) or BROKEN_EXIT (the machine did).

    Args:
        make: makes the bench, in place of the card.
    """
    descriptor = os.dup(1)
    progress = PipeProgress(descriptor)
    os.dup2(2, 1)
    die_with_the_parent()

    def say(reply: BaseModel) -> None:
        os.write(descriptor, reply.model_dump_json().encode() + b"\n")

    try:
        job = SearchJob.model_validate_json(sys.stdin.buffer.readline())
        progress.announce("start", "", START_LIMIT_S)
        heats = (make or on_the_card)(job, progress)
        gc.collect()
        gc.disable()
        serve(heats, sys.stdin.buffer, say)
    except ArmFault as fault:
        progress.fail(Fault(member=fault.member, status=fault.status, note=fault.note))
        leave(FAULT_EXIT)
    except Ruin as ruin:
        say(Ruined(name=ruin.name, note=ruin.note))
        leave(FAULT_EXIT)
    except (BrokenMachine, UserError) as error:
        print(error, file=sys.stderr)
        leave(BROKEN_EXIT)
    leave(0)


def serve(heats: Heats, lines: IO[bytes] | Iterable[bytes], say: Callable[[BaseModel], None]) -> None:
    """Run a heat for every line."""
    for line in lines:
        for reply in heats.run(Heat.model_validate_json(line)):
            say(reply)
        gc.collect()  # between heats, never within one


def on_the_card(job: SearchJob, progress: PipeProgress) -> Heats:
    """The bench on the GPU that the plan names."""
    from kernelab.device.cuda import Session
    from kernelab.device.nvml import Monitor
    from kernelab.search.bench import SearchBench

    monitor = Monitor(job.plan.device.uuid)  # for as long as the process lives
    session = Session(job.plan.device.uuid)
    bench = SearchBench(job, session, monitor)
    return Heats(bench, progress, job.base.problem, job.plan.timing.sample_ms)


if __name__ == "__main__":
    main()
