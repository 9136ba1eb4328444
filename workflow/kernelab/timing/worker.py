"""A fresh process of a timing session: `python -m kernelab.timing.worker`, a job on stdin, its result in a file.

Standard output carries announcements only (see progress); whatever libraries print goes to standard error.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
from dataclasses import astuple
from pathlib import Path

from kernelab.errors import BrokenMachine, UserError
from kernelab.records.record import write_text
from kernelab.records.timing import CardFacts
from kernelab.timing.faults import ArmFault
from kernelab.timing.groups import Member
from kernelab.timing.job import BROKEN_EXIT, FAULT_EXIT, Fault, Job, ProcessResult
from kernelab.timing.measure import Measurement, Run
from kernelab.timing.peak import fp32_lanes
from kernelab.timing.progress import PipeProgress

START_LIMIT_S = 300.0
PR_SET_PDEATHSIG = 1


def main() -> None:
    """Do the job on standard input; exits 0, FAULT_EXIT (an arm failed) or BROKEN_EXIT (the machine did)."""
    progress = PipeProgress(os.dup(1))
    os.dup2(2, 1)
    die_with_the_parent()
    job = Job.model_validate_json(sys.stdin.buffer.read())
    progress.announce("start", "", START_LIMIT_S)
    try:
        result = run(job, progress)
    except ArmFault as fault:
        progress.fail(Fault(member=fault.member, status=fault.status, note=fault.note))
        leave(FAULT_EXIT)
    except (BrokenMachine, UserError) as error:
        print(error, file=sys.stderr)
        leave(BROKEN_EXIT)
    write_text(Path(job.result), result.model_dump_json())
    leave(0)


def die_with_the_parent() -> None:
    """Be killed when the parent is: an orphan would hold the card."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def leave(code: int) -> None:
    """End at once: with a kernel still running or a dead context, CUDA's own clean-up may never return."""
    sys.stderr.flush()
    os._exit(code)


def run(job: Job, progress: PipeProgress) -> ProcessResult:
    """Measure on the GPU that the plan names."""
    from kernelab.device.card import cublas_version, driver_version, memory_bus_bits
    from kernelab.device.cuda import Session
    from kernelab.device.nvml import Monitor
    from kernelab.timing.bench import GpuBench

    with Monitor(job.plan.device.uuid) as monitor:
        session = Session(job.plan.device.uuid)
        bench = GpuBench(
            job.plan, job.builds, session, monitor, root=Path(job.root), references=Path(job.references)
        )
        groups = [[Member(m.name, m.arm, m.role) for m in group.members] for group in job.groups]  # type: ignore[arg-type]
        measurement = Measurement(
            Run(
                session=job.session,
                process=job.process,
                seed=job.seed,
                groups=groups,
                anchors=[group.anchor for group in job.groups],
                policy=job.plan.timing,
                budget_s=job.budget_s,
                sizes=job.sizes,
            ),
            bench,
            progress,
        )
        gc.collect()
        gc.disable()
        measured = measurement.take()
        gc.enable()
        limits, facts = monitor.limits(), session.facts()
        result = ProcessResult(
            seed=job.seed,
            warmup_s=measured.warmup_s,
            steady=measured.steady,
            sizes=measured.sizes,
            rows=[list(astuple(sample)) for sample in measured.samples],
            wrong=measured.wrong,
            card=CardFacts(
                uuid=session.uuid,
                name=session.name,
                arch=session.arch,
                multiprocessors=session.multiprocessors,
                fp32_lanes=fp32_lanes(session.arch),
                l2_bytes=session.l2_bytes,
                memory_clock_mhz=limits.max_memory_clock_mhz,
                memory_bus_bits=memory_bus_bits(session),
                max_sm_clock_mhz=limits.max_sm_clock_mhz,
                power_limit_w=limits.power_limit_w,
            ),
            driver=driver_version(monitor) or str(facts["driver"]),
            cuda_runtime=str(facts["runtime"]),
            cupy=str(facts["cupy"]),
            cublas=cublas_version(session),
            inputs=bench.input_facts(),
        )
        session.close()
        return result


if __name__ == "__main__":
    main()
