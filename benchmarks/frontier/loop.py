"""The hot loop of a cubin's sgemm, read from the machine code of sm_90: what search.py's variants differ in.

The upper half of an instruction has its control word: cycles to wait before the next instruction of the warp, reuse flags.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from banks import FFMA, text, two_reads

BRANCH, LDS, LDSM = 0x947, 0x984, 0x83B  # BRA and loads from shared memory
LOADS = {LDS, LDSM}
STALL = 41  # first of four bits, in the upper half
# Points of cuBLAS at 4096 cubed that rung 23 lost in run 3 for each; least squares over the 270 variants above 106%.
BASE, PER_CONFLICT, PER_STALL = 112.77, 0.0140, 0.0433


@dataclass(frozen=True)
class Loop:
    """The innermost loop with many FFMAs, from its first instruction to its last."""

    slots: int
    ffmas: int
    loads: int  # LDS and LDSM
    conflicts: int  # FFMAs that must read two registers of a bank
    stalls: int  # cycles that the code waits after loads, beyond one each

    @property
    def predicted(self) -> float:
        """Percent of cuBLAS at 4096 cubed by run 3's regression, for a loop like rung 23's with 12 k-steps."""
        return BASE - PER_CONFLICT * self.conflicts - PER_STALL * self.stalls


def hot_loop(cubin: bytes, entry: str = "sgemm") -> Loop:
    """Counts of an entry's hot loop."""
    code = list(struct.iter_unpack("<QQ", text(cubin, entry)))
    start, end = hottest(code)
    body = code[start : end + 1]
    return Loop(
        slots=len(body),
        ffmas=sum(low & 0xFFF == FFMA for low, _ in body),
        loads=sum(low & 0xFFF in LOADS for low, _ in body),
        conflicts=two_reads(body)[1],
        stalls=sum((high >> STALL & 15) - 1 for low, high in body if low & 0xFFF in LOADS),
    )


def hottest(code: Sequence[tuple[int, ...]]) -> tuple[int, int]:
    """First and last instruction of the innermost loop with many FFMAs."""
    before = [0, *accumulate(low & 0xFFF == FFMA for low, _ in code)]
    ffmas = {loop: before[loop[1]] - before[loop[0]] for loop in loops_of(code)}
    return min(
        (loop for loop in ffmas if 2 * ffmas[loop] > max(ffmas.values())), key=lambda loop: loop[1] - loop[0]
    )


def loops_of(code: Sequence[tuple[int, ...]]) -> list[tuple[int, int]]:
    """First and last instruction of every loop: where a branch leads back to, and the branch."""
    backwards = (
        (end + 1 + _offset(low, high) // 16, end)
        for end, (low, high) in enumerate(code)
        if low & 0xFFF == BRANCH
    )
    return [(start, end) for start, end in backwards if 0 <= start <= end]


def _offset(low: int, high: int) -> int:
    """Bytes from the next instruction to a branch's target."""
    words = (low >> 34 | (high & 0x3FFFF) << 30) << 8 | low >> 16 & 0xFF
    return 4 * (words - (1 << 56) if words >> 55 else words)


if __name__ == "__main__":
    for path in sys.argv[1:]:
        found = hot_loop(Path(path).read_bytes())
        print(f"{path}: {found} {found.predicted:.2f}%")
