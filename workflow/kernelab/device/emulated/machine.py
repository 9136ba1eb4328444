"""One cohort of blocks in flight: its registers, its shared and local memory, and its control flow.

Lanes that are at the same place run together. Of several groups the one at the lowest place runs first
(minimum-PC reconvergence), so that lanes which parted meet again at the earliest point they share.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import barriers, gatherings
from .asynchronous import AsyncCopies
from .decoded import SHARED_BASE
from .mbarriers import MBarriers
from .memory import SHARED_SHIFT, Region, Space
from .program import Program, Segment
from .ready import Ready
from .special import special_register
from .types import FILE_DTYPES

_PATIENCE = 20_000  # segments in a row before a group that waits behind a loop gets its turn
_POLLS_IN_VAIN = 50_000  # polls while nothing at all changed: the wait will never end
_POLLING_PATIENCE = 12  # the same, when the running group polls memory

Lanes = NDArray[np.int64] | None


class Machine:
    """A cohort. Lane numbers count blocks' threads, each block padded to whole warps."""

    def __init__(self, run: Any, program: Program, blocks: NDArray[np.int64]) -> None:
        self.run = run
        self.program = program
        self.segments = program.segments
        threads = run.threads
        self.padded = -(-threads // 32) * 32
        self.blocks = blocks
        self.lanes = self.padded * len(blocks)
        lane = np.arange(self.lanes)
        self.block_of = lane // self.padded
        self.thread_of = lane % self.padded
        self.live = self.thread_of < threads
        self.live_in_block = np.full(len(blocks), threads, np.int64)
        self.executed = 0
        self.vain = 0  # polls since anything changed
        self._seen_progress = 0
        self.written_patterns: set[int] = set()
        self.asynchronous = AsyncCopies(self.lanes)
        self.mbarriers = MBarriers()
        self.barriers: dict[tuple[int, int], barriers.State] = {}
        self.gatherings: dict[tuple[int, int], NDArray[np.int64]] = {}
        self.runnable = Ready(self.lanes, run.random if run.shuffled else None)
        self.views = self._registers()
        self._spaces = {"global": run.memory, **self._memories()}
        self._offsets = {
            "shared": self.block_of * self._spaces["shared"].stride,
            "local": lane * self._spaces["local"].stride,
        }
        self._scratch: tuple[NDArray, NDArray, NDArray, NDArray] | None = None
        self.race_state: Any = None
        self._start = None if threads == self.padded else np.flatnonzero(self.live)
        self.finished = False

    def _registers(self) -> dict[str, NDArray]:
        files = [
            np.zeros((count, self.lanes), dtype)
            for count, dtype in zip(self.program.row_counts, FILE_DTYPES, strict=True)
        ]
        half, word, double, predicate = files
        views = {
            "u2": half,
            "i2": half.view(np.int16),
            "f2": half.view(np.float16),
            "u4": word,
            "i4": word.view(np.int32),
            "f4": word.view(np.float32),
            "u8": double,
            "i8": double.view(np.int64),
            "f8": double.view(np.float64),
            "?": predicate,
        }
        for name, row in self.program.special.items():
            word[row] = special_register(self, name)
        return views

    def _memories(self) -> dict[str, Space]:
        layout, dynamic = self.program.layout, self.run.dynamic_shared
        shared_bytes = -(-(layout.shared_bytes + (dynamic if layout.dynamic is not None else 0)) // 128) * 128
        shared = Space("shared", SHARED_SHIFT, SHARED_BASE, max(shared_bytes, 128))
        for number, region in enumerate(layout.shared):
            size = dynamic if number == layout.dynamic else region.size
            shared.add_region(Region(region.name, region.start, size, region.storage))
        shared.resize(shared.stride * len(self.blocks))
        local_bytes = -(-layout.local_bytes // 16) * 16
        local = Space("local", SHARED_SHIFT, SHARED_BASE, max(local_bytes, 16))
        for region in layout.local:
            local.add_region(Region(region.name, region.start, region.size, region.storage))
        local.resize(local.stride * self.lanes if layout.local else 0)
        return {"shared": shared, "local": local}

    def release(self) -> None:
        """Give up what is large, once all lanes have exited; race reports need the rest."""
        self.views.clear()
        self._spaces = {"global": self.run.memory}
        self._scratch = None

    def space(self, name: str) -> Space:
        return self._spaces[name]

    def storage_offset(self, name: str) -> NDArray[np.int64]:
        """Byte offset of each lane's block (shared) or thread (local) in the storage."""
        return self._offsets[name]

    def scratch(self, rows: int) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Work arrays of (rows, lanes): float64, int64, three of float32, and Booleans."""
        if self._scratch is None or self._scratch[0].shape[0] < rows:
            shape = (rows, self.lanes)
            self._scratch = (
                np.empty(shape),
                np.empty(shape, np.int64),
                np.empty((3, *shape), np.float32),
                np.empty(shape, np.bool_),
            )
        return self._scratch

    def ticks(self) -> int:
        return 1_000_000 + self.executed

    # Control flow

    def start(self) -> None:
        self.push(0, self._start)

    def _everyone(self, lanes: Lanes) -> NDArray[np.int64]:
        return np.arange(self.lanes) if lanes is None else lanes

    def push(self, segment: int, lanes: Lanes) -> None:
        """Lanes will go on at a segment."""
        self.runnable.push(segment, self._everyone(lanes))

    def advance(self) -> bool:
        """Run until every lane has exited or the cohort polls in vain; True when it has finished."""
        polls = streak = 0
        while self.runnable:
            impatient = polls > _POLLING_PATIENCE or streak > _PATIENCE
            colour, current = place = self.runnable.choose(impatient)
            streak = 0 if impatient else streak
            group = self.runnable.pop(place)
            lanes: Lanes = None if len(group) == self.lanes else group
            while True:
                segment = self.segments[current]
                self.executed += segment.count
                if self.executed > self.run.instruction_limit or self.vain > _POLLS_IN_VAIN:
                    self._time_out(segment, lanes)
                    return True
                for step in segment.steps:
                    step(self, lanes)
                self.run.tally(self, segment, lanes)
                streak += 1
                if segment.stores:
                    polls = 0
                    self.run.progress += 1
                elif segment.polls:
                    polls += 1
                    self._count_vain()
                follow = self._finish(segment, lanes)
                if follow is None:
                    break
                current, lanes = follow
                impatient = polls > _POLLING_PATIENCE or streak > _PATIENCE
                if self._yields(polls) or (
                    self.runnable and (impatient or self.runnable.comes_first((colour, current)))
                ):
                    self.push(current, lanes)
                    break
            if not self.runnable:
                self._settle()
            elif self._yields(polls):
                return False
        self.finished = True
        return True

    def _yields(self, polls: int) -> bool:
        """Whether it is time to let another cohort run, which may bring what is polled for."""
        return self.run.several and polls > 4 * _POLLING_PATIENCE

    def _count_vain(self) -> None:
        if self.run.progress != self._seen_progress:
            self._seen_progress = self.run.progress
            self.vain = 0
        self.vain += 1

    def _finish(self, segment: Segment, lanes: Lanes) -> tuple[int, Lanes] | None:
        """Carry out a segment's end. Returns where the same lanes go on, or None when they were queued."""
        end = segment.end
        following = segment.number + 1
        if end is None:
            if following >= len(self.segments):
                self._exit(lanes)
                return None
            return following, lanes
        if segment.guard is not None:
            taken = segment.guard(self, lanes)[0]
            if segment.guard_negated:
                taken = ~taken
            if not taken.any():
                return following, lanes
            if not taken.all():
                everyone = self._everyone(lanes)
                self.push(following, everyone[~taken])
                lanes = everyone[taken]
        kind = end.ends
        if kind == "branch":
            if segment.guard is not None and self.runnable:
                self.push(segment.targets[0], lanes)
                return None
            return segment.targets[0], lanes
        if kind == "barrier":
            return barriers.arrive(self, segment, lanes)
        if kind == "collective":
            return gatherings.gather(self, segment, lanes)
        if kind == "switch":
            self._switch(segment, lanes)
            return None
        if kind == "trap":
            everyone = self._everyone(lanes)
            self.run.report(
                "trap",
                end.instruction,
                self,
                (int(everyone[0]),),
                "the kernel executed trap (a failed assert or __trap())",
                None,
                None,
                len(everyone),
            )
        self._exit(lanes)
        return None

    def _switch(self, segment: Segment, lanes: Lanes) -> None:
        assert segment.index is not None
        everyone = self._everyone(lanes)
        index = np.broadcast_to(segment.index(self, lanes), (1, len(everyone)))[0]
        for value in np.unique(index):
            self.push(segment.targets[min(int(value), len(segment.targets) - 1)], everyone[index == value])

    def _exit(self, lanes: Lanes) -> None:
        everyone = self._everyone(lanes)
        self.live[everyone] = False
        if lanes is None:
            self.live_in_block[:] = 0
        else:
            self.live_in_block -= np.bincount(self.block_of[everyone], minlength=len(self.blocks))
        if self.barriers or self.gatherings:
            barriers.recheck(self)
            for (segment, warp), waiting in list(self.gatherings.items()):
                if gatherings.complete(self, self.segments[segment].end.data[0], waiting).all():  # type: ignore[union-attr]
                    del self.gatherings[segment, warp]
                    self._rerun_collective(segment, waiting)

    def _rerun_collective(self, segment: int, waiting: NDArray[np.int64]) -> None:
        follow = gatherings.gather(self, self.segments[segment], waiting)
        if follow is not None:
            self.push(*follow)

    def _settle(self) -> None:
        """Nothing can run: report the threads that wait for ever."""
        barriers.report_deadlocks(self)
        for (segment, warp), waiting in self.gatherings.items():
            end = self.segments[segment].end
            assert end is not None
            missing = np.flatnonzero(self.live.reshape(-1, 32)[warp])
            here = {int(lane) & 31 for lane in waiting}
            absent = [lane for lane in missing.tolist() if lane not in here]
            self.run.report(
                "deadlock",
                end.instruction,
                self,
                (int(waiting[0]),),
                f"{len(waiting)} lanes wait for lanes {absent[:4]} of their warp, which never come",
                None,
                None,
                len(waiting),
            )
        self.gatherings.clear()

    def _time_out(self, segment: Segment, lanes: Lanes) -> None:
        everyone = self._everyone(lanes)
        members = segment.end.instruction if segment.end is not None else None
        if members is None:
            members = next(
                s.end.instruction for s in self.segments[segment.number :] + self.segments if s.end
            )
        why = (
            f"waits for memory that nothing changes any more ({self.vain:,} polls)"
            if self.vain > _POLLS_IN_VAIN
            else f"still runs after {self.executed:,} instructions: it may never end (instruction_limit raises the bound)"
        )
        self.run.report(
            "timeout", members, self, (int(everyone[0]),), f"the block {why}", None, None, len(everyone)
        )
        self.runnable.clear()
        self.barriers.clear()
        self.gatherings.clear()
        self.finished = True
