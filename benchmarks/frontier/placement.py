"""Where the hot loop of rungs 23 to 25 and the loop of their spare warps lie in the instruction cache of an H200.

Usage: python3 benchmarks/frontier/placement.py CUBIN ...
Code that lies a multiple of 8 KB apart takes one place of that cache, which holds four lines of 128 bytes: the time of
rung 24 over CODE_GAP repeats every 512 instructions (docs/frontier.md). Where the hot loop fills a place, the other loop
has no room.
"""

from __future__ import annotations

import struct
import sys
from collections import Counter
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from banks import text
from loop import hottest, loops_of

COPY = 0x5B4  # UTMALDG, a copy by TMA, which only the spare warps ask for
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
        return sum(1 for place, lines in spare.items() if hot[place] + lines > WAYS)


def placement(cubin: bytes, entry: str = "sgemm") -> Placement:
    """The hot loop, and the smallest loop with all copies."""
    code = list(struct.iter_unpack("<QQ", text(cubin, entry)))
    copies = [0, *accumulate(low & 0xFFF == COPY for low, _ in code)]
    around = [loop for loop in loops_of(code) if copies[loop[1]] - copies[loop[0]] == copies[-1]]
    hot, spare = hottest(code), min(around, key=lambda loop: loop[1] - loop[0])
    return Placement((16 * hot[0], 16 * hot[1] + 15), (16 * spare[0], 16 * spare[1] + 15))


def _lines(span: tuple[int, int]) -> Counter[int]:
    """How many lines of a piece of code each place of the cache gets."""
    return Counter(line % (WAY // LINE) for line in range(span[0] // LINE, span[1] // LINE + 1))


if __name__ == "__main__":
    for path in sys.argv[1:]:
        found = placement(Path(path).read_bytes())
        print(f"{path}: hot loop {found.hot}, spare warps' {found.spare}, {found.crowded} places too few")
