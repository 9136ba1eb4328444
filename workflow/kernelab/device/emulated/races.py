"""Races in programs whose only order is the whole block's barrier.

Two accesses of one location by different threads, at least one a write, race when they lie in the same interval between
barriers, or, in global memory, when they come from different blocks. Intervals that touch the same
addresses as one already found clean are not looked at again: loops cost next to nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .access import Site, Touched


@dataclass(slots=True)
class Access:
    """One execution of a site, as the detector remembers it. `epochs` holds the barriers each block has passed."""

    site: Site
    touched: Touched
    lanes: NDArray[np.int64] | None
    machine: Any
    epochs: NDArray[np.int64] | None

    def granules(self, size: int) -> NDArray[np.int64]:
        """Storage units of `size` bytes that each lane touches: shape (instructions, lanes, units)."""
        if self.touched.moved is None or self.touched.index.shape[1] != self.touched.pattern.index.shape[1]:
            index = self.touched.index
        else:
            index = self.touched.pattern.index + self.touched.moved[:, None]
        first = index * self.site.element // size
        return first[:, :, None] + np.arange(max(1, self.site.width // size))

    def flatten(self, size: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Units, lanes and instruction numbers of every access, one-dimensional."""
        units = self.granules(size)
        lanes = np.arange(self.machine.lanes) if self.lanes is None else self.lanes
        lane = np.broadcast_to(lanes[None, :, None], units.shape)
        row = np.broadcast_to(np.arange(len(units))[:, None, None], units.shape)
        if self.touched.valid is None:
            return units.ravel(), lane.ravel(), row.ravel()
        keep = np.broadcast_to(self.touched.valid[:, :, None], units.shape)
        return units[keep], lane[keep], row[keep]


@dataclass(slots=True)
class _Events:
    """Accesses as columns: unit, thread, block, epoch, write flag, and where they come from."""

    unit: NDArray[np.int64]
    thread: NDArray[np.int64]
    block: NDArray[np.int64]
    epoch: NDArray[np.int64]
    writes: NDArray[np.bool_]
    access: NDArray[np.int64]
    row: NDArray[np.int64]


@dataclass(slots=True)
class _CohortState:
    log: list[Access] = field(default_factory=list)
    epochs: NDArray[np.int64] | None = None


class IntervalRaces:
    """The detector of a launch. `granule` is the number of bytes of the smallest access."""

    def __init__(self, run: Any, granule: int) -> None:
        self.run = run
        self.granule = granule
        self.clean: set[tuple] = set()
        self.global_log: list[Access] = []
        self.stored: set[int] = set()

    def access(self, m: Any, site: Site, touched: Touched, lanes: NDArray[np.int64] | None) -> None:
        state = m.race_state
        if state is None:
            state = m.race_state = _CohortState([], np.zeros(len(m.blocks), np.int64))
        if site.space == "shared":
            state.log.append(Access(site, touched, lanes, m, None))
        elif site.space == "global":
            if touched.moved is not None:
                touched = Touched(touched.pattern, touched.pattern.index, touched.moved, touched.valid)
            self.global_log.append(Access(site, touched, lanes, m, state.epochs))
            if site.kind != "load":
                self.stored.update(touched.pattern.region.tolist())

    def barrier(self, m: Any, blocks: NDArray[np.int64] | None, lanes: NDArray[np.int64] | None) -> None:
        """All live threads of the blocks (None: of every block) pass a barrier."""
        state = m.race_state
        if state is None:
            return
        if blocks is None:
            self._check_interval(m, state.log)
            state.log = []
            state.epochs = state.epochs + 1
        else:
            chosen = np.zeros(len(m.blocks), np.bool_)
            chosen[blocks] = True
            self._split_interval(m, state, chosen)
            state.epochs = state.epochs + chosen

    def arrive(self, m: Any, block: int, number: int, lanes: NDArray[np.int64]) -> None:
        """Arrivals do not order anything by themselves here."""

    def release(self, m: Any, block: int, number: int, lanes: NDArray[np.int64]) -> None:
        self.barrier(m, np.array([block]), lanes)

    def warp_sync(self, m: Any, lanes: NDArray[np.int64] | None, masks: NDArray) -> None:
        raise AssertionError("programs with bar.warp.sync need vector clocks")

    def fence(self, m: Any, lanes: NDArray[np.int64] | None) -> None:
        raise AssertionError("programs with fences need vector clocks")

    def finish_cohort(self, m: Any) -> None:
        if m.race_state is not None:
            self._check_interval(m, m.race_state.log)
            m.race_state.log = []

    def _split_interval(self, m: Any, state: _CohortState, chosen: NDArray[np.bool_]) -> None:
        """End the interval of some blocks; the accesses of the others stay in the log."""
        ended, kept = [], []
        for access in state.log:
            lanes = np.arange(m.lanes) if access.lanes is None else access.lanes
            inside = chosen[m.block_of[lanes]]
            if inside.all():
                ended.append(access)
            elif not inside.any():
                kept.append(access)
            else:
                ended.append(_columns(access, lanes, inside))
                kept.append(_columns(access, lanes, ~inside))
        self._check_interval(m, ended)
        state.log = kept

    def _check_interval(self, m: Any, log: list[Access]) -> None:
        if not any(a.site.kind != "load" for a in log):
            return
        keys = [a.touched.key for a in log]
        key = tuple((k, a.site.kind) for k, a in zip(keys, log, strict=True)) if None not in keys else None
        if key is not None and key in self.clean:
            return
        owner = np.full(m.space("shared").data.size // self.granule + 1, -1, np.int32)
        events = [a.flatten(self.granule) for a in log]
        suspicious = False
        for access, (units, lanes, _) in zip(log, events, strict=True):
            if access.site.kind != "load":
                suspicious |= bool(((owner[units] >= 0) & (owner[units] != lanes)).any())
                owner[units] = lanes
                suspicious |= bool((owner[units] != lanes).any())
        for access, (units, lanes, _) in zip(log, events, strict=True):
            if access.site.kind == "load":
                found = owner[units]
                suspicious |= bool(((found >= 0) & (found != lanes)).any())
        if not suspicious:
            if key is not None:
                self.clean.add(key)
            return
        self._report(m, log, events, "race_shared")

    def _report(self, m: Any, log: list[Access], events: list[tuple], kind: str) -> None:
        columns = _gather(log, events)
        for first, second, count in _pairs(columns, cross_block=False):
            report_pair(self.run, kind, log, columns, first, second, count)

    def finish(self) -> None:
        """Judge global memory, at the end of the launch: only arrays that were written can race."""
        space = self.run.memory
        for region in sorted(r for r in self.stored if r < len(space.regions)):
            log, events = [], []
            for access in self.global_log:
                if region not in access.touched.pattern.region:
                    continue
                units, lanes, row = access.flatten(self.granule)
                inside = access.touched.pattern.region[row] == region
                log.append(access)
                events.append((units[inside], lanes[inside], row[inside]))
            self._check_global(space.regions[region], log, events)
        self.global_log = []

    def _check_global(self, region: Any, log: list[Access], events: list[tuple]) -> None:
        base, size = region.storage // self.granule, region.size // self.granule + 1
        owner = np.full(size, -1, np.int64)
        suspicious = np.zeros(size, np.bool_)
        threads = [
            a.machine.blocks[a.machine.block_of[e[1]]] * a.machine.padded + a.machine.thread_of[e[1]]
            for a, e in zip(log, events, strict=True)
        ]
        for loads in (False, True):
            for access, (units, _, _), thread in zip(log, events, threads, strict=True):
                if (access.site.kind == "load") != loads:
                    continue
                at = units - base
                found = owner[at]
                suspicious[at[(found >= 0) & (found != thread)]] = True
                if not loads:
                    owner[at] = thread
                    suspicious[at[owner[at] != thread]] = True
        if not suspicious.any():
            return
        kept = []
        for units, lanes, row in events:
            chosen = suspicious[units - base]
            kept.append((units[chosen], lanes[chosen], row[chosen]))
        columns = _gather(log, kept)
        for first, second, count in _pairs(columns, cross_block=True):
            report_pair(self.run, "race_global", log, columns, first, second, count)


def _columns(access: Access, lanes: NDArray[np.int64], chosen: NDArray[np.bool_]) -> Access:
    touched = access.touched
    part = Touched(
        touched.pattern,
        touched.index[:, chosen],
        np.zeros(len(touched.index), np.int64),
        None if touched.valid is None else touched.valid[:, chosen],
    )
    return Access(access.site, part, lanes[chosen], access.machine, access.epochs)


def _gather(log: list[Access], events: list[tuple]) -> _Events:
    blocks, threads, epochs = [], [], []
    for access, (_, lanes, _) in zip(log, events, strict=True):
        m = access.machine
        block = m.block_of[lanes]
        blocks.append(m.blocks[block])
        threads.append(m.blocks[block] * m.padded + m.thread_of[lanes])
        epochs.append(np.zeros(len(lanes), np.int64) if access.epochs is None else access.epochs[block])
    sizes = [len(e[0]) for e in events]
    return _Events(
        np.concatenate([e[0] for e in events]),
        np.concatenate(threads),
        np.concatenate(blocks),
        np.concatenate(epochs),
        np.repeat([a.site.kind != "load" for a in log], sizes),
        np.repeat(np.arange(len(log)), sizes),
        np.concatenate([e[2] for e in events]),
    )


def _pairs(e: _Events, cross_block: bool) -> list[tuple[int, int, int]]:
    """One racing pair for each pair of instructions, with how many locations show it."""
    found: dict[tuple[int, int, int, int], list[int]] = {}
    order = np.lexsort((e.epoch, e.block, e.unit))
    cuts = np.flatnonzero(np.diff(e.unit[order])) + 1
    for group in np.split(order, cuts)[:5000]:
        writes = group[e.writes[group]]
        for w in writes[:8]:
            other = group[(e.thread[group] != e.thread[w])]
            same_block = e.block[other] == e.block[w]
            other = other[
                (same_block & (e.epoch[other] == e.epoch[w])) | (~same_block if cross_block else False)
            ]
            for o in other[:8]:
                pair = sorted((int(w), int(o)))
                key = tuple(int(v) for i in pair for v in (e.access[i], e.row[i]))
                entry = found.setdefault(key, [*pair, 0])  # type: ignore[arg-type]
                entry[2] += 1
    return [(a, b, n) for a, b, n in found.values()]


def report_pair(
    run: Any, kind: str, log: list[Access], e: _Events, first: int, second: int, count: int
) -> None:
    """Report a race between two events."""
    one, other = ((log[e.access[i]], int(e.row[i]), int(e.thread[i])) for i in (first, second))
    report_accesses(run, kind, one, other, int(e.unit[first]), count)


def report_accesses(
    run: Any,
    kind: str,
    first: tuple[Access, int, int],
    second: tuple[Access, int, int],
    unit: int,
    count: int,
) -> None:
    """Report a race between two accesses, each with its instruction's row and its thread in the grid."""
    if first[0].site.kind == "load":
        first, second = second, first
    (a, row, thread), (b, other_row, other_thread) = first, second
    one, other = a.site.instructions[row], b.site.instructions[other_row]
    m = a.machine
    block, other_block = thread // m.padded, other_thread // m.padded
    space = m.space(a.site.space)
    storage = unit * run.granule
    if space.stride:
        storage -= int(np.flatnonzero(m.blocks == block)[0]) * space.stride
    # From the byte, not from the instruction: its first lane's region is none where that lane's address is bad.
    number, region = next(
        (number, region)
        for number, region in enumerate(space.regions)
        if region.storage <= storage < region.storage + max(region.size, run.granule)
    )
    inside = storage - region.storage
    address = space.base + (number << space.shift) + region.start + inside
    verb = "read" if b.site.kind == "load" else "write"
    threads = (thread % m.padded, other_thread % m.padded)
    apart = "in one block" if block == other_block else f"in blocks {block} and {other_block}"
    run.report_race(
        kind,
        one,
        other,
        (block, other_block),
        threads,
        address,
        region.name,
        f"write by thread {threads[0]} and {verb} by thread {threads[1]} (PTX line {other.line}), {apart}, of "
        f"{region.name} + {inside} are not ordered",
        count,
    )
