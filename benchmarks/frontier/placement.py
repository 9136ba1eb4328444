"""Where the hot loop of rungs 23 and 24 and the loop of their spare warps lie in the instruction cache of an H200.

Usage: python3 benchmarks/frontier/placement.py CUBIN ...
Code that lies a multiple of 8 KB apart takes one place of that cache, which holds four lines of 128 bytes: the time of
rung 24 over CODE_GAP repeats every 512 instructions (docs/frontier.md). Where the hot loop fills a place, the other loop
has no room.
"""

from __future__ import annotations

import struct
import sys
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from banks import text
from loop import hottest, loops_of

TRANSPOSING = 0x83B  # LDSM, which only the spare warps execute
LINE, WAY, WAYS = 128, 8192, 4


@dataclass(frozen=True)
class Placement:
    """First and last byte of both loops, counted from the entry."""

    hot: tuple[int, int]
    spare: tuple[int, int]

    @property
    def crowded(self) -> int:
        """Places of the cache that the hot loop fills, and that the spare warps' loop wants too."""
        hot, spare = _lines(self.hot), _lines(self.spare)
        return sum(1 for place, lines in spare.items() if hot.get(place, 0) + lines > WAYS)


def placement(cubin: bytes, entry: str = "sgemm") -> Placement:
    """The loop with most FFMAs and the smallest with all transposing loads."""
    code = list(struct.iter_unpack("<QQ", text(cubin, entry)))
    moves = [0, *accumulate(low & 0xFFF == TRANSPOSING for low, _ in code)]
    around = [loop for loop in loops_of(code) if moves[loop[1]] - moves[loop[0]] == moves[-1]]
    hot, spare = hottest(code), min(around, key=lambda loop: loop[1] - loop[0])
    return Placement((16 * hot[0], 16 * hot[1] + 15), (16 * spare[0], 16 * spare[1] + 15))


def _lines(span: tuple[int, int]) -> dict[int, int]:
    """How many lines of a piece of code each place of the cache gets."""
    counts: dict[int, int] = {}
    for line in range(span[0] // LINE, span[1] // LINE + 1):
        place = line % (WAY // LINE)
        counts[place] = counts.get(place, 0) + 1
    return counts


if __name__ == "__main__":
    for path in sys.argv[1:]:
        found = placement(Path(path).read_bytes())
        print(f"{path}: hot loop {found.hot}, spare warps' {found.spare}, {found.crowded} places too few")
