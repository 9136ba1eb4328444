"""Translate the steady path into what the simulated scheduler needs: flat records, one an instruction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kernelab.predict.code import NONE, Read, Step

# In this order: arithmetic first (kinds up to SPECIAL go through the register ports), then memory (up to COPY).
FMA, IMAD, ALU, SPECIAL, SHARED, GLOBAL, COPY, COMMIT, BARRIER, OTHER = range(10)

_FMA = {"FFMA", "FADD", "FMUL", "FFMA2"}
_IMAD = {"IMAD", "IDP"}
_SPECIAL = {"MUFU", "S2R", "I2F", "F2I", "F2F", "POPC", "FLO", "SHFL", "S2UR"}
_SHARED = {"LDS", "STS", "LDSM", "STSM", "ATOMS"}
_SHARED_LOADS = {"LDS", "LDSM"}
_GLOBAL = {"LDG", "STG", "LD", "ST", "RED", "REDG", "ATOM", "ATOMG", "LDL", "STL"}
_OTHER = {
    "BRA",
    "NOP",
    "BSSY",
    "BSYNC",
    "WARPSYNC",
    "DEPBAR",
    "SYNCS",
    "YIELD",
    "EXIT",
    "CS2R",
    "LDC",
    "ULDC",
    "MEMBAR",
}


@dataclass(frozen=True, slots=True)
class Micro:
    """One instruction as the simulation runs it.

    stall, sets, frees, waits   as in Step
    cost            cycles of the LSU pipe, of a memory instruction
    loads           opcode and bits a thread of a load from shared memory: ("LDS", 128)
    sectors         that it moves from or to the L2 cache
    kept, cold      registers read from the even and the odd bank, when this warp issued before and when another did
    keeps           whether an operand is kept for the next instruction
    pending         groups of copies that a DEPBAR leaves outstanding; -1 for any other instruction
    """

    kind: int
    stall: int = 1
    sets: int = NONE
    frees: int = NONE
    waits: int = 0
    cost: float = 0.0
    loads: tuple[str, int] | None = None
    sectors: float = 0.0
    kept: tuple[int, int] = (0, 0)
    cold: tuple[int, int] = (0, 0)
    keeps: bool = False
    pending: int = -1


def translate(steps: Iterable[Step], costs: Mapping[tuple[str, int], tuple[float, float]]) -> list[Micro]:
    """The micro-instructions of a path.

    Args:
        steps: in the order in which a warp runs them.
        costs: cycles of the LSU pipe and sectors of a request, by opcode and bits a thread: ("LDS", 128). What is not there
            costs what it does at best: a wavefront for 128 bytes, and whole sectors.
    """
    found = []
    cache: dict[tuple[int, int], int] = {}
    for step in steps:
        kept = _ports(step.reads, cache)
        _keep(step.reads, cache)
        base = step.instruction.base
        kind = _kind(base) if ".ARV" not in step.instruction.opcode else OTHER  # BAR.ARV arrives, and goes on
        cost = sectors = 0.0
        width = bits(step.instruction.opcode)
        if SPECIAL < kind <= COPY:
            best = width / 32
            cost, sectors = costs.get((base, width), (best, 0.0 if kind == SHARED else 4 * best))
            if ".BYPASS" in step.instruction.opcode:
                cost = (
                    1.0  # a copy past the L1 cache leaves the LSU pipe's data stage alone (docs/predict.md)
                )
        found.append(
            Micro(
                kind,
                stall=max(1, step.stall),
                sets=step.sets,
                frees=step.frees,
                waits=step.waits,
                cost=cost,
                sectors=sectors,
                loads=(base, width) if base in _SHARED_LOADS else None,
                kept=kept,
                cold=_ports(step.reads, {}),
                keeps=any(read.kept for read in step.reads),
                pending=_pending(step),
            )
        )
    return found


def bits(opcode: str) -> int:
    """Bits a thread that a memory instruction moves."""
    modifiers = opcode.split(".")[1:]
    if opcode.startswith(("LDSM.", "STSM.")):  # of so many 8 x 8 matrices, a register a thread each
        return 32 * int(modifiers[-1]) if modifiers[-1] in ("2", "4") else 32
    for modifier in modifiers:
        if modifier in ("64", "128", "256"):
            return int(modifier)
    return 32


def _kind(base: str) -> int:
    if base in _FMA:
        return FMA
    if base in _IMAD:
        return IMAD
    if base in _SHARED:
        return SHARED
    if base in _GLOBAL:
        return GLOBAL
    if base == "LDGSTS":
        return COPY
    if base == "LDGDEPBAR":
        return COMMIT
    if base == "BAR":
        return BARRIER
    if base in _SPECIAL:
        return SPECIAL
    if base in _OTHER or base.startswith("U"):
        return OTHER
    return ALU


def _ports(reads: tuple[Read, ...], cache: Mapping[tuple[int, int], int]) -> tuple[int, int]:
    banks = [0, 0]
    seen = set()
    for read in reads:
        if cache.get((read.slot, read.register & 1)) != read.register and read.register not in seen:
            banks[read.register & 1] += 1
        seen.add(read.register)
    return banks[0], banks[1]


def _keep(reads: tuple[Read, ...], cache: dict[tuple[int, int], int]) -> None:
    for read in reads:
        place = (read.slot, read.register & 1)
        if read.kept:
            cache[place] = read.register
        else:
            cache.pop(place, None)


def _pending(step: Step) -> int:
    if step.instruction.base != "DEPBAR":
        return -1
    number = step.instruction.operands.rpartition(",")[2].strip()
    return int(number, 16) if number.startswith("0x") else 0
