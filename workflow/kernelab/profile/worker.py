"""The program that ncu profiles: `python -m kernelab.profile.worker JOB`, one arm, one marked launch after a warm-up.

It ends by writing the job's `done` file: a report is only believed when the program got to its end.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from kernelab.device.cuda import Session
from kernelab.device.cuda_faults import KernelFault, translated
from kernelab.device.cuda_launch import Arm
from kernelab.errors import BrokenMachine, UserError
from kernelab.operation.inputs import make_inputs
from kernelab.operation.launches import LaunchRefused, array_buffers
from kernelab.operation.loader import load_operation
from kernelab.operation.program import make_program
from kernelab.plan.arms import Plan

SEED = 1
"""Of the inputs: the bytes that timing uses."""

WARM_UP = 3
"""Launches before the marked one: lazy loading, and a library that chooses its kernel, are over by then."""

LIMIT_S = 120.0


class ProfileJob(BaseModel):
    """What to profile. root: the project; cubin: empty for a library function; done: the file to write at the end."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    root: str
    plan: Plan
    arm: str
    cubin: str
    done: str


def main(path: Path) -> int:
    """Do the job in a file."""
    job = ProfileJob.model_validate_json(path.read_text())
    try:
        session = Session(job.plan.device.uuid)
        arm = _load(job, session)
        with translated():
            for _ in range(WARM_UP):
                arm.launch()
            session.synchronize(LIMIT_S)
        session.profiled(arm.launch)
    except (KernelFault, BrokenMachine, LaunchRefused, UserError) as error:
        print(error, file=sys.stderr, flush=True)
        os._exit(1)  # a dead context may never let a normal exit return
    Path(job.done).touch()
    return 0


def _load(job: ProfileJob, session: Session) -> Arm:
    arm = job.plan.arms[job.arm]
    operation, kernel = job.plan.operation(arm), job.plan.kernel(arm)
    folder = Path(job.root) / job.plan.operations[arm.operation].folder
    values = job.plan.problems[arm.problem].values
    loaded = load_operation(folder, operation)
    outputs = tuple(name for name, array in operation.arrays.items() if array.role == "output")
    arrays = session.arrays(
        array_buffers(operation, values), outputs, make_inputs(loaded, values, arm.data, SEED)
    )
    if kernel.library is not None:
        return session.load_library(loaded.library(kernel.library), values, arrays)
    program = make_program(operation, kernel, job.plan.builds[arm.build].levels, values, folder)
    return session.load(program, Path(job.cubin).read_bytes(), arrays)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
