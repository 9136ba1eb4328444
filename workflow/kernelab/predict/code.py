"""Machine instructions with what the hardware's schedule needs: control codes, register banks and reuse flags.

A 128-bit instruction of sm_70 and later carries its schedule in bits 105 to 125 (Jia et al., "Dissecting the NVIDIA
Volta GPU architecture via microbenchmarking", 2018): stall cycles, yield, the scoreboard that its result or its operands
release, the scoreboards that it waits for, and one reuse flag an operand slot.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from kernelab.build.cubin import Cubin
from kernelab.build.sass import Instruction

NONE = 7  # a scoreboard number that means none
_REGISTER = re.compile(r"[-|~!]*R(\d+)(?:\.64)?(\.reuse)?")
# Instructions of fixed latency read up to three registers through the operand slots.
_SLOTTED = re.compile(
    r"FFMA|FADD|FMUL|FMNMX|FSEL|IMAD|IADD3|LOP3|SHF|LEA|ISETP|FSETP|MOV|SEL|PRMT|IMNMX|VIADD|IABS"
)


@dataclass(frozen=True)
class Read:
    """A register that comes through operand slot `slot` (0 to 2), and whether it stays there for the next instruction."""

    slot: int
    register: int
    kept: bool


@dataclass(frozen=True)
class Step:
    """One instruction and its control code.

    `stall`: cycles until the warp's next instruction may issue. `sets` and `frees`: the scoreboards that are released
    when the result is written and when the operands are read; NONE for none. `waits`: a bit for each scoreboard that must
    be free. `reads`: registers read through the operand slots.
    """

    instruction: Instruction
    stall: int
    sets: int
    frees: int
    waits: int
    reads: tuple[Read, ...]


def decode(cubin: Cubin, entry: str, listing: Sequence[Instruction]) -> dict[int, Step]:
    """The steps of an entry by address.

    Raises:
        ValueError: the listing is not of this cubin.
    """
    code = cubin.data(f".text.{entry}")
    steps = {}
    for instruction in listing:
        if instruction.address + 16 > len(code):
            raise ValueError(
                f"{entry}: the listing has an instruction at {instruction.address:#x}, the cubin none"
            )
        (high,) = struct.unpack_from("<Q", code, instruction.address + 8)
        control = high >> 41
        steps[instruction.address] = Step(
            instruction,
            stall=control & 15,
            sets=control >> 5 & 7,
            frees=control >> 8 & 7,
            waits=control >> 11 & 63,
            reads=_reads(instruction),
        )
    return steps


def _reads(instruction: Instruction) -> tuple[Read, ...]:
    if not _SLOTTED.match(instruction.base):
        return ()
    reads = []
    operands = [operand.strip() for operand in instruction.operands.split(",")]
    if instruction.base in ("ISETP", "FSETP"):
        operands = operands[1:]  # two predicates come first
    for slot, operand in enumerate(operands[1:4]):
        found = _REGISTER.fullmatch(operand.strip("|"))
        if found:
            reads.append(Read(slot, int(found[1]), bool(found[2])))
    return tuple(reads)
