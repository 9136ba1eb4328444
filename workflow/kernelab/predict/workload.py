"""Everything that the model takes of one launch: what a warp runs, and how many of them there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelab.build.cubin import Cubin
from kernelab.build.sass import Instruction
from kernelab.predict.code import Step, decode
from kernelab.predict.emulation import Traffic
from kernelab.predict.microcode import Micro, bits, translate
from kernelab.predict.path import SteadyPath, find_steady_path, straight_path

_OPERATIONS = {"FFMA": 2, "FFMA2": 4, "FADD": 1, "FMUL": 1}
L1_SECTORS = 2.0  # that the L1 cache gives in a cycle
_READS = ("LDG", "LDGSTS", "LD")


@dataclass(frozen=True)
class Workload:
    """One launch.

    code          one turn of the steady path
    operations    floating-point operations of one thread in a turn
    loops         False where the kernel has no loop: a turn is all that a warp does
    code_bytes    of a turn, in the instruction cache
    sectors       of 32 bytes that a warp reads and writes in global memory in a turn
    warps         of a block
    blocks        of the grid
    resident      blocks that an SM holds at once
    """

    code: tuple[Micro, ...]
    operations: int
    loops: bool
    code_bytes: int
    sectors: float
    warps: int
    blocks: int
    resident: int


def make_workload(
    cubin: Cubin,
    entry: str,
    listing: list[Instruction],
    arch: str,
    traffic: Mapping[tuple[str, int], Traffic],
    per_barrier: float | None,
    *,
    warps: int,
    blocks: int,
    resident: int,
) -> Workload:
    """The workload of an entry.

    Args:
        cubin, entry, listing: the machine code, and its disassembly.
        arch: it is for.
        traffic, per_barrier: as counted on the emulated device; without them accesses count as free of conflicts.
        warps, blocks, resident: see Workload.
    """
    steps = decode(cubin, entry, listing)
    path = find_steady_path(listing, arch)
    loops = path is not None
    path = path or straight_path(listing)
    turn = [steps[address] for address in path.addresses(_trips(path, steps, per_barrier))]
    # A loop that computes straight from global memory shares lines between neighbours and turns: its L1 cache answers.
    answered = loops and not any(step.instruction.base in ("LDS", "LDSM") for step in turn)
    costs = {key: (t.pipe_cycles, t.sectors) for key, t in traffic.items()}
    if answered:
        costs |= {
            key: (max(t.pipe_cycles, t.sectors / L1_SECTORS), 0.0)
            for key, t in traffic.items()
            if key[0] == "LDG"
        }
    return Workload(
        code=tuple(translate(turn, costs)),
        operations=sum(_OPERATIONS.get(step.instruction.base, 0) for step in turn),
        loops=loops,
        code_bytes=path.code_bytes,
        sectors=0.0 if answered else sum(_sectors(step, traffic) for step in turn),
        warps=warps,
        blocks=blocks,
        resident=resident,
    )


def _trips(path: SteadyPath, steps: Mapping[int, Step], per_barrier: float | None) -> int:
    """Turns of the inner loop in one turn of the path, from how many multiply-adds come to a barrier."""
    if not path.inner or per_barrier is None:
        return 1
    inner = sum(steps[address].instruction.base == "FFMA" for address in path.inner)
    barriers = sum(steps[address].instruction.base == "BAR" for address in path.addresses(1))
    return max(1, round(per_barrier * barriers / inner)) if inner and barriers else 1


def _sectors(step: Step, traffic: Mapping[tuple[str, int], Traffic]) -> float:
    base, width = step.instruction.base, bits(step.instruction.opcode)
    if base not in (*_READS, "STG"):
        return 0.0
    found = traffic.get((base, width))
    return found.sectors if found else width / 8
