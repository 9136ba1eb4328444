"""The same launches of the catalogue's kernels, counted by ncu on the card and by the emulated device."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from against_hardware.bare_launches import BareArray, BareLaunch
from against_hardware.rows import METRICS, Code, code_of, counted
from kernelab.build.kernel import Build, build_kernel
from kernelab.build.sass import parse_sass
from kernelab.build.toolchain import find_toolchain
from kernelab.device.emulated import GlobalMemory, Hazard, Launch, emulate, parse_ptx
from kernelab.errors import UserError
from kernelab.operation.compare import POISON_BYTE, compare
from kernelab.operation.inputs import make_inputs, make_reference
from kernelab.operation.launches import LaunchConfig, array_buffers
from kernelab.operation.loader import load_operation
from kernelab.operation.program import Program, make_program, scalar_arguments
from kernelab.plan.catalogue import Kernel, Operation, read_catalogue
from kernelab.profile.ncu import find_ncu, run_ncu, unknown_metrics
from kernelab.profile.report import read_report
from kernelab.records.profile import ProfiledKernel

TARGET = Path(__file__).with_name("bare_launches.py")
NCU_LIMIT_S = 80.0
SEED = 1


@dataclass(frozen=True)
class Case:
    """One kernel of the catalogue, at its defaults, at one problem. folder: of the operation, absolute."""

    folder: str
    kernel: str
    problem: str
    values: Mapping[str, int | float]


@dataclass(frozen=True)
class Prepared:
    """A case that was built: its cubin, PTX, the facts of its code, and its single launch."""

    case: Case
    cubin: bytes
    ptx: str
    launch: LaunchConfig
    code: Code


@dataclass(frozen=True)
class Emulated:
    """What the emulated device counts, finds and computes."""

    counters: dict[str, int]
    hazards: list[Hazard]
    outputs: dict[str, NDArray[np.float32]]


def catalogued(folder: Path) -> tuple[Operation, Mapping[str, Kernel]]:
    """The operation and kernels of kernels/<operation>."""
    catalogue = read_catalogue(folder / "kernels.yaml", f"kernels/{folder.name}/kernels.yaml")
    return catalogue.operation, catalogue.kernels


def build_case(case: Case, arch: str, toolchain: str) -> Prepared:
    """Build one case.

    Raises:
        UserError: it does not compile, or is more than one launch or a launch with more than the operation's arguments.
    """
    folder = Path(case.folder)
    kernel = catalogued(folder)[1][case.kernel]
    levels = kernel.defaults()
    defines = {name: str(kernel.parameters[name].macro_value(level)) for name, level in levels.items()}
    made: Build = build_kernel(
        folder / str(kernel.source), arch=arch, toolchain=find_toolchain(toolchain), defines=defines
    )
    if made.compilation.cubin is None:
        raise UserError(f"{case.kernel}: does not compile: {made.compilation.error}")
    program = _program(case)
    if len(program.launches) != 1 or program.workspaces or program.prepare is not None:
        raise UserError(f"{case.kernel}: only a single launch without workspaces can be compared")
    launch = program.launches[0]
    sass = parse_sass(made.sass)[launch.entry]
    warps = math.prod(launch.grid) * -(-math.prod(launch.block) // 32)
    code = code_of(made.compilation.ptx, sass, launch.entry, warps)
    return Prepared(case, made.compilation.cubin, made.compilation.ptx, launch, code)


@dataclass(frozen=True)
class Data:
    """The arrays of a case: what is in each before the launch (an output that is not read is poisoned), and the reference."""

    before: dict[str, NDArray[np.float32]]
    reference: dict[str, NDArray[np.float64]]


def make_data(case: Case) -> Data:
    """The arrays of a case, the same bytes whenever it is called."""
    operation, _ = catalogued(Path(case.folder))
    loaded = load_operation(Path(case.folder), operation)
    inputs = make_inputs(loaded, case.values, "uniform", SEED)
    before = {}
    for name, buffer in array_buffers(operation, case.values).items():
        poison = np.full(4 * buffer.count, POISON_BYTE, np.uint8).view(np.float32).reshape(buffer.shape)
        before[name] = inputs.get(name, poison)
    return Data(before, make_reference(loaded, case.values, inputs))


def _program(case: Case) -> Program:
    folder = Path(case.folder)
    operation, kernels = catalogued(folder)
    kernel = kernels[case.kernel]
    return make_program(operation, kernel, kernel.defaults(), case.values, folder)


def emulate_case(prepared: Prepared) -> Emulated:
    """Run one case on the emulated device."""
    case, config = prepared.case, prepared.launch
    operation, _ = catalogued(Path(case.folder))
    data, memory = make_data(case), GlobalMemory()
    named: dict[str, Any] = dict(scalar_arguments(operation, case.values))
    for name, contents in data.before.items():
        named[name] = memory.allocate(name, contents, writable=name in data.reference)
    arguments = [named[name] for name in config.arguments]
    launch = Launch(config.entry, config.grid, config.block, arguments, config.dynamic_shared)
    result = emulate(parse_ptx(prepared.ptx), launch, memory)
    return Emulated(
        counted(result.counters), result.hazards, {name: memory.read(name) for name in data.reference}
    )


def bare_launch(prepared: Prepared, folder: Path) -> BareLaunch:
    """A case for bare_launches.py, with the bytes that the emulated device gets; outputs are saved."""
    case, config = prepared.case, prepared.launch
    operation, _ = catalogued(Path(case.folder))
    data, scalars = make_data(case), scalar_arguments(operation, case.values)
    cubin = folder / "kernel.cubin"
    cubin.write_bytes(prepared.cubin)
    arrays = {}
    for name, contents in data.before.items():
        file = folder / f"{name}.in"
        contents.tofile(file)
        output = str(saved(folder, name)) if name in data.reference else ""
        arrays[name] = BareArray(contents.nbytes, str(file), output)
    arguments = tuple(
        f"array:{name}" if name in arrays else f"bytes:{scalars[name].tobytes().hex()}"
        for name in config.arguments
    )
    return BareLaunch(
        str(cubin), config.entry, config.grid, config.block, config.dynamic_shared, arrays, arguments
    )


def saved(folder: Path, output: str) -> Path:
    """Where bare_launches.py leaves an output."""
    return folder / f"{output}.out"


def judge_output(prepared: Prepared, folder: Path, emulated: Emulated) -> str:
    """Empty where the card's output is right; or else what is wrong. The counters of a wrong launch mean nothing."""
    case = prepared.case
    operation, _ = catalogued(Path(case.folder))
    data = make_data(case)
    for name, reference in data.reference.items():
        measured = np.fromfile(saved(folder, name), np.float32).reshape(reference.shape)
        for where, output in (("the card", measured), ("the emulated device", emulated.outputs[name])):
            agreement = compare(name, output, reference, operation.tolerance, data.before[name])
            if not agreement.correct:
                return f"{where}: {agreement.note}"
    return f"{emulated.hazards[0]}" if emulated.hazards else ""


def profile_launches(launches: Sequence[BareLaunch], folder: Path) -> list[ProfiledKernel]:
    """ncu's counters of launches, in order: one process of ncu, and one more for each set of metrics that the card lacks.

    Raises:
        UserError: ncu is not installed, may not read the counters, or saw other launches.
    """
    ncu = find_ncu()
    if ncu is None:
        raise UserError("ncu (Nsight Compute) is not installed")
    job, report = folder / "counters.json", folder / "counters.ncu-rep"
    job.write_text(json.dumps([asdict(launch) for launch in launches]))
    metrics = [name for choices in METRICS.values() for choice in choices for name in choice]
    words = ""
    for _ in range(3):
        run = run_ncu(ncu_command(ncu, report, job, metrics), NCU_LIMIT_S)
        words = run.words
        if run.code == 0 and report.is_file():
            return expected_kernels(read_report(report), launches)
        unknown = unknown_metrics(words)
        if not unknown:
            break
        metrics = [name for name in metrics if name not in unknown]
    last = [line for line in words.splitlines() if line.strip()][-3:]
    raise UserError(f"ncu gave no report: {' / '.join(last) or f'it was not done after {NCU_LIMIT_S:g} s'}")


def ncu_command(ncu: str, report: Path, job: Path, metrics: Sequence[str]) -> list[str]:
    """Nothing but the metrics, of every launch, at the clocks that the card has."""
    return [
        ncu,
        *("--config-file", "off"),
        *("--target-processes", "all"),
        *("--clock-control", "none"),
        *("--metrics", ",".join(metrics)),
        "--force-overwrite",
        *("--export", report.as_posix()),
        *(sys.executable, str(TARGET), str(job)),
    ]


def expected_kernels(found: list[ProfiledKernel], launches: Sequence[BareLaunch]) -> list[ProfiledKernel]:
    """The kernels of a report.

    Raises:
        UserError: they are not those that were launched.
    """
    names, entries = [kernel.name for kernel in found], [launch.entry for launch in launches]
    if len(names) != len(entries) or any(
        not name.startswith(e) for name, e in zip(names, entries, strict=True)
    ):
        raise UserError(
            f"ncu saw {len(names)} kernels ({', '.join(names[:4])}); {len(entries)} were launched"
        )
    return found
