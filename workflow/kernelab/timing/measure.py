"""One fresh process of a session: load, launch once, warm up, size, mirrored rounds, check again.

Knows no device: it drives a `Bench`, which the worker makes of a GPU and the tests of plain numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from kernelab.plan.config import TimingPolicy
from kernelab.timing import sizing
from kernelab.timing.faults import ArmFault
from kernelab.timing.groups import Member
from kernelab.timing.job import Sizes
from kernelab.timing.progress import Progress
from kernelab.timing.samples import Sample
from kernelab.timing.schedule import (
    Visit,
    round_cost_s,
    round_visits,
    rounds_within,
    seed_of,
    shuffled,
    strides,
)
from kernelab.timing.steadiness import Pass, is_steady

LOAD_LIMIT_S = 600.0
"""For loading an arm: inputs are drawn and uploaded, and PTX may have to be compiled, with the first that needs them."""

WARMUP_SHARE = 0.5
"""Of a process's budget, at most, goes into the warm-up."""


@dataclass(frozen=True)
class Reading:
    """One sample's figures: see samples.Sample."""

    time_ms: float
    sm_clock_mhz: float | None
    queued: bool


@dataclass(frozen=True)
class CardState:
    """Power, temperature and throttle reasons (joined by +, `none`, or empty where not readable)."""

    power_w: float | None
    temperature_c: float | None
    throttle: str


def sample_of(
    visit: Visit,
    member: Member,
    reading: Reading,
    state: CardState,
    *,
    session: str,
    process: int,
    group: int,
    number: int,
    problem: str,
    launches: int,
) -> Sample:
    """One visit of a round as a sample. number: of the round; state: the card's after that round."""
    clock = reading.sm_clock_mhz
    return Sample(
        session=session,
        process=process,
        group=group,
        round=number,
        half=visit.half,
        position=visit.position,
        problem=problem,
        arm=member.name,
        role=member.role,
        launches=launches,
        time_ms=reading.time_ms,
        sm_clock_mhz=clock,
        cycles=None if clock is None else reading.time_ms * clock * 1e3,
        power_w=state.power_w,
        temperature_c=state.temperature_c,
        throttle=state.throttle,
        queued=int(reading.queued),
    )


class Bench(Protocol):
    """What a device offers to be measured. Methods raise ArmFault where an arm is to blame."""

    def load(self, member: Member) -> None:
        """Load the member's own instance of its arm, and what it needs."""

    def launch_once(self, member: Member) -> None:
        """Launch and wait."""

    def sample(self, member: Member, launches: int) -> Reading:
        """Take one sample."""

    def state(self) -> CardState:
        """Read the card's state."""

    def method(self, member: Member) -> tuple[str, int]:
        """The arm's l2 level (cold or hot), and the kernels that one launch of its sequence queues."""

    def problem(self, member: Member) -> str:
        """The arm's problem, by name."""

    def check_again(self, member: Member) -> str:
        """Launch on other inputs with poisoned outputs and compare; what is wrong, or nothing."""


@dataclass(frozen=True)
class Measured:
    """What one process measured: see job.ProcessResult."""

    warmup_s: float
    steady: bool
    sizes: Sizes
    samples: list[Sample]
    wrong: dict[str, str]


@dataclass(frozen=True)
class Run:
    """One process's part of a session. budget_s: of this process, warm-up included; sizes None: decide them."""

    session: str
    process: int
    seed: int
    groups: Sequence[Sequence[Member]]
    anchors: Sequence[str]
    policy: TimingPolicy
    budget_s: float
    sizes: Sizes | None


class Measurement:
    """One run on one bench.

    Args:
        run: what to measure.
        bench: the device.
        progress: told of every wait before it begins.
        clock: wall-clock time in s.
    """

    def __init__(
        self, run: Run, bench: Bench, progress: Progress, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._run = run
        self._bench = bench
        self._progress = progress
        self._clock = clock
        self._members = {member.name: member for group in run.groups for member in group}
        self._limit_s = run.policy.launch_limit_s

    def take(self) -> Measured:
        """Measure.

        Raises:
            ArmFault: an arm failed (with the member's name); nothing of this process is of use.
        """
        order = shuffled(list(self._members), seed_of(self._run.seed, "load"))
        for name in order:
            with self._on("load", name, LOAD_LIMIT_S) as member:
                self._bench.load(member)
        for name in order:
            with self._on("launch", name, self._limit_s) as member:
                self._bench.launch_once(member)
        begun = self._clock()
        times_ms, steady = self._warm_up(begun)
        warmup_s = self._clock() - begun
        sizes = self._run.sizes or self._sized(times_ms, begun)
        samples = [sample for number in range(sizes.rounds) for sample in self._round(number, sizes)]
        wrong: dict[str, str] = {}
        for name in order:
            with self._on("check", name, LOAD_LIMIT_S) as member:
                if reason := self._bench.check_again(member):
                    wrong.setdefault(member.arm, reason)
        return Measured(warmup_s, steady, sizes, samples, wrong)

    def _warm_up(self, begun: float) -> tuple[dict[str, float], bool]:
        """All members alternating until their clocks are steady; the last time of each (ms), and whether they were."""
        policy = self._run.policy
        limit = begun + min(policy.warmup_s, WARMUP_SHARE * self._run.budget_s)
        passes: list[Pass] = []
        times_ms: dict[str, float] = {}
        while True:
            clocks: dict[str, float] = {}
            for name in shuffled(list(self._members), seed_of(self._run.seed, "warm-up", len(passes))):
                reading = self._sample(name, 1)
                times_ms[name] = reading.time_ms
                if reading.sm_clock_mhz is not None:
                    clocks[name] = reading.sm_clock_mhz
            passes.append(Pass(self._clock(), clocks))
            if is_steady(passes, policy.steady_pct):
                return times_ms, True
            if passes[-1].ended_s >= limit:
                return times_ms, False

    def _sized(self, times_ms: dict[str, float], begun: float) -> Sizes:
        """Launches a sample, strides, and the rounds that the rest of the budget pays for."""
        policy = self._run.policy
        launches = {}
        for name, member in self._members.items():
            l2, kernels = self._bench.method(member)
            launches[name] = sizing.launches(times_ms[name], policy.sample_ms, l2, kernels)
        costs: dict[str, float] = {}
        for name in self._members:
            before = self._clock()
            self._sample(name, launches[name])
            costs[name] = self._clock() - before
        every: dict[str, int] = {}
        for group, anchor in zip(self._run.groups, self._run.anchors, strict=True):
            inside = {member.name: times_ms[member.name] for member in group}
            every |= strides(inside, inside[anchor], policy.slow_factor, policy.rounds)
        left = self._run.budget_s - (self._clock() - begun)
        rounds = rounds_within(left, round_cost_s(costs, every), policy.rounds)
        return Sizes(rounds=rounds, launches=launches, strides=every)

    def _round(self, number: int, sizes: Sizes) -> Iterator[Sample]:
        """One mirrored round of every group, the groups in turn."""
        for index, group in enumerate(self._run.groups):
            names = [member.name for member in group]
            visits = round_visits(names, sizes.strides, number, seed_of(self._run.seed, "group", index))
            readings = [(visit, self._sample(visit.member, sizes.launches[visit.member])) for visit in visits]
            state = self._bench.state()
            for visit, reading in readings:
                member = self._members[visit.member]
                yield sample_of(
                    visit,
                    member,
                    reading,
                    state,
                    session=self._run.session,
                    process=self._run.process,
                    group=index,
                    number=number,
                    problem=self._bench.problem(member),
                    launches=sizes.launches[visit.member],
                )

    def _sample(self, name: str, launches: int) -> Reading:
        with self._on("sample", name, self._limit_s) as member:
            reading = self._bench.sample(member, launches)
            if not reading.time_ms > 0:
                raise ArmFault("launch_error", f"its launch took {reading.time_ms} ms by the events")
            return reading

    @contextmanager
    def _on(self, step: str, name: str, limit_s: float) -> Iterator[Member]:
        self._progress.announce(step, name, limit_s)
        try:
            yield self._members[name]
        except ArmFault as fault:
            fault.member = name
            raise
