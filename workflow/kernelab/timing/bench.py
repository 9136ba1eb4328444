"""A GPU as a bench: arms loaded on one session, sampled with its stopwatch. Lives in a worker process only."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernelab.device.cuda_faults import KernelFault, translated
from kernelab.device.nvml import Monitor
from kernelab.device.stopwatch import Stopwatch
from kernelab.errors import UserError
from kernelab.operation.compare import compare
from kernelab.operation.inputs import make_inputs, make_reference
from kernelab.operation.launches import LaunchRefused, array_buffers, is_read
from kernelab.operation.loader import LoadedOperation, load_operation
from kernelab.operation.program import make_program
from kernelab.plan.arms import Arm, Plan
from kernelab.records.record import replacing
from kernelab.timing.faults import ArmFault
from kernelab.timing.groups import Member
from kernelab.timing.job import BuiltArm, InputFacts
from kernelab.timing.measure import CardState, Reading

if TYPE_CHECKING:
    from kernelab.device.cuda import Session

INPUT_SEED = 1
"""Of the inputs that are timed: the same in every process, session and experiment."""

OTHER_SEED = 2
"""Of the inputs of the check after timing."""

LIBRARY_KERNELS = 4
"""Kernels that one call of a library may queue; it does not tell."""

Arrays = dict[str, NDArray[Any]]


@dataclass
class _Place:
    """The arrays of one problem with one kind of data, shared by all its arms, so that all find the same memory."""

    arrays: Any
    inputs_sha256: dict[str, str]
    restore: Callable[[], None] | None
    other: Arrays | None = None  # the inputs of the check after timing, once they are uploaded
    reference: Arrays | None = None  # their result


class GpuBench:
    """See measure.Bench.

    Args:
        plan: whose arms are loaded.
        builds: machine code by build key.
        session: the card.
        monitor: NVML, for its state.
        root: the project's folder, which the catalogue's paths start from.
        references: a folder where float64 references are kept between the processes of a run.

    Attributes:
        limit_s: wall-clock limit of one launch, or of one sample.
    """

    def __init__(
        self,
        plan: Plan,
        builds: Mapping[str, BuiltArm],
        session: Session,
        monitor: Monitor,
        *,
        root: Path,
        references: Path,
    ) -> None:
        self._plan, self._session, self._monitor = plan, session, monitor
        self._root, self._references = root, references
        self._arms, self._builds, self._built = dict(plan.arms), dict(plan.builds), dict(builds)
        self.limit_s = plan.timing.launch_limit_s
        self._stopwatch = Stopwatch(session)
        self._operations: dict[str, LoadedOperation] = {}
        self._places: dict[tuple[str, str], _Place] = {}
        self._loaded: dict[str, Any] = {}

    def load(self, member: Member) -> None:
        arm = self._arms[member.arm]
        place = self._place(arm)
        with blaming_the_arm():
            self._loaded[member.name] = self._instance(arm, place)

    def _instance(self, arm: Arm, place: _Place) -> Any:
        kernel, loaded, values = self._plan.kernel(arm), self._operation(arm), self._values(arm)
        if kernel.library is not None:
            return self._session.load_library(loaded.library(kernel.library), values, place.arrays)
        build, built = self._builds[arm.build], self._built[arm.build]
        program = make_program(loaded.operation, kernel, build.levels, values, self._folder(arm))
        # No PTX: what the driver would make of it is other code than the build's, whose SASS the table shows.
        return self._session.load(program, Path(built.cubin).read_bytes(), place.arrays)

    def launcher(self, member: Member) -> Callable[[], None]:
        """What queues one launch of a loaded member, for other clocks than ours."""
        launch: Callable[[], None] = self._loaded[member.name].launch
        return launch

    def launch_once(self, member: Member) -> None:
        with blaming_the_arm(), translated():
            self._loaded[member.name].launch()
            self._session.synchronize(self.limit_s)

    def sample(self, member: Member, launches: int) -> Reading:
        arm = self._arms[member.arm]
        return self._sampled(member, launches, self._places[(arm.problem, arm.data)].restore)

    def _sampled(self, member: Member, launches: int, restore: Callable[[], None] | None) -> Reading:
        take = self._stopwatch.hot if self._arms[member.arm].l2 == "hot" else self._stopwatch.cold
        with blaming_the_arm():
            sampled = take(self._loaded[member.name].launch, launches, self.limit_s, restore)
        return Reading(sampled.time_ms, sampled.sm_clock_mhz, sampled.queued)

    def state(self) -> CardState:
        reading = self._monitor.reading()
        throttle = "" if reading.throttle is None else "+".join(reading.throttle) or "none"
        return CardState(reading.power_w, reading.temperature_c, throttle)

    def method(self, member: Member) -> tuple[str, int]:
        kernels = self._loaded[member.name].kernels
        return self._arms[member.arm].l2, LIBRARY_KERNELS if kernels is None else kernels

    def problem(self, member: Member) -> str:
        return self._arms[member.arm].problem

    def check_again(self, member: Member) -> str:
        arm = self._arms[member.arm]
        place = self._places[(arm.problem, arm.data)]
        if place.other is None:
            place.other = dict(make_inputs(self._operation(arm), self._values(arm), arm.data, OTHER_SEED))
            place.arrays.upload(place.other)
        place.arrays.reset_outputs()
        self.launch_once(member)
        for name, output in place.arrays.outputs().items():
            if complaint := self._complaint(arm, place, name, output):
                return f"after timing, on other inputs: {complaint}"
        if damage := [*place.arrays.damaged_guards(), *self._loaded[member.name].damaged_guards()]:
            raise ArmFault("memory_fault", f"after timing: wrote outside {damage[0]}")
        return ""

    def input_facts(self) -> list[InputFacts]:
        """The digests of all inputs that were timed."""
        return [
            InputFacts(problem=problem, data=data, inputs_sha256=place.inputs_sha256)
            for (problem, data), place in sorted(self._places.items())
        ]

    def _place(self, arm: Arm) -> _Place:
        key = (arm.problem, arm.data)
        if key not in self._places:
            loaded, values = self._operation(arm), self._values(arm)
            operation = loaded.operation
            inputs = make_inputs(loaded, values, arm.data, INPUT_SEED)
            outputs = tuple(name for name, array in operation.arrays.items() if array.role == "output")
            arrays = self._session.arrays(array_buffers(operation, values), outputs, inputs)
            # Where an output is read, alpha A B + beta C would grow from launch to launch.
            read = any(is_read(operation, name, values) for name in outputs)
            digests = {name: hashlib.sha256(array.tobytes()).hexdigest() for name, array in inputs.items()}
            self._places[key] = _Place(arrays, digests, arrays.reset_outputs if read else None)
        return self._places[key]

    def _complaint(self, arm: Arm, place: _Place, name: str, output: NDArray[Any]) -> str:
        """What is wrong with an output. Bytes that this run has already judged right are not judged again."""
        assert place.other is not None
        digest = hashlib.sha256(f"{self._folder_of(arm)} {name}".encode() + output.tobytes()).hexdigest()
        judged = self._folder_of(arm) / digest
        if judged.is_file():
            return ""
        if place.reference is None:
            place.reference = self._reference(arm, place.other, "other")
        tolerance = self._operation(arm).operation.tolerance
        agreement = compare(name, output, place.reference[name], tolerance, place.other.get(name))
        if agreement.correct:
            judged.touch()
        return agreement.note

    def _reference(self, arm: Arm, inputs: Arrays, which: str) -> Arrays:
        """The float64 result for some inputs: computed by the first process of a run, read by the others."""
        path = self._folder_of(arm) / f"{which}.npz"
        if path.is_file():
            with np.load(path) as stored:
                return {name: stored[name] for name in stored.files}
        reference: Arrays = dict(make_reference(self._operation(arm), self._values(arm), inputs))
        with replacing(path) as temporary, temporary.open("wb") as stream:
            np.savez(stream, **reference)  # type: ignore[arg-type]
        return reference

    def _folder_of(self, arm: Arm) -> Path:
        """Where this run keeps what it knows of the right outputs of a problem."""
        digest = hashlib.sha256(f"{arm.operation} {arm.problem} {arm.data}".encode()).hexdigest()[:16]
        folder = self._references / digest
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _operation(self, arm: Arm) -> LoadedOperation:
        if arm.operation not in self._operations:
            self._operations[arm.operation] = load_operation(self._folder(arm), self._plan.operation(arm))
        return self._operations[arm.operation]

    def _folder(self, arm: Arm) -> Path:
        return self._root / self._plan.operations[arm.operation].folder

    def _values(self, arm: Arm) -> dict[str, int | float]:
        return dict(self._plan.problems[arm.problem].values)


@contextmanager
def blaming_the_arm() -> Iterator[None]:
    try:
        yield
    except KernelFault as fault:
        raise ArmFault(fault.status, str(fault), sticky=fault.sticky) from fault
    except (LaunchRefused, UserError) as refused:
        # A UserError here is of the arm's own: a hook that raises, a library that is not installed.
        raise ArmFault("launch_error", str(refused), sticky=False) from refused
