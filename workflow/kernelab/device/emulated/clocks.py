"""Happens-before for programs with finer order than the block's barrier: vector clocks.

Every thread has a clock. What a thread knows of the others is kept in three parts: what its block knew at its last full
barrier, a row of its own where a finer synchronisation taught it more, and a vector over all threads of the grid once it
has learnt of other blocks. Order comes from barriers, __syncwarp, and a fence or release followed by a
strong write that a strong read and a fence or acquire observe. Shuffles and votes give none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


class CohortClocks:
    """Clocks of one cohort; arrays are indexed (block, thread)."""

    def __init__(self, m: Any, shared_units: int) -> None:
        shape = (len(m.blocks), m.padded)
        self.clock = np.ones(shape, np.int32)
        self.common = np.zeros(shape, np.int32)
        self.own = np.zeros(len(m.blocks), np.bool_)  # the block has rows of its own
        self.rows: NDArray[np.int32] | None = None  # (block, thread, thread)
        self.far = np.zeros(shape, np.int32)  # number of the thread's grid-wide vector; 0 for none
        self.arriving: dict[tuple[int, int], tuple[NDArray[np.int32], set[int]]] = {}
        self.shared_units = shared_units

    def row_of(self, block: int) -> NDArray[np.int32]:
        """The block's rows, made if there were none: (thread, thread)."""
        threads = self.clock.shape[1]
        if self.rows is None:
            self.rows = np.zeros((len(self.clock), threads, threads), np.int32)
        if not self.own[block]:
            self.rows[block] = self.common[block]
            self.own[block] = True
        np.fill_diagonal(self.rows[block], self.clock[block])
        return self.rows[block]


@dataclass(slots=True)
class Snapshot:
    """What a thread knew at some time: of its block (whose first thread is `start`), and the number of its vector."""

    start: int
    near: NDArray[np.int32]
    far: int


class Knowledge:
    """What every thread of the grid knows of every other's clock."""

    def __init__(self, blocks: int, threads: int) -> None:
        self.threads = threads
        self.size = blocks * threads
        self.vectors: list[NDArray[np.int32] | None] = [None]
        self.fenced: dict[int, Snapshot] = {}
        self.pending: dict[int, NDArray[np.int32]] = {}
        self.released: dict[tuple[str, int], NDArray[np.int32]] = {}

    def ordered(
        self,
        m: Any,
        state: CohortClocks,
        lanes: NDArray[np.int64],
        thread: NDArray[np.int64],
        clock: NDArray[np.int32],
    ) -> NDArray[np.bool_]:
        """Whether `thread`'s access at `clock` (numbers over the whole grid) happens before what `lanes` do now."""
        block, mine = m.block_of[lanes], m.thread_of[lanes]
        other_block, other = thread // self.threads, thread % self.threads
        near = other_block == m.blocks[block]
        known = np.zeros(len(lanes), np.int32)
        known[near] = state.common[block[near], other[near]]
        if state.rows is not None:
            fine = near & state.own[block]
            known[fine] = state.rows[block[fine], mine[fine], other[fine]]
        result = known >= clock
        result |= near & (other == mine)
        vectors = state.far[block, mine]
        for number in np.unique(vectors[~near]).tolist():
            vector = self.vectors[number]
            if vector is not None:
                chosen = ~near & (vectors == number)
                result[chosen] = vector[thread[chosen]] >= clock[chosen]
        return result

    def snapshot(self, m: Any, state: CohortClocks, lane: int) -> Snapshot:
        """All that one thread knows now."""
        block, thread = int(m.block_of[lane]), int(m.thread_of[lane])
        near = (
            state.rows[block, thread] if state.own[block] and state.rows is not None else state.common[block]
        )
        row = near.copy()
        row[thread] = state.clock[block, thread]
        return Snapshot(int(m.blocks[block]) * self.threads, row, int(state.far[block, thread]))

    def vector(self, snapshot: Snapshot) -> NDArray[np.int32]:
        """A snapshot over all threads of the grid."""
        far = self.vectors[snapshot.far]
        full = np.zeros(self.size, np.int32) if far is None else far.copy()
        part = full[snapshot.start : snapshot.start + self.threads]
        np.maximum(part, snapshot.near, out=part)
        return full

    def learn(self, m: Any, state: CohortClocks, lane: int, vector: NDArray[np.int32]) -> None:
        """A thread comes to know all that the vector says."""
        self.learn_all(m, state, int(m.block_of[lane]), m.thread_of[lane : lane + 1], vector)

    def learn_all(
        self, m: Any, state: CohortClocks, block: int, threads: NDArray[np.int64], vector: NDArray[np.int32]
    ) -> None:
        """Threads of one block come to know all that the vector says."""
        start = int(m.blocks[block]) * self.threads
        rows = state.row_of(block)
        rows[threads] = np.maximum(rows[threads], vector[start : start + self.threads])
        rows[threads, threads] = state.clock[block, threads]
        outside = (slice(None, start), slice(start + self.threads, None))
        if not any(vector[part].any() for part in outside):
            return
        far = state.far[block, threads]
        for number in np.unique(far).tolist():
            known = self.vectors[number]
            if known is None or any((known[part] < vector[part]).any() for part in outside):
                state.far[block, threads[far == number]] = self._joined([number], vector)

    def _joined(self, numbers: Iterable[int], vector: NDArray[np.int32] | None = None) -> int:
        """The number of the join of some vectors."""
        distinct = {n for n in numbers if n}
        if vector is None and len(distinct) <= 1:
            return next(iter(distinct), 0)
        parts = [v for n in distinct if (v := self.vectors[n]) is not None]
        if vector is not None:
            parts.append(vector)
        self.vectors.append(np.maximum.reduce(parts))
        return len(self.vectors) - 1

    def block_barrier(self, state: CohortClocks, blocks: NDArray[np.int64] | slice) -> None:
        """Every thread of the blocks passes a barrier."""
        state.common[blocks] = state.clock[blocks]
        state.clock[blocks] += 1
        state.own[blocks] = False
        if state.far.any():
            for block in np.arange(len(state.far))[blocks].tolist():
                state.far[block] = self._joined(np.unique(state.far[block]).tolist())

    def arrive(self, state: CohortClocks, block: int, number: int, threads: NDArray[np.int64]) -> None:
        rows = state.row_of(block)
        known, far = state.arriving.get((block, number), (np.zeros(rows.shape[1], np.int32), set()))
        known = np.maximum(known, rows[threads].max(0))
        state.arriving[block, number] = (known, far | set(state.far[block, threads].tolist()))
        state.clock[block, threads] += 1

    def release(self, state: CohortClocks, block: int, number: int, threads: NDArray[np.int64]) -> None:
        """Some threads of a block pass a barrier that others may only have arrived at."""
        known, far = state.arriving.pop((block, number))
        rows = state.row_of(block)
        rows[threads] = np.maximum(rows[threads], known)
        state.clock[block, threads] += 1
        rows[threads, threads] = state.clock[block, threads]
        for thread in threads.tolist():
            state.far[block, thread] = self._joined([int(state.far[block, thread]), *far])

    def group(self, state: CohortClocks, block: int, threads: NDArray[np.int64]) -> None:
        """Threads of one warp meet at a __syncwarp."""
        rows = state.row_of(block)
        rows[threads] = rows[threads].max(0)
        state.clock[block, threads] += 1
        rows[threads, threads] = state.clock[block, threads]
        if state.far[block, threads].any():
            state.far[block, threads] = self._joined(np.unique(state.far[block, threads]).tolist())

    def fence(self, m: Any, state: CohortClocks, lanes: Iterable[int]) -> None:
        """A fence makes what was read before it count, and lets a later strong write publish what is known now."""
        for lane in lanes:
            block, thread = int(m.block_of[lane]), int(m.thread_of[lane])
            number = int(m.blocks[block]) * self.threads + thread
            if number in self.pending:
                self.learn(m, state, lane, self.pending.pop(number))
            self.fenced[number] = self.snapshot(m, state, lane)
            state.clock[block, thread] += 1

    def publish(
        self, m: Any, state: CohortClocks, lane: int, key: tuple[str, int], release: bool, rmw: bool
    ) -> None:
        """A strong write: a location carries what its writer had released."""
        block, thread = int(m.block_of[lane]), int(m.thread_of[lane])
        number = int(m.blocks[block]) * self.threads + thread
        if release:
            snapshot: Snapshot | None = self.snapshot(m, state, lane)
            state.clock[block, thread] += 1
        else:
            snapshot = self.fenced.get(number)
        before = self.released.get(key) if rmw else None
        if snapshot is not None:
            vector = self.vector(snapshot)
            self.released[key] = vector if before is None else np.maximum(before, vector)
        elif before is None:
            self.released.pop(key, None)

    def observe(self, m: Any, state: CohortClocks, lane: int, key: tuple[str, int], acquire: bool) -> None:
        """A strong read: what the location carries is known at once (acquire) or after the next fence."""
        vector = self.released.get(key)
        if vector is None:
            return
        if acquire:
            self.learn(m, state, lane, vector)
            return
        number = int(m.blocks[m.block_of[lane]]) * self.threads + int(m.thread_of[lane])
        known = self.pending.get(number)
        self.pending[number] = vector if known is None else np.maximum(known, vector)
