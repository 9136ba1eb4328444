"""Checking on the emulated device: the same inputs and rule as on a GPU, and what the emulation itself finds and counts.

A kernel that can remember something from one call to the next (in a workspace, say) runs a second time, with its warps in
another order. Its result is compared as on a GPU; hazards and counters are those of the first run. Any other kernel would
only repeat itself: races are found by what orders accesses, not by trying orders.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelab.check.job import CheckJob
from kernelab.check.judgement import At, Findings, Task, make_task
from kernelab.device.emulated import (
    Counters,
    EmulationError,
    GlobalMemory,
    Hazard,
    Launch,
    Module,
    Result,
    UnsupportedInstruction,
    emulate,
    parse_ptx,
    tensor_map,
)
from kernelab.errors import UserError
from kernelab.operation.compare import POISON_BYTE
from kernelab.operation.launches import Buffer, LaunchRefused, array_buffers
from kernelab.operation.loader import blame, load_operation
from kernelab.operation.program import EPOCH, Program, make_program
from kernelab.records.check import CheckedProblem, MemorySite

OTHER_ORDER = 1
# Of any cohort of blocks: some ten seconds. A naive GEMM needs about ten for each step of k.
INSTRUCTION_LIMIT = 1_000_000
MOST_SITES = 8  # of one problem, in its record


class NotEmulated(Exception):
    """The emulated device cannot run this kernel; nothing is known of its result."""


@dataclass(frozen=True)
class EmulatedArray:
    """What a prepare hook sees of an array: its name, shape, dtype and device address, but no contents."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    address: int


class EmulatedChecker:
    """Checks one arm on the emulated device.

    Raises:
        UserError: operation.py does not load, or the PTX cannot be read.
    """

    def __init__(self, job: CheckJob) -> None:
        self._job = job
        self._folder = Path(job.folder)
        self._loaded = load_operation(self._folder, job.operation)
        self._module = parse_ptx(Path(job.ptx).read_text())

    def check(self, values: Mapping[str, int | float], at: At) -> tuple[CheckedProblem, bool]:
        """See judgement.Checker. The device is new for every problem, so it never stops."""
        began = time.monotonic()
        task = make_task(self._loaded, values, self._job.seed, at)
        findings = Findings()
        hazards: list[Hazard] = []
        counters = Counters()
        try:
            self._run(task, findings, hazards, counters, at)
        except LaunchRefused as refused:
            findings.fault("launch_error", str(refused))
        except (NotEmulated, UnsupportedInstruction) as unable:
            findings.fault("not_measured", str(unable))
        except EmulationError as refused:
            findings.fault("launch_error", str(refused))
        for hazard in hazards:
            # A status of the emulated device's own; the words are the table's.
            findings.fault(hazard.status, str(hazard))  # type: ignore[arg-type]
        seconds = time.monotonic() - began
        result = findings.result(
            seconds,
            [str(hazard) for hazard in hazards],
            counters.summary() if counters.mix else {},
            _sites(counters),
        )
        return result, False

    def _run(self, task: Task, findings: Findings, hazards: list[Hazard], counters: Counters, at: At) -> None:
        at("load")
        job = self._job
        program = make_program(job.operation, job.kernel, job.levels, task.values, self._folder)
        device = EmulatedDevice(self._module, program, array_buffers(job.operation, task.values), task)
        at("run")
        for result in device.launch():
            hazards.extend(result.hazards)
            counters.merge(result.counters)
        at("compare")
        first = device.outputs()
        findings.judge_outputs(task, job.operation.tolerance, first)
        if not device.remembers or any(hazard.status == "timeout" for hazard in hazards):
            return  # the same run again, or one that would not end either
        at("run")
        device.reset_outputs()
        device.launch_again()
        at("compare")
        second = device.outputs()
        findings.judge_repeat(task, job.operation.tolerance, first, second)


def _sites(counters: Counters) -> list[MemorySite]:
    """The source lines whose shared-memory accesses took most wavefronts, those first."""
    lines: dict[tuple[str, int, str], list[int]] = {}
    for site in counters.sites:
        if site.space != "shared" or not site.requests or site.source_line is None:
            continue
        key = (Path(site.source_file or "").name, site.source_line, site.kind)
        total = lines.setdefault(key, [0, 0, 0])
        for index, count in enumerate((site.requests, site.wavefronts, site.ideal_wavefronts)):
            total[index] += int(count)
    ranked = sorted(lines.items(), key=lambda item: (-item[1][1], item[0]))
    return [
        MemorySite(file=file, line=line, kind=kind, requests=requests, wavefronts=wavefronts, fewest=fewest)
        for (file, line, kind), (requests, wavefronts, fewest) in ranked[:MOST_SITES]
    ]


class EmulatedDevice:
    """One problem's memory and one arm's launches on it. It is also what a prepare hook may ask of the device."""

    def __init__(self, module: Module, program: Program, buffers: Mapping[str, Buffer], task: Task) -> None:
        self._module, self._program, self._task, self._buffers = module, program, task, buffers
        self._memory = GlobalMemory()
        self._epoch = 0
        self._counted = any(EPOCH in config.arguments for config in program.launches)
        self._uploads = 0
        # An output is the caller's: its contents are defined even where the operation does not read them, and a
        # kernel that reads them to no effect is no hazard. If it has an effect, the NaN shows.
        arrays = {
            name: self._allocate(name, buffer, task.inputs.get(name)) for name, buffer in buffers.items()
        }
        workspaces = {name: self._workspace(name, buffer) for name, buffer in program.workspaces.items()}
        self._named: dict[str, Any] = {**program.scalars}
        self._named |= {name: array.address for name, array in (arrays | workspaces).items()}
        self._named |= self._prepared(arrays, workspaces)

    @property
    def remembers(self) -> bool:
        """Whether anything but the outputs lasts from one call to the next."""
        own = any(variable.space == "global" for variable in self._module.variables.values())
        return own or bool(self._program.workspaces) or self._uploads > 0 or self._counted

    def launch(self) -> list[Result]:
        """One call of the whole sequence, launch by launch."""
        return [
            emulate(self._module, launch, self._memory, instruction_limit=INSTRUCTION_LIMIT)
            for launch in self._launches()
        ]

    def launch_again(self) -> None:
        """Another call, with the warps in another order, and for its result alone."""
        for launch in self._launches():
            emulate(
                self._module,
                launch,
                self._memory,
                count=False,
                detect_races=False,
                order_seed=OTHER_ORDER,
                instruction_limit=INSTRUCTION_LIMIT,
            )

    def outputs(self) -> dict[str, NDArray[Any]]:
        """Copies of the outputs."""
        return {name: self._memory.read(name) for name in self._task.outputs}

    def reset_outputs(self) -> None:
        """Outputs as before the first launch."""
        for name in self._task.outputs:
            self._memory.write(name, _initial(self._buffers[name], self._task.inputs.get(name)))

    def tensor_map(
        self,
        array: Any,
        box: tuple[int, ...],
        *,
        shape: tuple[int, ...] | None = None,
        strides: tuple[int, ...] | None = None,
        swizzle: int = 0,
        l2_promotion: int = 256,
    ) -> bytes:
        """See PrepareDevice; the bytes mean something to the emulated device alone."""
        return tensor_map(array.address, shape or array.shape, box, strides=strides, swizzle=swizzle)

    def upload(self, data: bytes | NDArray[Any]) -> EmulatedArray:
        """See PrepareDevice."""
        host = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else np.ascontiguousarray(data)
        name = f"upload {self._uploads}"
        self._uploads += 1
        return EmulatedArray(name, host.shape, host.dtype, self._memory.allocate(name, host, writable=False))

    def _launches(self) -> list[Launch]:
        self._epoch += 1
        named = self._named | {EPOCH: np.uint32(self._epoch)}
        launches = []
        for config in self._program.launches:
            if missing := [name for name in config.arguments if name not in named]:
                raise UserError(
                    f"kernels.yaml: {config.entry}: nothing is called {missing[0]} (prepare returned no such argument)"
                )
            arguments = [named[name] for name in config.arguments]
            launches.append(Launch(config.entry, config.grid, config.block, arguments, config.dynamic_shared))
        return launches

    def _allocate(self, name: str, buffer: Buffer, values: NDArray[Any] | None) -> EmulatedArray:
        address = self._memory.allocate(name, _initial(buffer, values), writable=name in self._task.outputs)
        return EmulatedArray(name, buffer.shape, np.dtype(buffer.dtype), address)

    def _workspace(self, name: str, buffer: Buffer) -> EmulatedArray:
        contents = np.zeros(buffer.shape, buffer.dtype)
        return EmulatedArray(
            name, buffer.shape, contents.dtype, self._memory.allocate(name, contents, initialised=buffer.zero)
        )

    def _prepared(self, arrays: Mapping[str, Any], workspaces: Mapping[str, Any]) -> dict[str, Any]:
        prepare = self._program.prepare
        if prepare is None:
            return {}
        file = prepare.__code__.co_filename if hasattr(prepare, "__code__") else "prepare"
        shown = "/".join(file.split("/")[-3:])
        name = getattr(prepare, "__name__", "prepare")
        try:
            made = dict(prepare(dict(self._program.values), dict(arrays), dict(workspaces), self))
        except (NotEmulated, EmulationError, MemoryError):
            raise
        except AttributeError as error:
            # Most likely a CuPy method on what is no CuPy array here.
            raise NotEmulated(f"{shown}: {name} needs a GPU ({blame(error, file)})") from None
        except Exception as error:  # the hook is the user's: it may raise anything
            raise UserError(f"{shown}: {name} raised at {blame(error, file)}") from None
        return {
            key: value.address if isinstance(value, EmulatedArray) else value for key, value in made.items()
        }


def _initial(buffer: Buffer, values: NDArray[Any] | None) -> NDArray[Any]:
    if values is not None:
        return values
    dtype = np.dtype(buffer.dtype)
    return np.full(buffer.count * dtype.itemsize, POISON_BYTE, np.uint8).view(dtype).reshape(buffer.shape)
