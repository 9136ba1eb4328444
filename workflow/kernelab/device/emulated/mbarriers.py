"""mbarrier objects in shared memory and the bulk copies (TMA) that report to them.

A bulk copy lands when its barrier is next looked at, so that a reader who does not wait sees old data and is reported.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .access import Pattern, Site, Touched
from .operands import Reader, Writer
from .parser import Instruction


@dataclass(slots=True)
class Bulk:
    """A bulk copy under way: where its bytes go in shared storage."""

    places: NDArray[np.int64]
    data: NDArray[np.uint8]


@dataclass(slots=True)
class MBarrier:
    """An mbarrier: `count` arrivals a phase; the phase is over when arrivals and bytes have all come."""

    count: int
    pending: int
    bytes: int = 0
    phase: int = 0
    copies: list[Bulk] = field(default_factory=list)

    def settle(self) -> bool:
        """End the phase when nothing is missing; True when it ended."""
        if self.pending or self.bytes:
            return False
        self.phase += 1
        self.pending = self.count
        return True


class MBarriers:
    """The mbarriers of one cohort, by the offset of their first byte in the cohort's shared storage."""

    def __init__(self) -> None:
        self.known: dict[int, MBarrier] = {}
        self.flying: NDArray[np.bool_] | None = None
        self.copies = 0

    def storage(
        self, m: Any, instruction: Instruction, addresses: NDArray, lanes: NDArray[np.int64]
    ) -> list[tuple[int, NDArray[np.int64]]]:
        """Each distinct barrier among the lanes' addresses, with its lanes; bad addresses are reported."""
        where, _, valid = m.space("shared").locate(addresses, 8)
        valid = valid & (addresses % 8 == 0)
        if not valid.all():
            bad = int(np.flatnonzero(~valid)[0])
            kind = "misaligned" if addresses[bad] % 8 else "out_of_bounds_shared"
            m.run.report(
                kind,
                instruction,
                m,
                (int(lanes[bad]),),
                "the mbarrier's address is not 8 bytes of shared memory",
                int(addresses[bad]),
                None,
                int((~valid).sum()),
            )
        where = where + m.storage_offset("shared")[lanes]
        return [(int(w), lanes[valid & (where == w)]) for w in np.unique(where[valid])]

    def find(self, m: Any, instruction: Instruction, where: int, lanes: NDArray[np.int64]) -> MBarrier | None:
        barrier = self.known.get(where)
        if barrier is None:
            m.run.report(
                "invalid_mbarrier",
                instruction,
                m,
                (int(lanes[0]),),
                "the mbarrier is used before mbarrier.init",
                None,
                None,
                len(lanes),
            )
        return barrier

    def arrive(
        self,
        m: Any,
        instruction: Instruction,
        where: int,
        lanes: NDArray[np.int64],
        arrivals: int,
        extra_bytes: int,
    ) -> None:
        """Arrivals of some lanes, each of `arrivals`, after `extra_bytes` more are expected for each."""
        barrier = self.find(m, instruction, where, lanes)
        if barrier is None:
            return
        m.run.progress += 1
        m.run.races.mbarrier_arrive(m, where, lanes)
        barrier.bytes += extra_bytes * len(lanes)
        for _ in range(len(lanes)):
            if arrivals > barrier.pending:
                m.run.report(
                    "invalid_mbarrier",
                    instruction,
                    m,
                    (int(lanes[0]),),
                    f"{arrivals} arrivals where only {barrier.pending} of {barrier.count} are expected",
                    None,
                    None,
                    len(lanes),
                )
                return
            barrier.pending -= arrivals
            if barrier.settle():
                m.run.races.mbarrier_complete(m, where)

    def look(self, m: Any, where: int, barrier: MBarrier) -> None:
        """Land the copies that report to a barrier."""
        if not barrier.copies:
            return
        space = m.space("shared")
        for copy in barrier.copies:
            space.data[copy.places] = copy.data
            space.flags[copy.places] = 1
            assert self.flying is not None
            self.flying[copy.places] = False
            barrier.bytes -= len(copy.data)
            self.copies -= 1
        barrier.copies = []
        if barrier.settle():
            m.run.races.mbarrier_complete(m, where)

    def launch_copy(
        self, m: Any, site: Site, lane: int, where: int, places: NDArray[np.int64], data: NDArray[np.uint8]
    ) -> None:
        """Start a bulk copy of one lane: its bytes are in flight until the barrier is looked at."""
        barrier = self.find(m, site.instructions[0], where, np.array([lane]))
        if barrier is None:
            return
        if self.flying is None:
            self.flying = np.zeros(m.space("shared").data.size, np.bool_)
        self.flying[places] = True
        units = np.unique(places // 4)
        site.instructions = [site.instructions[0]] * len(units)
        first = m.space("shared").regions
        pattern = Pattern(
            0,
            None,
            units[:, None],
            units,
            units[:, None],
            np.zeros(len(units), np.int64),
            None,
            None,
            None,
            None,
        )
        assert first
        m.run.races.access(
            m, site, Touched(pattern, units[:, None], np.zeros_like(units), None), np.array([lane])
        )
        m.run.races.mbarrier_copy(m, where, lane)
        barrier.copies.append(Bulk(places, data))
        self.copies += 1

    def refuse_copy(self, m: Any, instruction: Instruction, lane: int, where: int, size: int) -> None:
        """Count a bad copy's bytes as come, though none do: else whoever waits for them would poll to the limit."""
        barrier = self.find(m, instruction, where, np.array([lane]))
        if barrier is None:
            return
        m.run.progress += 1
        barrier.bytes -= size
        if barrier.settle():
            m.run.races.mbarrier_complete(m, where)

    def check(self, m: Any, site: Site, touched: Touched, lanes: NDArray | None) -> None:
        """Report lanes that touch shared memory into which a bulk copy is under way."""
        assert self.flying is not None
        first = touched.index * site.element
        bad = self.flying[first] | self.flying[first + site.width - 1]
        if not bad.any():
            return
        row = int(np.flatnonzero(bad.any(1))[0])
        column = int(np.flatnonzero(bad[row])[0])
        address = site.address_of(m, touched, row, column, lanes)
        name, offset = m.space("shared").describe(address)
        lane = column if lanes is None else int(lanes[column])
        m.run.report(
            "cp_async_not_waited",
            site.instructions[row],
            m,
            (lane,),
            f"touches {name} + {offset} while a bulk copy into it is under way (its mbarrier was not waited for)",
            address,
            name,
            int(bad.sum()),
        )


def spread(m: Any, lanes: Any, values: NDArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The lanes as numbers, and an operand of theirs as integers, one for each."""
    everyone = np.arange(m.lanes) if lanes is None else lanes
    flat = np.broadcast_to(values, (1, len(everyone)))[0]
    return everyone, flat.astype(np.int64)


def init_step(instruction: Instruction, address: Reader, offset: int, count: Reader) -> Any:
    def step(m: Any, lanes: Any) -> None:
        everyone, at = spread(m, lanes, address(m, lanes))
        _, counts = spread(m, lanes, count(m, lanes))
        for where, who in m.mbarriers.storage(m, instruction, at + offset, everyone):
            number = int(counts[np.searchsorted(everyone, who[0])])
            m.mbarriers.known[where] = MBarrier(number, number)
            m.space("shared").flags[where : where + 8] = 1

    return step


def arrive_step(
    instruction: Instruction,
    address: Reader,
    offset: int,
    count: Reader | None,
    expected: Reader | None,
    arrives: bool,
    write: Writer | None,
) -> Any:
    def step(m: Any, lanes: Any) -> None:
        everyone, at = spread(m, lanes, address(m, lanes))
        counts = None if count is None else spread(m, lanes, count(m, lanes))[1]
        extra = None if expected is None else spread(m, lanes, expected(m, lanes))[1]
        states = np.zeros(len(everyone), np.uint64)
        for where, who in m.mbarriers.storage(m, instruction, at + offset, everyone):
            place = np.searchsorted(everyone, who)
            barrier = m.mbarriers.known.get(where)
            if barrier is not None:
                states[place] = barrier.phase & 1
            more = 0 if extra is None else int(extra[place[0]])
            if arrives:
                m.mbarriers.arrive(
                    m, instruction, where, who, 1 if counts is None else int(counts[place[0]]), more
                )
            elif (barrier := m.mbarriers.find(m, instruction, where, who)) is not None:
                barrier.bytes += more * len(who)
        if write is not None:
            write(m, lanes, states[None])

    return step


def wait_step(instruction: Instruction, address: Reader, offset: int, phase: Reader, write: Writer) -> Any:
    """test_wait and try_wait, by parity or by the state that an arrival returned (of which we keep the parity)."""

    def step(m: Any, lanes: Any) -> None:
        everyone, at = spread(m, lanes, address(m, lanes))
        _, parity = spread(m, lanes, phase(m, lanes))
        done = np.zeros(len(everyone), np.bool_)
        for where, who in m.mbarriers.storage(m, instruction, at + offset, everyone):
            barrier = m.mbarriers.find(m, instruction, where, who)
            if barrier is None:
                done[np.searchsorted(everyone, who)] = True
                continue
            m.mbarriers.look(m, where, barrier)
            place = np.searchsorted(everyone, who)
            over = (barrier.phase & 1) != (parity[place] & 1)
            done[place] = over
            if over.any():
                m.run.races.mbarrier_wait(m, where, who[over])
        write(m, lanes, done[None])

    return step
