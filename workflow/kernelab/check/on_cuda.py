"""Checking on a GPU: NaN-poisoned outputs between guard bands, inputs before and after, two runs, float64 and the library."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from kernelab.check.job import CheckJob
from kernelab.check.judgement import At, Findings, Task, make_task
from kernelab.device.cuda import Session
from kernelab.device.cuda_faults import KernelFault, translated
from kernelab.device.cuda_launch import Arm
from kernelab.device.cuda_memory import DeviceArrays
from kernelab.errors import BrokenMachine, UserError
from kernelab.operation.launches import LaunchRefused, array_buffers
from kernelab.operation.loader import load_operation
from kernelab.operation.program import make_program
from kernelab.records.check import CheckedProblem


class CudaChecker:
    """Checks one arm on one card.

    Raises:
        UserError: operation.py does not load, or the card is not here.
        BrokenMachine: the card cannot be used.
    """

    def __init__(self, job: CheckJob) -> None:
        self._job = job
        self._folder = Path(job.folder)
        self._loaded = load_operation(self._folder, job.operation)
        self._cubin = Path(job.cubin).read_bytes() if job.cubin else b""
        self._ptx = Path(job.ptx).read_bytes() if job.ptx else None
        self._session = Session(job.uuid)
        self._no_library = ""

    def check(self, values: Mapping[str, int | float], at: At) -> tuple[CheckedProblem, bool]:
        """See judgement.Checker."""
        began = time.monotonic()
        task = make_task(self._loaded, values, self._job.seed, at)
        findings = Findings()
        stopped = False
        try:
            self._run(task, findings, at)
        except LaunchRefused as refused:
            findings.fault("launch_error", str(refused))
        except KernelFault as fault:
            findings.fault(fault.status, str(fault))
            stopped = fault.sticky
        return findings.result(time.monotonic() - began), stopped

    def _run(self, task: Task, findings: Findings, at: At) -> None:
        at("load")
        session = self._session
        arrays = session.arrays(array_buffers(self._job.operation, task.values), task.outputs, task.inputs)
        arm = self._load(task, arrays)
        if arm.from_ptx:
            findings.remark("the cubin is for another architecture: the driver compiled the PTX")
        first = self._launch(arm, arrays, task, at)
        at("compare")
        findings.judge_outputs(task, self._job.operation.tolerance, first)
        second = self._launch(arm, arrays, task, at)
        at("compare")
        findings.judge_repeat(task, self._job.operation.tolerance, first, second)
        findings.judge_memory([*arrays.damaged_guards(), *arm.damaged_guards()], arrays.changed_inputs())
        if self._job.library and not self._job.kernel.library:
            self._compare_with_library(task, arrays, first, findings, at)

    def _load(self, task: Task, arrays: DeviceArrays) -> Arm:
        job = self._job
        if job.kernel.library:
            return self._session.load_library(self._loaded.library(job.kernel.library), task.values, arrays)
        program = make_program(job.operation, job.kernel, job.levels, task.values, self._folder)
        return self._session.load(program, self._cubin, arrays, self._ptx)

    def _launch(self, arm: Arm, arrays: DeviceArrays, task: Task, at: At) -> dict[str, NDArray[Any]]:
        arrays.reset_outputs()
        at("run")
        with translated():
            arm.launch()
        self._session.synchronize()
        return arrays.outputs()

    def _compare_with_library(
        self, task: Task, arrays: DeviceArrays, ours: dict[str, NDArray[Any]], findings: Findings, at: At
    ) -> None:
        if not self._no_library:
            try:
                library = self._session.load_library(
                    self._loaded.library(self._job.library), task.values, arrays
                )
            except UserError as error:
                self._no_library = str(error)
        if self._no_library:
            findings.remark(f"not compared with {self._job.library}: {self._no_library}")
            return
        try:
            theirs = self._launch(library, arrays, task, at)
        except KernelFault as fault:
            # Our kernel had been waited for: this is not its fault.
            raise BrokenMachine(f"{self._job.library}: {fault}") from fault
        findings.judge_library(self._job.library, ours, theirs)
