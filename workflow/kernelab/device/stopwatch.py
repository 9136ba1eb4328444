"""One sample: event times of launches that the host had queued before the first of them began, and the SM clock meanwhile.

Order on the stream, for a cold sample of one launch (as nvbench's cold measurement has it):

    flush L2 | hold | stamp | event | launch | event | stamp

`hold` is a kernel that spins until the host, having queued all the rest, sets a flag in pinned memory; without it the
launch latency of the host lands between the events. It gives up after HOLD_LIMIT_S, so that nothing can hang on
it. `stamp` writes clock64 and globaltimer of every SM; the median over the SMs of clocks per nanosecond is the
clock. It stands outside the events and costs them nothing. globaltimer ticks every 32 ns to 1 us, so the
clock of a 2 ms sample is known to 0.1% or better.

The kernels are PTX for sm_75, compiled by the driver, so that timing needs no compiler and no CUDA headers.
CuPy is imported when a stopwatch is made, so that the pure parts here import anywhere.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernelab.device.cuda_faults import translated

if TYPE_CHECKING:
    from kernelab.device.cuda import Session

METHOD = 1
"""Raised whenever a change here moves the times."""

HOLD_LIMIT_S = 1.0
FLUSH_FACTOR = 2
ONE = (1, 1, 1)
STAMP_SLOTS = 1024
"""SM ids are not promised to be dense; ids above are folded, which only mixes two SMs' stamps."""

PTX = b"""
.version 6.5
.target sm_75
.address_size 64

// Spins until *flag is not 0. After limit_ns nanoseconds it gives up and says so in *gave_up.
.visible .entry hold(.param .u64 flag, .param .u64 gave_up, .param .u64 limit_ns)
{
    .reg .pred %released, %waiting;
    .reg .b32 %value;
    .reg .b64 %flag, %gave_up, %limit, %begin, %now;
    ld.param.u64 %flag, [flag];
    ld.param.u64 %gave_up, [gave_up];
    ld.param.u64 %limit, [limit_ns];
    mov.u64 %begin, %globaltimer;
SPIN:
    ld.volatile.u32 %value, [%flag];
    setp.ne.u32 %released, %value, 0;
    @%released bra END;
    mov.u64 %now, %globaltimer;
    sub.u64 %now, %now, %begin;
    setp.lt.u64 %waiting, %now, %limit;
    @%waiting bra SPIN;
    mov.u32 %value, 1;
    st.volatile.u32 [%gave_up], %value;
END:
    ret;
}

// stamps[smid & 1023] = {clock64, globaltimer}; one thread a block, one block an SM.
.visible .entry stamp(.param .u64 stamps)
{
    .reg .b32 %multiprocessor;
    .reg .b64 %slot, %address, %cycles, %nanoseconds;
    ld.param.u64 %address, [stamps];
    mov.u32 %multiprocessor, %smid;
    and.b32 %multiprocessor, %multiprocessor, 1023;
    mul.wide.u32 %slot, %multiprocessor, 16;
    add.u64 %address, %address, %slot;
    mov.u64 %nanoseconds, %globaltimer;
    mov.u64 %cycles, %clock64;
    st.global.v2.u64 [%address], {%cycles, %nanoseconds};
    ret;
}
\x00"""


@dataclass(frozen=True)
class Sampled:
    """time_ms: of one launch; sm_clock_mhz: None where no stamps could be paired; queued: the host was ahead."""

    time_ms: float
    sm_clock_mhz: float | None
    queued: bool


class Stopwatch:
    """Takes samples on a session's stream.

    Args:
        session: the card and stream. The stopwatch lives no longer than it.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        import cupy

        self._flushed = session.allocate(max(1, FLUSH_FACTOR * session.l2_bytes))
        self._stamps = [session.allocate(16 * STAMP_SLOTS) for _ in range(2)]
        # Two words of pinned memory: under unified addressing the device reads and writes it under the host's address.
        self._pinned = cupy.cuda.alloc_pinned_memory(8)
        self._flags = np.frombuffer(self._pinned, np.uint32, 2)
        address = int(self._flags.ctypes.data)
        module = session.load_module(PTX)
        self._hold = module.bind(
            "hold",
            ONE,
            ONE,
            0,
            np.uint64(address),
            np.uint64(address + 4),
            np.uint64(int(HOLD_LIMIT_S * 1e9)),
        )
        grid = (session.multiprocessors, 1, 1)
        self._stamp = [module.bind("stamp", grid, ONE, 0, stamps) for stamps in self._stamps]
        self._events: list[Any] = []

    def cold(
        self,
        launch: Callable[[], None],
        launches: int,
        limit_s: float,
        restore: Callable[[], None] | None = None,
    ) -> Sampled:
        """The mean over launches that each find the L2 flushed.

        Args:
            launch: queues one launch of the arm's sequence.
            launches: how many; each has a flush and two events of its own.
            limit_s: wall-clock limit.
            restore: queues what must precede each launch (an output that the operation reads), or None.

        Raises:
            KernelFault: the launch failed, or did not end in time.
            BrokenMachine: the machine cannot go on.
        """

        def prepare() -> None:
            if restore is not None:
                restore()
            self._session.fill(self._flushed, 0)

        def queue(events: list[Any]) -> None:
            for number in range(launches):
                if number:
                    prepare()
                events[2 * number].record(self._session.stream)
                launch()
                events[2 * number + 1].record(self._session.stream)

        total, clock, queued = self._sample(prepare, queue, 2 * launches, limit_s)
        return Sampled(total / launches, clock, queued)

    def hot(
        self,
        launch: Callable[[], None],
        launches: int,
        limit_s: float,
        restore: Callable[[], None] | None = None,
    ) -> Sampled:
        """The mean over launches back to back, after one that is not timed. Arguments and errors as `cold`.

        `restore` is queued once, before the untimed launch: between launches it would cool the cache.
        """

        def prepare() -> None:
            if restore is not None:
                restore()
            launch()

        def queue(events: list[Any]) -> None:
            events[0].record(self._session.stream)
            for _ in range(launches):
                launch()
            events[1].record(self._session.stream)

        total, clock, queued = self._sample(prepare, queue, 2, limit_s)
        return Sampled(total / launches, clock, queued)

    def _sample(
        self, prepare: Callable[[], None], queue: Callable[[list[Any]], None], events: int, limit_s: float
    ) -> tuple[float, float | None, bool]:
        session = self._session
        while len(self._events) < events:
            self._events.append(session.event())
        with translated():
            session.synchronize(limit_s)
            self._flags[:] = 0
            for stamps in self._stamps:
                session.fill(stamps, 0)
            prepare()
            try:
                self._hold()
                self._stamp[0]()
                queue(self._events)
                self._stamp[1]()
            finally:
                self._flags[0] = 1
            session.synchronize(limit_s)
            queued = not self._flags[1]
            pairs = zip(self._events[0:events:2], self._events[1:events:2], strict=True)
            total = sum(session.elapsed_ms(begin, end) for begin, end in pairs)
            before, after = (stamps.get().view(np.uint64).reshape(STAMP_SLOTS, 2) for stamps in self._stamps)
        return total, clock_mhz(before, after), queued


def clock_mhz(before: NDArray[np.uint64], after: NDArray[np.uint64]) -> float | None:
    """The SM clock between two stamps of all SMs, in MHz: the median over the SMs; None where no SM has both.

    before, after: shape (slots, 2), of clock64 (cycles) and globaltimer (ns); zeros where an SM wrote nothing.
    """
    ratios = []
    for (clock0, time0), (clock1, time1) in zip(before.tolist(), after.tolist(), strict=True):
        if time0 and time1 > time0 and clock1 > clock0:
            ratios.append(1e3 * (clock1 - clock0) / (time1 - time0))
    return statistics.median(ratios) if ratios else None
