"""One heat: members checked, then raced in mirrored rounds with the base, which takes part twice.

Knows no device: it drives a `HeatBench`, which the worker makes of a GPU and the tests of plain numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import astuple
from typing import Protocol

from kernelab.search.job import AGAIN, BASE, Checked, Contender, Heat, Raced
from kernelab.timing import sizing
from kernelab.timing.faults import ArmFault
from kernelab.timing.groups import Member
from kernelab.timing.measure import LOAD_LIMIT_S, CardState, Reading, sample_of
from kernelab.timing.progress import Progress
from kernelab.timing.samples import Sample
from kernelab.timing.schedule import Visit, round_visits

WARM_S = 0.5
WARM_SPREAD = 0.01
WARM_SAMPLES = 4
"""Before the rounds the base is sampled until the SM clocks of its last few samples agree to a percent, or for so long."""

PATIENCE = 200.0
PATIENCE_S = 2.0
"""A launch may take so many times as long as the base, and at least so long; whatever takes longer is of no use to a search."""


NOTHING = Raced(rows=[], slow={}, base_ms=0.0, wrong={}, seconds=0.0)


class Ruin(Exception):
    """The base is wrong after a member was: see job.Ruined."""

    def __init__(self, name: str, note: str) -> None:
        super().__init__(note)
        self.name, self.note = name, note


class HeatBench(Protocol):
    """What a device offers. Methods raise ArmFault where a member is to blame; a sticky one ends the worker."""

    limit_s: float
    """Wall-clock limit of a launch."""

    def begin(self, names: Collection[str]) -> None:
        """These members share the next rounds: none of them is unloaded to make room for another."""

    def admit(self, contender: Contender) -> None:
        """Make a member known: its code can then be loaded."""

    def load(self, member: Member) -> None:
        """Load it."""

    def loaded(self, member: Member) -> bool:
        """Whether it is loaded."""

    def launch_once(self, member: Member) -> None:
        """Launch and wait."""

    def check(self, member: Member) -> str:
        """Launch on poisoned outputs and judge them; what is wrong, or nothing."""

    def sample(self, member: Member, launches: int) -> Reading:
        """Take one sample."""

    def sample_judged(self, member: Member, launches: int) -> tuple[Reading, str]:
        """The same on poisoned outputs, which are judged afterwards: what is wrong, or nothing."""

    def state(self) -> CardState:
        """Read the card's state."""

    def method(self, member: Member) -> tuple[str, int]:
        """The arm's l2 level (cold or hot), and the kernels that one launch of its sequence queues."""


class Heats:
    """Runs heats on one bench, for as long as its process lives.

    Args:
        bench: the device.
        progress: told of every wait before it begins.
        problem: the problem's name, for the samples.
        sample_ms: the shortest sample.
        clock: wall-clock time in s.
    """

    def __init__(
        self,
        bench: HeatBench,
        progress: Progress,
        problem: str,
        sample_ms: float,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._bench, self._progress, self._problem = bench, progress, problem
        self._sample_ms, self._clock = sample_ms, clock
        self._launches: dict[str, int] = {}
        self._base_ready = False

    def run(self, heat: Heat) -> Iterator[Checked | Raced]:
        """Run one heat: what each check said, as it is said, and at last what the rounds gave.

        Raises:
            ArmFault: a member (or the base) failed so that the process can do no more.
            Ruin: see there.
        """
        if not self._base_ready:
            self._prepare_base(heat.base)
        self._bench.begin([contender.name for contender in heat.members])
        running: list[Member] = []
        for contender in heat.members:
            member = Member(contender.name, contender.arm.name, "arm")
            checked = self._enter(contender, member, contender.name in heat.check)
            if checked is not None:
                yield checked
            if checked is None or checked.status == "ok":
                running.append(member)
        begun = self._clock()
        raced = self._race(heat, running) if running else NOTHING
        yield raced.model_copy(update={"seconds": self._clock() - begun})

    def _prepare_base(self, base: Contender) -> None:
        for name in (BASE, AGAIN):
            member = Member(name, base.arm.name, "base" if name == BASE else "aa")
            self._bench.admit(base)
            with self._on("load", name, LOAD_LIMIT_S):
                self._bench.load(member)
            with self._on("check", name, self._bench.limit_s):
                if wrong := self._bench.check(member):
                    raise ArmFault("wrong_result", wrong, name)
        self._base = [Member(BASE, base.arm.name, "base"), Member(AGAIN, base.arm.name, "aa")]
        times = [self._size(member) for member in self._base]
        self._bench.limit_s = min(self._bench.limit_s, max(PATIENCE_S, PATIENCE * min(times) / 1e3))
        self._base_ready = True

    def _enter(self, contender: Contender, member: Member, check: bool) -> Checked | None:
        """Load a member, and check it where it never was; None where there was nothing to check."""
        if not check and self._bench.loaded(member):
            return None
        begun = self._clock()
        try:
            self._bench.admit(contender)
            with self._on("load", member.name, LOAD_LIMIT_S):
                self._bench.load(member)
            if not check:
                with self._on("launch", member.name, self._bench.limit_s):
                    self._bench.launch_once(member)
                return None
            with self._on("check", member.name, self._bench.limit_s):
                wrong = self._bench.check(member)
        except ArmFault as fault:
            if fault.sticky or fault.status != "launch_error":
                raise
            return Checked(
                name=member.name, status="launch_error", note=fault.note, seconds=self._clock() - begun
            )
        if wrong:
            self._check_base_after(member.name)
        return Checked(
            name=member.name,
            status="wrong_result" if wrong else "ok",
            note=wrong,
            seconds=self._clock() - begun,
        )

    def _check_base_after(self, name: str) -> None:
        """A stray write into the inputs or the reference would make everything after it look wrong."""
        with self._on("check", BASE, self._bench.limit_s):
            if wrong := self._bench.check(self._base[0]):
                raise Ruin(name, wrong)

    def _race(self, heat: Heat, members: list[Member]) -> Raced:
        base_ms = self._warm_up()
        slow: dict[str, float] = {}
        for member in members:
            if heat.slow is None and member.name in self._launches:
                continue
            time_ms = self._size(member)
            if heat.slow is not None and time_ms > heat.slow * base_ms:
                # One disturbed sample must not end a member's race.
                time_ms = min(time_ms, self._sample(member, 1).time_ms)
                if time_ms > heat.slow * base_ms:
                    slow[member.name] = time_ms
        running = {m.name: m for m in (*self._base, *(m for m in members if m.name not in slow))}
        wrong: dict[str, str] = {}
        rows: list[list[int | float | str | None]] = []
        if len(running) == len(self._base):
            return Raced(rows=[], slow=slow, base_ms=base_ms, wrong={}, seconds=0.0)
        for number in range(heat.rounds):
            visits = round_visits(list(running), {}, number, heat.seed)
            last = number == heat.rounds - 1
            readings = [(visit, self._visit(running[visit.member], visit, last, wrong)) for visit in visits]
            state = self._bench.state()
            for visit, reading in readings:
                rows.append(
                    list(astuple(self._row(heat, number, visit, running[visit.member], reading, state)))
                )
        return Raced(rows=rows, slow=slow, base_ms=base_ms, wrong=wrong, seconds=0.0)

    def _visit(self, member: Member, visit: Visit, last: bool, wrong: dict[str, str]) -> Reading:
        """One sample; each member's very last is judged."""
        launches = self._launches[member.name]
        if not (last and visit.half == "mirror"):
            return self._sample(member, launches)
        with self._on("sample", member.name, self._bench.limit_s):
            reading, complaint = self._bench.sample_judged(member, launches)
            _require_time(reading)
        if complaint and member.role != "arm":
            raise ArmFault("wrong_result", complaint, BASE)
        if complaint:
            self._check_base_after(member.name)
            wrong[member.name] = f"while it raced: {complaint}"
        return reading

    def _row(
        self, heat: Heat, number: int, visit: Visit, member: Member, reading: Reading, state: CardState
    ) -> Sample:
        return sample_of(
            visit,
            member,
            reading,
            state,
            session=heat.session,
            process=0,
            group=heat.number,
            number=number,
            problem=self._problem,
            launches=self._launches[member.name],
        )

    def _warm_up(self) -> float:
        """Sample the base until its clock is steady; the time of its last launch, in ms."""
        deadline = self._clock() + WARM_S
        clocks: list[float] = []
        while True:
            for member in self._base:
                reading = self._sample(member, self._launches[member.name])
                clocks.append(reading.sm_clock_mhz or 0.0)
            latest = clocks[-WARM_SAMPLES:]
            steady = len(latest) == WARM_SAMPLES and 0 < max(latest) <= (1 + WARM_SPREAD) * min(latest)
            if steady or self._clock() >= deadline:
                return reading.time_ms

    def _size(self, member: Member) -> float:
        """Decide how many launches make a sample; the time of the launch that decides it, in ms."""
        time_ms = self._sample(member, 1).time_ms
        l2, kernels = self._bench.method(member)
        self._launches.setdefault(member.name, sizing.launches(time_ms, self._sample_ms, l2, kernels))
        return time_ms

    def _sample(self, member: Member, launches: int) -> Reading:
        with self._on("sample", member.name, self._bench.limit_s):
            reading = self._bench.sample(member, launches)
            _require_time(reading)
            return reading

    @contextmanager
    def _on(self, step: str, name: str, limit_s: float) -> Iterator[None]:
        self._progress.announce(step, name, limit_s)
        try:
            yield
        except ArmFault as fault:
            fault.member = fault.member or name
            raise


def _require_time(reading: Reading) -> None:
    if not reading.time_ms > 0:
        raise ArmFault("launch_error", f"its launch took {reading.time_ms} ms by the events")
