"""The fields of an instruction of sm_90 that what_if.py reads and changes.

An instruction has 128 bits; the uppermost 23 are its control word: cycles to wait before the warp's next instruction, a bit
that keeps the scheduler at this warp, the two barriers that the instruction sets (7: none), those that it waits for, and
reuse flags, one for each place of a source register.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from banks import FFMA, REUSE, RZ
from loop import LDS, LDSM, LOADS, STALL


class Field(NamedTuple):
    """First bit, and how many."""

    at: int
    bits: int


OPCODE, DESTINATION, BASE = Field(0, 12), Field(16, 8), Field(24, 8)
SOURCES = (BASE, Field(32, 8), Field(64, 8))  # of an FFMA: two factors and the addend
MATRICES, WIDTH = Field(72, 4), Field(73, 3)  # of an LDSM, not transposed; of an LDS
CONTROL, CYCLES, STAY = Field(64 + STALL, 23), Field(64 + STALL, 4), Field(109, 1)
SETS, FREES = Field(110, 3), Field(113, 3)  # barriers: for what it writes, for what it has read
NO_BARRIER = 7
NOP = 0x7918  # without a predicate
WIDTHS = {32: 4, 64: 5}  # bits a lane
COUNTS = {1: 0, 2: 1, 4: 2}  # matrices


@dataclass
class Instruction:
    """Both halves in one number, the lower half in the lower bits."""

    word: int

    def get(self, field: Field) -> int:
        return self.word >> field.at & (1 << field.bits) - 1

    def put(self, field: Field, value: int) -> None:
        self.word ^= (self.get(field) ^ value) << field.at

    @property
    def halves(self) -> tuple[int, int]:
        return self.word & (1 << 64) - 1, self.word >> 64

    @property
    def multiplies(self) -> bool:
        return self.get(OPCODE) == FFMA

    @property
    def loads(self) -> bool:
        """From shared memory."""
        return self.get(OPCODE) in LOADS

    def sources(self) -> list[int]:
        """An FFMA's registers, by place."""
        return [self.get(field) for field in SOURCES]

    def reused(self, place: int) -> bool:
        return bool(self.get(reuse(place)))

    def to_nop(self) -> None:
        """Waits as long and for the same barriers, and sets none."""
        control = self.get(CONTROL)
        self.word = NOP
        self.put(CONTROL, control)
        self.put(SETS, NO_BARRIER)
        self.put(FREES, NO_BARRIER)

    def to_width(self, bits: int) -> None:
        """An LDS loads so many bits a lane."""
        if self.get(OPCODE) == LDS:
            self.put(WIDTH, WIDTHS[bits])

    def to_ldsm(self, matrices: int) -> None:
        """An LDS becomes an LDSM of the same address and first register."""
        if self.get(OPCODE) == LDS:
            self.put(OPCODE, LDSM)
            self.put(MATRICES, COUNTS[matrices])

    def to_no_register(self) -> None:
        """What is loaded goes nowhere."""
        self.put(DESTINATION, RZ)

    def to_one_address(self) -> None:
        """The address is the constant part alone, the same in all lanes."""
        self.put(BASE, RZ)


def reuse(place: int) -> Field:
    """The reuse flag of a source's place."""
    return Field(64 + REUSE + place, 1)
