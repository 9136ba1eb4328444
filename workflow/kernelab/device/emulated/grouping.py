"""Grouping: independent instructions of one kind in a segment become one NumPy call.

Each instruction is put into the earliest group of its kind that comes after everything it depends on: registers read
and written, and the order of memory operations. Unrolled loops thus turn into a few wide steps.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from .decoded import NONE, READ, SYNC, WRITE, Decoded, Rows

_LARGEST = 256
_CONFLICTS = {
    "global": ("global", "generic", "cp"),
    "shared": ("shared", "generic", "cp"),
    "local": ("local", "generic"),
    "generic": ("global", "shared", "local", "generic", "cp"),
    "cp": ("global", "shared", "generic", "cp"),
}


def group(body: Sequence[Decoded]) -> list[list[Decoded]]:
    """Groups in an order that respects every dependence of the given program order."""
    groups: list[list[Decoded]] = []
    places: dict[tuple, list[int]] = {}
    wrote: dict[int, int] = {}
    read: dict[int, int] = {}
    loads = dict.fromkeys(_CONFLICTS, -1)
    stores = dict.fromkeys(_CONFLICTS, -1)
    synced = last_memory = -1
    for instruction in body:
        earliest = 0
        inputs = [s for s in instruction.sources if isinstance(s, int)]
        if instruction.guard is not None:
            inputs.append(instruction.guard[0])
        for register in inputs:
            earliest = max(earliest, wrote.get(register, -1) + 1)
        for register in instruction.dests:
            earliest = max(earliest, wrote.get(register, -1) + 1, read.get(register, -1) + 1)
        order = instruction.order
        if order != NONE:
            earliest = max(earliest, synced + 1)
            if order == SYNC:
                earliest = max(earliest, last_memory + 1)
            else:
                for space in _CONFLICTS[instruction.space]:
                    after = stores[space] + 1 if order == READ else max(loads[space] + 1, stores[space])
                    earliest = max(earliest, after)
        key = (instruction.key, instruction.guard)
        places_of_kind = places.setdefault(key, [])
        at = bisect_left(places_of_kind, earliest)
        while at < len(places_of_kind) and len(groups[places_of_kind[at]]) >= _LARGEST:
            at += 1
        if at < len(places_of_kind):
            place = places_of_kind[at]
            groups[place].append(instruction)
        else:
            place = len(groups)
            places_of_kind.append(place)
            groups.append([instruction])
        for register in inputs:
            read[register] = max(read.get(register, -1), place)
        for register in instruction.dests:
            wrote[register] = place
        if order != NONE:
            last_memory = max(last_memory, place)
            if order == SYNC:
                synced = place
            elif order == READ:
                loads[instruction.space] = max(loads[instruction.space], place)
            elif order == WRITE:
                stores[instruction.space] = max(stores[instruction.space], place)
    return groups


class Allocator:
    """Gives virtual registers rows: one for good to those that outlive a segment, reused ones to the others."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.used = [bytearray(64) for _ in range(4)]

    def _take(self, registers: Sequence[int]) -> None:
        """Consecutive rows for registers of one file, when they can be had."""
        if not registers:
            return
        used = self.used[self.rows.files[registers[0]]]
        start = used.find(bytes(len(registers)))
        if start < 0:
            start = len(used.rstrip(b"\0"))
            used.extend(bytes(max(len(used), len(registers))))
        for i, register in enumerate(registers):
            self.rows.row[register] = start + i
            used[start + i] = 1

    def permanent(self, registers: Sequence[int]) -> None:
        """Rows that are never given to another register."""
        missing = [r for r in dict.fromkeys(registers) if self.rows.row[r] < 0]
        for file in range(4):
            self._take([r for r in missing if self.rows.files[r] == file])

    def segment(self, groups: Sequence[list[Decoded]], end: Decoded | None, lasting: set[int]) -> None:
        """Rows for the registers that live inside one segment only."""
        last: dict[int, int] = {}
        for place, members in enumerate(groups):
            for member in members:
                for register in registers_of(member):
                    last[register] = place
        if end is not None:
            for register in registers_of(end):
                last[register] = len(groups)
        for place, members in enumerate(groups):
            arrange(members, self.rows)
            for z in range(len(members[0].dests)):
                wanted = [m.dests[z] for m in members]
                self._take([r for r in dict.fromkeys(wanted) if self.rows.row[r] < 0])
            for member in members:
                for register in registers_of(member):
                    if last[register] == place and register not in lasting:
                        self.used[self.rows.files[register]][self.rows.row[register]] = 0
        if end is not None:
            self._take_each(end.dests)
            for register in registers_of(end):
                if register not in lasting:
                    self.used[self.rows.files[register]][self.rows.row[register]] = 0

    def _take_each(self, registers: Sequence[int]) -> None:
        for register in registers:
            if self.rows.row[register] < 0:
                self._take([register])


def registers_of(decoded: Decoded) -> list[int]:
    """Every register that an instruction reads or writes."""
    found = [s for s in decoded.sources if isinstance(s, int)]
    found.extend(decoded.dests)
    if decoded.guard is not None:
        found.append(decoded.guard[0])
    return found


def arrange(members: list[Decoded], rows: Rows) -> None:
    """Order the members of a register-only group so that its operands lie in consecutive rows."""
    head = members[0]
    if head.order != NONE or len(members) == 1:
        return
    if all(rows.row[m.dests[0]] >= 0 for m in members if m.dests):
        members.sort(key=lambda m: rows.row[m.dests[0]] if m.dests else 0)
    elif head.sources and isinstance(head.sources[-1], int):
        members.sort(key=lambda m: rows.row[m.sources[-1]] if isinstance(m.sources[-1], int) else 0)


def lasting_registers(segments: Sequence[tuple[Sequence[Decoded], Decoded | None]], count: int) -> list[int]:
    """Registers seen in several segments, or read before they are wholly written; in order of appearance."""
    home = [-1] * count
    lasting: dict[int, None] = {}
    for number, (body, end) in enumerate(segments):
        for decoded in [*body, *([end] if end is not None else [])]:
            partial = decoded.guard is not None
            reads = [s for s in decoded.sources if isinstance(s, int)]
            if decoded.guard is not None:
                reads.append(decoded.guard[0])
            for register in reads:
                if home[register] != number:
                    lasting[register] = None
                    home[register] = number
            for register in decoded.dests:
                if home[register] != number:
                    if home[register] != -1 or partial:
                        lasting[register] = None
                    home[register] = number
    return list(lasting)
