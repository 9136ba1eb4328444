"""From what an arm left behind to a status and a note: the part of a check that is the same on every device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kernelab.check.job import Stage
from kernelab.operation.compare import compare, differing_bits, largest_difference
from kernelab.operation.inputs import make_inputs, make_reference
from kernelab.operation.loader import LoadedOperation
from kernelab.plan.catalogue import Tolerance
from kernelab.records.check import CheckedProblem, CheckStatus, MemorySite, gravest

Outputs = Mapping[str, NDArray[Any]]
At = Callable[[Stage], None]


class Checker(Protocol):
    """Checks one arm on one device, problem by problem."""

    def check(self, values: Mapping[str, int | float], at: At) -> tuple[CheckedProblem, bool]:
        """Check one problem, telling `at` what is being done. The flag says that the device can do no more in this process."""


@dataclass(frozen=True)
class Task:
    """One problem made ready: host inputs, the float64 reference, and the names of the outputs."""

    values: Mapping[str, int | float]
    inputs: dict[str, NDArray[np.float32]]
    reference: dict[str, NDArray[np.float64]]

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(self.reference)


@dataclass
class Findings:
    """What is known about one problem so far; `fault` and `remark` add to it, `result` sums it up."""

    statuses: list[CheckStatus] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    correct: bool | None = None
    max_abs_error: float | None = None
    rel_error: float | None = None
    library_difference: float | None = None

    def fault(self, status: CheckStatus, note: str) -> None:
        """Something is wrong. An incorrect result also clears `correct`."""
        self.statuses.append(status)
        self.faults.append(note)
        if status == "wrong_result":
            self.correct = False

    def remark(self, note: str) -> None:
        """Something worth a word that is not wrong."""
        self.remarks.append(note)

    def judge_outputs(self, task: Task, tolerance: Tolerance, outputs: Outputs, when: str = "") -> None:
        """Compare the outputs of one run with the reference."""
        for name, reference in task.reference.items():
            agreement = compare(name, outputs[name], reference, tolerance, task.inputs.get(name))
            if self.correct is None:
                self.correct = True
            if agreement.correct:
                self.max_abs_error = _larger(self.max_abs_error, agreement.max_abs_error)
                self.rel_error = _larger(self.rel_error, agreement.rel_error)
            else:
                # The figures of the run that failed are the ones to show.
                self.max_abs_error, self.rel_error = agreement.max_abs_error, agreement.rel_error
                self.fault("wrong_result", f"{when}{agreement.note}")

    def judge_memory(self, damaged: Sequence[str], changed: Sequence[str]) -> None:
        """Writes outside the arrays, and inputs that are not what they were."""
        for damage in damaged:
            self.fault("memory_fault", f"writes outside {damage}")
        for change in changed:
            self.fault("wrong_result", f"changed its input {change}")

    def judge_repeat(self, task: Task, tolerance: Tolerance, first: Outputs, second: Outputs) -> None:
        """A second run on the same inputs: a difference in bits is a remark, since float atomics may add in any order."""
        differing = {name: differing_bits(first[name], second[name]) for name in first}
        if not any(differing.values()):
            return  # what was said of the first run holds
        self.judge_outputs(task, tolerance, second, "second run: ")
        for name, count in differing.items():
            if count:
                self.remark(f"two runs differ in {count} of {first[name].size} elements of {name}")

    def judge_library(self, library: str, ours: Outputs, theirs: Outputs) -> None:
        """How far the outputs are from a library's: a figure, not a fault."""
        for name in ours:
            difference = largest_difference(ours[name], theirs[name])
            if difference is None:
                self.remark(f"{name} cannot be compared with {library}: NaN or infinity")
            else:
                self.library_difference = _larger(self.library_difference, difference)

    def result(
        self,
        seconds: float,
        hazards: Sequence[str] = (),
        counters: Mapping[str, float] | None = None,
        sites: Sequence[MemorySite] = (),
    ) -> CheckedProblem:
        """The problem's result; faults come first in its note."""
        return CheckedProblem(
            status=gravest(self.statuses),
            correct=self.correct,
            max_abs_error=self.max_abs_error,
            rel_error=self.rel_error,
            library_difference=self.library_difference,
            note="; ".join(dict.fromkeys([*self.faults, *self.remarks])),
            seconds=round(seconds, 3),
            hazards=tuple(hazards),
            counters=dict(counters or {}),
            sites=tuple(sites),
        )


def make_task(loaded: LoadedOperation, values: Mapping[str, int | float], seed: int, at: At) -> Task:
    """Inputs and reference of a problem.

    Raises:
        UserError: operation.py fails, or its reference cannot judge.
    """
    at("inputs")
    inputs = make_inputs(loaded, values, "uniform", seed)
    at("reference")
    return Task(values, inputs, make_reference(loaded, values, inputs))


def _larger(known: float | None, other: float | None) -> float | None:
    return other if known is None else known if other is None else max(known, other)
