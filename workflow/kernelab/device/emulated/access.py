"""Access sites: where a group of like memory instructions turns registers into storage, bounds and counts.

A site remembers the address patterns that it has seen. A pattern is the lanes' base addresses less a multiple of
32 bytes for each instruction, so a loop that walks through memory meets the same pattern again and pays
neither for bounds, nor for counters, nor for address arithmetic a second time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import counters
from .memory import Space
from .operands import Immediate, LaunchValue, Source, constant_reader, launch_reader, register_reader
from .parser import Instruction

_PATTERNS = 24  # remembered for each site


@dataclass(slots=True)
class Pattern:
    """One address pattern of a site. `index` is in elements, `low` and `high` are byte offsets in the region."""

    uid: int
    lanes: NDArray[np.int64] | None
    delta: NDArray[np.int64]
    shift: NDArray[np.int64]
    index: NDArray[np.int64]
    region: NDArray[np.int64]
    low: NDArray[np.int64] | None
    high: NDArray[np.int64] | None
    valid: NDArray[np.bool_] | None
    counts: NDArray[np.int64] | None


@dataclass(slots=True)
class Touched:
    """The storage that one execution of a site touches: element indices and what is known about them."""

    pattern: Pattern
    index: NDArray[np.int64]
    moved: NDArray[np.int64] | None  # elements by which each row is off the pattern
    valid: NDArray[np.bool_] | None

    @property
    def key(self) -> int | None:
        """Identifies the storage touched, when it is the same each time."""
        return self.pattern.uid if self.moved is None else None


class Site:
    """A group of memory instructions of one kind, executed together.

    `width` is the bytes of one access, `element` those of one vector component.
    """

    def __init__(
        self,
        instructions: Sequence[Instruction],
        space: str,
        kind: str,
        element: int,
        vector: int,
        window: int = 0,
        strong: bool = False,
    ) -> None:
        self.instructions = list(instructions)
        self.space = space
        self.kind = kind
        self.element = element
        self.vector = vector
        self.width = element * vector
        self.window = window
        self.strong = strong
        self.ordering = ""
        self.asynchronous = False
        self.alignment = self.width
        self.counted = space in ("global", "shared")
        self.parted = False  # neighbouring parts are never served together (counters.wavefronts)

    def bind(self, bases: Sequence[Source], offsets: Sequence[int], rows: Any, view: str) -> None:
        """Set the base operand and byte offset of each instruction. `rows` maps registers to file rows."""
        distinct = list(dict.fromkeys(bases))
        self.member = np.array([distinct.index(base) for base in bases], np.intp)
        self.offsets = np.array(offsets, np.int64)[:, None]
        first = distinct[0]
        if isinstance(first, int):
            self.read_base = register_reader([rows(b) for b in distinct], view)
        elif isinstance(first, Immediate):
            self.read_base = constant_reader([b for b in distinct if isinstance(b, Immediate)], "u8")
        else:
            self.read_base = launch_reader([b for b in distinct if isinstance(b, LaunchValue)], "u8")

    def touch(self, m: Any, lanes: NDArray[np.int64] | None) -> Touched:
        """Where the lanes access, with faults reported and counters advanced."""
        bases = self.read_base(m, lanes)
        bases = bases.view(np.int64) if bases.dtype.itemsize == 8 else bases.astype(np.int64)
        count = m.lanes if lanes is None else len(lanes)
        if bases.shape[1] != count:
            bases = np.broadcast_to(bases, (bases.shape[0], count))
        if self.window:
            bases = bases - self.window
        if self.space == "global":
            shift = bases[:, 0] & -32
            delta = bases - shift[:, None]
        else:
            shift = np.zeros(len(bases), np.int64)
            delta = bases
        patterns = m.run.patterns(self, m)
        for place, pattern in enumerate(patterns):
            if _same(pattern, delta, lanes):
                touched = self._reuse(m, pattern, shift)
                if touched is not None:
                    if place:
                        del patterns[place]
                        patterns.insert(0, pattern)
                    return touched
        pattern = self._learn(m, bases, delta, shift, lanes)
        patterns.insert(0, pattern)
        del patterns[_PATTERNS:]
        m.run.count(self, pattern)
        return Touched(pattern, pattern.index, None, pattern.valid)

    def _reuse(self, m: Any, pattern: Pattern, shift: NDArray[np.int64]) -> Touched | None:
        moved = shift - pattern.shift
        if not moved.any():
            m.run.count(self, pattern)
            if pattern.valid is not None:
                self._report(m, self._addresses(pattern), pattern)
            return Touched(pattern, pattern.index, None, pattern.valid)
        if pattern.low is None or pattern.high is None:
            return None
        start, end, _ = m.space(self.space).tables
        by_row = moved[self.member]
        if (pattern.low + by_row < start[pattern.region]).any() or (
            pattern.high + by_row > end[pattern.region]
        ).any():
            return None
        m.run.count(self, pattern)
        by_row //= self.element
        return Touched(pattern, pattern.index + by_row[:, None], by_row, None)

    def _learn(
        self, m: Any, bases: NDArray, delta: NDArray, shift: NDArray, lanes: NDArray | None
    ) -> Pattern:
        space: Space = m.space(self.space)
        addresses = bases[self.member] + self.offsets
        storage, region, valid = space.locate(addresses, self.width)
        aligned = addresses & (self.alignment - 1) == 0
        good = valid & aligned
        faulty = not good.all()
        if space.stride:
            offset = m.storage_offset(self.space)
            storage = storage + (offset if lanes is None else offset[lanes])
        low = high = None
        one_region = (region == region[:, :1]).all()
        if one_region and not faulty:
            _start, _, _offset_of = space.tables
            within = addresses - space.base - (region << space.shift)
            low, high = within.min(1), within.max(1) + self.width
        index = storage // self.element
        if faulty:
            index = np.where(good, index, 0)
        counts = self._count(m, addresses, lanes) if m.run.counting and self.counted else None
        pattern = Pattern(
            m.run.next_uid(),
            lanes,
            delta.copy(),
            shift,
            index,
            region[:, 0].copy(),
            low,
            high,
            good if faulty else None,
            counts,
        )
        if faulty:
            self._report(m, addresses, pattern)
        return pattern

    def _addresses(self, pattern: Pattern) -> NDArray[np.int64]:
        return (pattern.delta + pattern.shift[:, None])[self.member] + self.offsets

    def _report(self, m: Any, addresses: NDArray, pattern: Pattern) -> None:
        """One hazard for each instruction and kind of fault among the lanes that are not valid."""
        assert pattern.valid is not None
        space: Space = m.space(self.space)
        _, _, inside = space.locate(addresses, self.width)
        aligned = addresses & (self.alignment - 1) == 0
        for kind, bad in ((f"out_of_bounds_{self.space}", ~inside), ("misaligned", ~aligned)):
            for row in np.flatnonzero(bad.any(1)):
                columns = np.flatnonzero(bad[row])
                address = int(addresses[row, columns[0]])
                name, offset = space.describe(address)
                verb = "writes" if self.kind == "store" else "reads" if self.kind == "load" else "updates"
                if kind == "misaligned":
                    text = (
                        f"{verb} {self.width} bytes at an address that is {address % self.alignment} bytes off "
                        f"a {self.alignment}-byte boundary ({name} + {offset})"
                    )
                else:
                    text = (
                        f"{verb} {self.width} bytes at {name or 'no array'} + {offset}, "
                        f"{_beyond(space, name, offset)}"
                    )
                lane = int(columns[0]) if pattern.lanes is None else int(pattern.lanes[columns[0]])
                m.run.report(kind, self.instructions[row], m, (lane,), text, address, name, len(columns))

    def address_of(self, m: Any, touched: Touched, row: int, column: int, lanes: NDArray | None) -> int:
        """The address that one lane of one instruction used."""
        storage = int(touched.index[row, column]) * self.element
        space: Space = m.space(self.space)
        if space.stride:
            offset = m.storage_offset(self.space)
            storage -= int(offset[column if lanes is None else lanes[column]])
        number = int(touched.pattern.region[row])
        return (
            storage
            - space.regions[number].storage
            + space.regions[number].start
            + space.base
            + (number << space.shift)
        )

    def without_read_only(self, m: Any, touched: Touched, lanes: NDArray | None) -> Touched:
        """Report and drop the stores of instructions that aim at a read-only array."""
        space: Space = m.space(self.space)
        if space.all_writable:
            return touched
        rows = np.array(
            [r < len(space.regions) and not space.regions[r].writable for r in touched.pattern.region]
        )
        if not rows.any():
            return touched
        for row in np.flatnonzero(rows):
            address = self.address_of(m, touched, int(row), 0, lanes)
            name, offset = space.describe(address)
            lane = 0 if lanes is None else int(lanes[0])
            m.run.report(
                "write_to_read_only",
                self.instructions[row],
                m,
                (lane,),
                f"writes {self.width} bytes at {name} + {offset}, an array that the kernel may only read",
                address,
                name,
                touched.index.shape[1],
            )
        valid = np.ones(touched.index.shape, np.bool_) if touched.valid is None else touched.valid.copy()
        valid[rows] = False
        return Touched(touched.pattern, touched.index, touched.moved, valid)

    def _count(self, m: Any, addresses: NDArray, lanes: NDArray | None) -> NDArray[np.int64]:
        n = len(addresses)
        warped, active = counters.by_warp(addresses, lanes)
        warps = warped.shape[1]
        counts = np.zeros((n, len(counters.COLUMNS)), np.int64)
        counts[:, counters.EXECUTED] = counts[:, counters.REQUESTS] = warps
        counts[:, counters.LANES] = addresses.shape[1]
        counts[:, counters.BYTES] = addresses.shape[1] * self.width
        if self.space == "global":
            cost = counters.sectors(warped, self.width)
            counts[:, counters.SECTORS] = cost.sum(1)
        else:
            cost, ideal = counters.wavefronts(warped, active, self.width, self.parted)
            counts[:, counters.WAVEFRONTS] = cost.sum(1)
            counts[:, counters.IDEAL] = ideal.sum(1)
        m.run.keep_worst(self, cost, warped, active)
        return counts


def _same(pattern: Pattern, delta: NDArray, lanes: NDArray | None) -> bool:
    if pattern.delta.shape != delta.shape or pattern.delta[0, 0] != delta[0, 0]:
        return False
    if pattern.lanes is not lanes and (
        pattern.lanes is None or lanes is None or not np.array_equal(pattern.lanes, lanes)
    ):
        return False
    return bool((pattern.delta == delta).all())


def _beyond(space: Space, name: str, offset: int) -> str:
    size = next((r.size for r in space.regions if r.name == name), 0)
    if not name:
        return "which no array holds"
    return f"which has {size} bytes"
