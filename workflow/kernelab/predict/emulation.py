"""What the memory instructions of a kernel cost, counted on the emulated device: one block, a few turns of its loop."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from kernelab.check.judgement import Task
from kernelab.check.on_emulated import EmulatedDevice, NotEmulated
from kernelab.device.emulated import Counters, EmulationError, UnsupportedInstruction, emulate, parse_ptx
from kernelab.device.emulated.counters import MATRIX_OPCODES, WarpAccess, wavefronts
from kernelab.operation.launches import Buffer, LaunchRefused, array_buffers, plan_launches
from kernelab.operation.program import make_program
from kernelab.plan.catalogue import Kernel, Operation
from kernelab.plan.expression import Number

MOST_BYTES = 4 << 20  # of the arrays of the problem that is emulated
INSTRUCTIONS = 24_000  # of a warp: a few turns of the longest loops
LINE = 128  # bytes of an L1 cache line, of which one is looked up a cycle


@dataclass(frozen=True)
class Traffic:
    """Means of the requests of one kind.

    Args:
        pipe_cycles: of the LSU pipe: wavefronts of a shared request, cache lines of a global one.
        sectors: 32-byte sectors of global memory.
    """

    pipe_cycles: float
    sectors: float


@dataclass(frozen=True)
class Emulated:
    """`traffic` by SASS opcode and bits a thread, as ("LDS", 128). `per_barrier`: fused multiply-adds of a warp for each
    barrier that it passes; None without either."""

    traffic: dict[tuple[str, int], Traffic]
    per_barrier: float | None


class _OneBlock(EmulatedDevice):
    """Runs the first block of each launch, and not to its end."""

    def sample(self) -> list[Emulated]:
        """What each launch counted."""
        found = []
        for launch in self._launches():
            one = replace(launch, grid=(1, 1, 1))
            ran = emulate(self._module, one, self._memory, detect_races=False, instruction_limit=INSTRUCTIONS)
            found.append(Emulated(_traffic(ran.counters, ran.worst), _per_barrier(ran.counters)))
        return found


def sample(
    ptx: str,
    operation: Operation,
    kernel: Kernel,
    levels: Mapping[str, str],
    problem: Mapping[str, Number],
    folder: Path,
) -> list[Emulated] | None:
    """Count one block of each of the kernel's launches, on a smaller problem; None where the emulated device cannot.

    Args:
        ptx: of the build.
        operation, kernel, levels, problem, folder: as make_program takes them.
    """
    small = smaller_problem(operation, kernel, levels, problem)
    try:
        program = make_program(operation, kernel, levels, small, folder)
        buffers = array_buffers(operation, small)
        return _OneBlock(parse_ptx(ptx), program, buffers, _zeros(operation, small, buffers)).sample()
    except (LaunchRefused, NotEmulated, UnsupportedInstruction, EmulationError):
        return None


def smaller_problem(
    operation: Operation, kernel: Kernel, levels: Mapping[str, str], problem: Mapping[str, Number]
) -> dict[str, Number]:
    """The problem with its whole numbers halved, together, while the same launches hold and the arrays are large."""
    entries = [launch.entry for launch in plan_launches(operation, kernel, levels, problem)]
    chosen = dict(problem)
    while sum(4 * buffer.count for buffer in array_buffers(operation, chosen).values()) > MOST_BYTES:
        halved = {
            name: value // 2 if operation.problem[name] == "int" and value > 1 else value
            for name, value in chosen.items()
        }
        if halved == chosen:
            break
        try:
            if [launch.entry for launch in plan_launches(operation, kernel, levels, halved)] != entries:
                break
        except LaunchRefused:
            break
        chosen = halved
    return chosen


def _zeros(operation: Operation, problem: Mapping[str, Number], buffers: Mapping[str, Buffer]) -> Task:
    inputs = {name: np.zeros(buffer.shape, np.float32) for name, buffer in buffers.items()}
    outputs = [name for name, array in operation.arrays.items() if array.role == "output"]
    return Task(problem, inputs, {name: np.zeros(0) for name in outputs})


_OPCODES = {
    ("shared", "load"): "LDS",
    ("shared", "store"): "STS",
    ("global", "load"): "LDG",
    ("global", "store"): "STG",
}


def _traffic(counters: Counters, worst: list[WarpAccess]) -> dict[tuple[str, int], Traffic]:
    lines = {(access.ptx_line, access.space): _lines(access) for access in worst if access.space == "global"}
    copies = {site.ptx_line for site in counters.sites if site.opcode.startswith("cp.async")}
    sums: dict[tuple[str, int], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for site in counters.sites:
        opcode = _OPCODES.get((site.space, site.kind))
        if opcode is None or not site.requests or not site.lanes:
            continue
        if site.ptx_line in copies:
            opcode = "LDGSTS"
        threads = site.lanes
        if site.opcode.startswith(MATRIX_OPCODES):
            opcode = "LDSM" if site.kind == "load" else "STSM"
            threads = 32 * site.executed  # counted by the lanes that give addresses, moved by all
        total = sums[opcode, 8 * site.bytes // threads]
        if site.space == "shared":
            total[1] += site.wavefronts
        else:
            total[1] += lines.get((site.ptx_line, site.space), 1) * site.requests
            total[2] += site.sectors
        if site.space == "global" or opcode != "LDGSTS":
            total[0] += site.requests
    found = {key: Traffic(cycles / n, sectors / n) for key, (n, cycles, sectors) in sums.items() if n}
    for key, cycles in _merged(worst).items():
        found.setdefault(key, Traffic(cycles, 0.0))
    return found


def _merged(worst: list[WarpAccess]) -> dict[tuple[str, int], float]:
    """Wavefronts of the wide accesses that ptxas may make of neighbouring narrow ones in shared memory: those whose lanes all
    stand on a boundary of the wider width."""
    costs: dict[tuple[str, int], list[int]] = defaultdict(list)
    for access in worst:
        if access.space != "shared" or None in access.addresses:
            continue
        for width in (8, 16):
            if width > access.width and all((address or 0) % width == 0 for address in access.addresses):
                lanes = np.array(access.addresses, np.int64).reshape(1, 1, 32)
                costs[_OPCODES["shared", access.kind], 8 * width].append(
                    int(wavefronts(lanes, None, width)[0].sum())
                )
    return {key: sum(found) / len(found) for key, found in costs.items()}


def _lines(access: WarpAccess) -> int:
    return len({address // LINE for address in access.addresses if address is not None})


def _per_barrier(counters: Counters) -> float | None:
    adds = sum(count for opcode, count in counters.mix.items() if opcode.startswith("fma."))
    barriers = sum(count for opcode, count in counters.mix.items() if opcode.startswith(("bar.", "barrier.")))
    return adds / barriers if adds and barriers else None
