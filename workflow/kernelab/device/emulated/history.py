"""Who touched each location since when: the last plain write, the plain reads since, and the strong accesses."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

COLUMNS = 4  # thread, clock, access number, instruction row


class Chains:
    """A list of accesses for each location, newest first, kept in one growing log."""

    def __init__(self, units: int) -> None:
        self.head = np.full(units, -1, np.int32)
        self.log = np.zeros((1024, COLUMNS), np.int32)
        self.previous = np.zeros(1024, np.int32)
        self.length = 0

    def append(self, unit: NDArray[np.int64], entries: NDArray[np.int32]) -> None:
        """Add accesses; a thread that was the last one at a location only moves its clock on."""
        last = self.head[unit]
        again = (last >= 0) & (self.log[last, 0] == entries[:, 0])
        if again.any():
            self.log[last[again]] = entries[again]
            unit, entries = unit[~again], entries[~again]
        count = len(unit)
        if count == 0:
            return
        while self.length + count > len(self.log):
            self.log = np.concatenate([self.log, np.zeros_like(self.log)])
            self.previous = np.concatenate([self.previous, np.zeros_like(self.previous)])
        order = np.argsort(unit, kind="stable")
        unit, entries = unit[order], entries[order]
        number = np.arange(self.length, self.length + count, dtype=np.int32)
        self.log[number] = entries
        same = np.concatenate([[False], unit[1:] == unit[:-1]])
        self.previous[number] = np.where(same, number - 1, self.head[unit])
        self.head[unit] = number  # the last of each location's entries stays
        self.length += count

    def forget(self, unit: NDArray[np.int64]) -> None:
        self.head[unit] = -1

    def clear(self) -> None:
        self.head[:] = -1
        self.length = 0


class History:
    """All that the detector knows about the locations of one space."""

    def __init__(self, units: int) -> None:
        self.write = np.zeros((units, COLUMNS), np.int32)
        self.write[:, 0] = -1
        self.reads = Chains(units)
        self.strong_writes = Chains(units)
        self.strong_reads = Chains(units)

    def clear(self, chosen: slice | None = None) -> None:
        """Forget the locations of a part of the space, or all of them."""
        if chosen is None:
            self.write[:, 0] = -1
            for chains in (self.reads, self.strong_writes, self.strong_reads):
                chains.clear()
            return
        self.write[chosen, 0] = -1
        for chains in (self.reads, self.strong_writes, self.strong_reads):
            chains.head[chosen] = -1
