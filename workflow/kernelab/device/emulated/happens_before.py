"""The race detector for programs with atomics, fences, __syncwarp or named barriers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .access import Site, Touched
from .clocks import CohortClocks, Knowledge
from .history import Chains, History
from .races import Access, report_accesses

_ACQUIRES = ("acquire", "acq_rel")
_RELEASES = ("release", "acq_rel")


class ClockRaces:
    """Judges each access, as it happens, against those that came before."""

    def __init__(self, run: Any, granule: int) -> None:
        self.run = run
        self.granule = granule
        threads = -(-run.threads // 32) * 32
        self.know = Knowledge(run.grid[0] * run.grid[1] * run.grid[2], threads)
        self.global_history = History(run.memory.data.size // granule + 1)
        self.records: list[Access] = []
        self.fences = False

    def _state(self, m: Any) -> tuple[CohortClocks, History]:
        if m.race_state is None:
            units = m.space("shared").data.size // self.granule + 1
            state = CohortClocks(m, m.space("shared").stride // self.granule)
            m.race_state = (state, History(units))
        return m.race_state

    def access(self, m: Any, site: Site, touched: Touched, lanes: NDArray[np.int64] | None) -> None:
        if site.space not in ("shared", "global"):
            return
        if site.space == "global" and site.kind == "load" and not self._written(touched):
            return
        state, shared = self._state(m)
        history = shared if site.space == "shared" else self.global_history
        if touched.moved is not None and touched.index.shape[1] == touched.pattern.index.shape[1]:
            touched = Touched(touched.pattern, touched.pattern.index, touched.moved, touched.valid)
        record = Access(site, touched, lanes, m, None)
        unit, lane, row = record.flatten(self.granule)
        thread = m.blocks[m.block_of[lane]] * m.padded + m.thread_of[lane]
        entry = np.stack(
            [
                thread,
                state.clock[m.block_of[lane], m.thread_of[lane]],
                np.full(len(unit), len(self.records)),
                row,
            ],
            1,
        ).astype(np.int32)
        self.records.append(record)
        judged = _Judged(self, m, state, record, unit, lane, row, thread)
        judged.against(history.write[unit])
        if site.kind == "load":
            if site.strong:
                history.strong_reads.append(unit, entry)
            else:
                judged.against_chains(history.strong_writes)
                history.reads.append(unit, entry)
        else:
            judged.against_chains(history.reads)
            if site.strong:
                history.strong_writes.append(unit, entry)
            else:
                judged.against_chains(history.strong_writes)
                judged.against_chains(history.strong_reads)
                history.write[unit] = entry
                judged.against(history.write[unit])
                for chains in (history.reads, history.strong_writes, history.strong_reads):
                    chains.forget(unit)
        if site.strong:
            self._synchronise(m, state, site, unit, lane)

    def _written(self, touched: Touched) -> bool:
        regions = self.run.memory.regions
        return any(regions[r].writable for r in set(touched.pattern.region.tolist()) if r < len(regions))

    def _synchronise(
        self, m: Any, state: CohortClocks, site: Site, unit: NDArray[np.int64], lane: NDArray[np.int64]
    ) -> None:
        acquire, release = site.ordering in _ACQUIRES, site.ordering in _RELEASES
        if not (self.fences or acquire or release or self.know.released):
            return
        order = range(len(unit) - 1, -1, -1) if self.run.reverse else range(len(unit))
        for i in order:
            where = int(unit[i]) if site.space == "global" else int(unit[i]) + (id(m) << 40)
            key = (site.space, where)
            if site.kind != "store":
                self.know.observe(m, state, int(lane[i]), key, acquire)
            if site.kind != "load":
                self.know.publish(m, state, int(lane[i]), key, release, site.kind == "atomic")

    def barrier(self, m: Any, blocks: NDArray[np.int64] | None, lanes: NDArray[np.int64] | None) -> None:
        state, shared = self._state(m)
        self.know.block_barrier(state, slice(None) if blocks is None else blocks)
        if blocks is None:
            shared.clear()
            return
        for block in blocks.tolist():
            shared.clear(slice(block * state.shared_units, (block + 1) * state.shared_units))

    def arrive(self, m: Any, block: int, number: int, lanes: NDArray[np.int64]) -> None:
        self.know.arrive(self._state(m)[0], block, number, m.thread_of[lanes])

    def release(self, m: Any, block: int, number: int, lanes: NDArray[np.int64]) -> None:
        state = self._state(m)[0]
        if len(lanes) == m.live_in_block[block]:
            state.arriving.pop((block, number), None)
            self.barrier(m, np.array([block]), lanes)
        else:
            self.know.release(state, block, number, m.thread_of[lanes])

    def warp_sync(self, m: Any, lanes: NDArray[np.int64] | None, masks: NDArray) -> None:
        state = self._state(m)[0]
        everyone = np.arange(m.lanes) if lanes is None else lanes
        mask = np.broadcast_to(masks, (1, len(everyone)))[0].astype(np.int64)
        keys = (everyone >> 5) << 32 | mask
        order = np.argsort(keys, kind="stable")
        for group in np.split(order, np.flatnonzero(np.diff(keys[order])) + 1):
            chosen = everyone[group]
            self.know.group(state, int(m.block_of[chosen[0]]), m.thread_of[chosen])

    def fence(self, m: Any, lanes: NDArray[np.int64] | None) -> None:
        self.fences = True
        state = self._state(m)[0]
        self.know.fence(m, state, range(m.lanes) if lanes is None else lanes.tolist())

    def mbarrier_arrive(self, m: Any, where: int, lanes: NDArray[np.int64]) -> None:
        """Lanes arrive at an mbarrier: what they know goes with the current phase."""
        state = self._state(m)[0]
        for lane in lanes.tolist():
            self.know.publish(m, state, lane, ("arrived", where + (id(m) << 40)), True, True)

    def mbarrier_copy(self, m: Any, where: int, lane: int) -> None:
        """A bulk copy will complete on an mbarrier: its writes, stamped with the asking thread, go with the phase."""
        self.mbarrier_arrive(m, where, np.array([lane]))

    def mbarrier_complete(self, m: Any, where: int) -> None:
        """The phase is over: those who wait for it learn what its arrivals brought."""
        key = where + (id(m) << 40)
        vector = self.know.released.get(("arrived", key))
        if vector is not None:
            self.know.released["completed", key] = vector

    def mbarrier_wait(self, m: Any, where: int, lanes: NDArray[np.int64]) -> None:
        vector = self.know.released.get(("completed", where + (id(m) << 40)))
        if vector is None:
            return
        state = self._state(m)[0]
        for block in np.unique(m.block_of[lanes]).tolist():
            chosen = m.thread_of[lanes[m.block_of[lanes] == block]]
            self.know.learn_all(m, state, block, chosen, vector)

    def finish_cohort(self, m: Any) -> None:
        m.race_state = None

    def finish(self) -> None:
        """Every access has been judged already."""


class _Judged:
    """One access on its way through the checks; reports what is not ordered before it."""

    def __init__(
        self,
        detector: ClockRaces,
        m: Any,
        state: CohortClocks,
        record: Access,
        unit: NDArray[np.int64],
        lane: NDArray[np.int64],
        row: NDArray[np.int64],
        thread: NDArray[np.int64],
    ) -> None:
        self.detector, self.m, self.state, self.record = detector, m, state, record
        self.unit, self.lane, self.row, self.thread = unit, lane, row, thread

    def against(self, before: NDArray[np.int32], chosen: NDArray[np.int64] | None = None) -> None:
        """Compare with one earlier access for each location (thread -1: none)."""
        pick = np.arange(len(before)) if chosen is None else chosen
        other = (before[:, 0] >= 0) & (before[:, 0] != self.thread[pick])
        if not other.any():
            return
        pick, before = pick[other], before[other]
        ordered = self.detector.know.ordered(
            self.m, self.state, self.lane[pick], before[:, 0].astype(np.int64), before[:, 1]
        )
        if ordered.all():
            return
        self._report(pick[~ordered], before[~ordered])

    def against_chains(self, chains: Chains) -> None:
        """Compare with every access of the locations' chains."""
        at = chains.head[self.unit]
        pick = np.flatnonzero(at >= 0)
        at = at[pick]
        while len(at):
            self.against(chains.log[at], pick)
            at = chains.previous[at]
            going = at >= 0
            at, pick = at[going], pick[going]

    def _report(self, pick: NDArray[np.int64], before: NDArray[np.int32]) -> None:
        site = self.record.site
        kinds = before[:, 2].astype(np.int64) << 32 | before[:, 3].astype(np.int64) << 16 | self.row[pick]
        _, first, counts = np.unique(kinds, return_index=True, return_counts=True)
        for i, count in zip(first.tolist(), counts.tolist(), strict=True):
            earlier = self.detector.records[before[i, 2]]
            now = int(pick[i])
            report_accesses(
                self.detector.run,
                f"race_{site.space}",
                (earlier, int(before[i, 3]), int(before[i, 0])),
                (self.record, int(self.row[now]), int(self.thread[now])),
                int(self.unit[now]),
                count,
            )
