"""What a sample puts on the stream, in which order, on a session that only writes it down."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kernelab.device.cuda_faults import KernelFault
from kernelab.device.stopwatch import PTX, STAMP_SLOTS, Stopwatch, clock_mhz


class Array:
    def __init__(self, nbytes: int) -> None:
        self.bytes = np.zeros(nbytes, np.uint8)
        self.nbytes = nbytes
        self.data = SimpleNamespace(ptr=id(self))

    def get(self) -> np.ndarray[Any, Any]:
        return self.bytes


class Event:
    def __init__(self, tape: list[str]) -> None:
        self._tape = tape

    def record(self, stream: object) -> None:
        self._tape.append("event")


class Tape:
    """A session whose stream is a list of words. One SM at 1,500 MHz; each pair of events is 2 ms apart."""

    multiprocessors = 4
    l2_bytes = 100

    def __init__(self) -> None:
        self.words: list[str] = []
        self.arrays: list[Array] = []
        self.bound: dict[str, list[Any]] = {}
        self.gives_up = False
        self.flags: np.ndarray[Any, Any] | None = None
        self.stream = SimpleNamespace(ptr=1)

    def allocate(self, nbytes: int) -> Array:
        self.arrays.append(Array(nbytes))
        return self.arrays[-1]

    def load_module(self, image: bytes) -> Tape:
        assert image == PTX
        return self

    def bind(self, entry: str, grid: Any, block: Any, shared: int, *arguments: Any) -> Callable[[], None]:
        self.bound[entry] = [grid, block, shared, arguments]

        def launch() -> None:
            self.words.append(entry)
            if entry == "stamp":
                count = self.words.count("stamp")
                arguments[0].bytes.view(np.uint64)[:2] = (15_000_000 * count, 10_000_000 * count)
            elif self.gives_up and self.flags is not None:
                self.flags[1] = 1

        return launch

    def event(self) -> Event:
        return Event(self.words)

    def fill(self, array: Array, byte: int) -> None:
        array.bytes[:] = byte
        self.words.append("flush" if array is self.arrays[0] else "clear")

    def synchronize(self, limit_s: float | None = None) -> None:
        # A synchronisation while the hold kernel spins would never end.
        if "hold" in self.words and self.flags is not None:
            assert self.flags[0] == 1
        self.words.append("wait")

    def elapsed_ms(self, start: Event, end: Event) -> float:
        return 2.0


@pytest.fixture
def tape(monkeypatch: pytest.MonkeyPatch) -> Tape:
    memory = bytearray(8)
    cuda = SimpleNamespace(alloc_pinned_memory=lambda nbytes: memory)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda))
    made = Tape()
    made.flags = np.frombuffer(memory, np.uint32)
    return made


def test_a_cold_sample_in_order(tape: Tape) -> None:
    sampled = Stopwatch(tape).cold(lambda: tape.words.append("launch"), 1, 5.0)  # type: ignore[arg-type]
    order = "wait clear clear flush hold stamp event launch event stamp wait"
    assert tape.words == order.split()
    assert sampled.time_ms == 2.0
    assert sampled.sm_clock_mhz == pytest.approx(1500.0)
    assert sampled.queued


def test_every_cold_launch_is_flushed_and_restored(tape: Tape) -> None:
    def restore() -> None:
        tape.words.append("restore")

    sampled = Stopwatch(tape).cold(lambda: tape.words.append("launch"), 3, 5.0, restore)  # type: ignore[arg-type]
    once = "event launch event"
    order = f"wait clear clear restore flush hold stamp {once} restore flush {once} restore flush {once} stamp wait"
    assert tape.words == order.split()
    assert sampled.time_ms == pytest.approx(2.0)


def test_a_hot_sample_in_order(tape: Tape) -> None:
    sampled = Stopwatch(tape).hot(lambda: tape.words.append("launch"), 4, 5.0)  # type: ignore[arg-type]
    order = "wait clear clear launch hold stamp event launch launch launch launch event stamp wait"
    assert tape.words == order.split()
    assert sampled.time_ms == pytest.approx(0.5)


def test_the_flush_covers_the_l2_twice_and_stamps_every_sm(tape: Tape) -> None:
    Stopwatch(tape)  # type: ignore[arg-type]
    assert tape.arrays[0].nbytes == 200
    assert tape.bound["stamp"][0] == (4, 1, 1)
    flag, gave_up, limit = tape.bound["hold"][3]
    assert gave_up - flag == 4
    assert limit == 10**9


def test_a_host_that_was_not_ahead_is_told(tape: Tape) -> None:
    tape.gives_up = True
    assert not Stopwatch(tape).cold(lambda: None, 1, 5.0).queued  # type: ignore[arg-type]


def test_a_launch_that_fails_still_releases_the_stream(tape: Tape) -> None:
    error = type("CUDADriverError", (RuntimeError,), {"status": 700})

    def broken() -> None:
        raise error("an illegal memory access was encountered")

    with pytest.raises(KernelFault) as caught:
        Stopwatch(tape).cold(broken, 1, 5.0)  # type: ignore[arg-type]
    assert caught.value.status == "memory_fault"
    assert tape.flags is not None
    assert tape.flags[0] == 1


def test_the_clock_is_the_median_over_the_sms_that_wrote_both_stamps() -> None:
    before, after = (np.zeros((STAMP_SLOTS, 2), np.uint64) for _ in range(2))
    for sm, mhz in enumerate([1500, 1510, 9000]):
        before[sm] = (1000, 5000)
        after[sm] = (1000 + mhz * 1000, 5000 + 1_000_000)
    before[7] = (1, 1)
    after[8] = (1, 1)
    assert clock_mhz(before, after) == pytest.approx(1510.0)
    assert clock_mhz(before, np.zeros_like(before)) is None


def test_the_ptx_asks_for_no_more_than_the_oldest_card_has() -> None:
    assert b".target sm_75" in PTX
    assert PTX.endswith(b"\0")
    # A register that is called like a special register shadows it, and half of the clock is lost.
    declared = {name for line in PTX.split(b"\n") if b".reg" in line for name in line.split(b"%")[1:]}
    special = {b"clock", b"clock64", b"smid", b"tid", b"ctaid", b"globaltimer"}
    assert not {name.strip(b" ,;") for name in declared} & special
