"""A project on disk with a plan for a card that is not there, and a bench made of plain numbers in place of the card."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kernelab.plan.arms import Device, Plan
from kernelab.plan.load import load_plan
from kernelab.records.timing import ArmStatus, CardFacts
from kernelab.timing.faults import ArmFault
from kernelab.timing.groups import Member
from kernelab.timing.job import BuiltArm, InputFacts, Job, ProcessResult
from kernelab.timing.measure import CardState, Measurement, Reading, Run

UUID = "GPU-00000000-1111-2222-3333-444444444444"
CATALOGUE = """\
operation:
  name: scale
  title: y = a x
  problem: {n: int, a: float}
  arrays:
    x: {shape: [n], role: input}
    y: {shape: [n], role: output}
  arguments: [n, a, x, y]
  flops: 1000*n
  bytes: 8*n
  tolerance: {absolute: 1.0e-6, relative: 1.0e-6, frobenius: 1.0e-6}
  checks: {tiny: {n: 8, a: 2.0}}
kernels:
  00_library: {library: cublas, idea: reference}
  01_slow: &kernel
    source: k.cu
    idea: one thread an element
    parameters:
      V: {type: int, default: 1, levels: [1, 2, 4], about: elements of a thread, controls: [grid]}
      W: {type: int, default: 0, about: nothing}
    launches: [{entry: scale, grid: "ceil_div(n, 256 * V)", block: 256}]
  02_fast: *kernel
  03_faster: *kernel
""".replace("&kernel", "")
_SLOW = CATALOGUE[CATALOGUE.index("    source: k.cu") : CATALOGUE.index("  02_fast")]
CATALOGUE = CATALOGUE.replace(" *kernel", "\n" + _SLOW.rstrip("\n"))
CONFIG = """\
device: auto
timing: {processes: 3, extend_to: 5, rounds: 8, budget_s: 30.0, half_width: 0.01}
problems:
  big: {n: 1000000, a: 2.0}
  small: {n: 1000, a: 2.0}
experiments:
  vary:
    question: Which width?
    base: 02_fast
    vary: {V: [1, 2, 4]}
  ladder:
    question: What does each rung gain?
    ladder: rungs
  sizes:
    question: Does it hold at both sizes?
    base: 02_fast
    at: [big, small]
    vary: {V: [1, 2]}
  steps:
    question: One by one?
    base: 02_fast
    steps: [{V: 2}, {W: 1}]
"""


@dataclass
class World:
    """What the card would do: the time of each arm (ms), and what goes wrong with it.

    clock_mhz   of the SMs; drift: factor on all times from process to process
    """

    times_ms: dict[str, float] = field(default_factory=dict)
    default_ms: float = 2.0
    noise: float = 0.0005
    process_noise: float = 0.0005
    clock_mhz: float | None = 1500.0
    throttle: str = "none"
    faults: dict[str, tuple[ArmStatus, str]] = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)
    jobs: list[Job] = field(default_factory=list)
    kill_before: int | None = None

    def run(self, job: Job) -> ProcessResult:
        """A worker process, without the process."""
        if self.kill_before is not None and len(self.jobs) == self.kill_before:
            raise KeyboardInterrupt
        self.jobs.append(job)
        bench = FakeBench(self, job)
        run = Run(
            session=job.session,
            process=job.process,
            seed=job.seed,
            groups=[[Member(m.name, m.arm, m.role) for m in group.members] for group in job.groups],  # type: ignore[arg-type]
            anchors=[group.anchor for group in job.groups],
            policy=job.plan.timing,
            budget_s=job.budget_s,
            sizes=job.sizes,
        )
        measured = Measurement(run, bench, bench, bench.now).take()
        return ProcessResult(
            seed=job.seed,
            warmup_s=measured.warmup_s,
            steady=measured.steady,
            sizes=measured.sizes,
            rows=[list(dataclasses.astuple(sample)) for sample in measured.samples],
            wrong=measured.wrong,
            card=CARD,
            driver="580.1",
            cuda_runtime="13000",
            cupy="",
            cublas="130100",
            inputs=[InputFacts(problem="big", data="uniform", inputs_sha256={"x": "ab"})],
        )


CARD = CardFacts(
    uuid=UUID,
    name="NVIDIA Test",
    arch="sm_90",
    multiprocessors=100,
    fp32_lanes=128,
    l2_bytes=1 << 20,
    memory_clock_mhz=3000.0,
    memory_bus_bits=4096,
    max_sm_clock_mhz=1980.0,
    power_limit_w=700.0,
)


class FakeBench:
    """A Bench (and its Progress) whose clock is counted, not waited for."""

    def __init__(self, world: World, job: Job) -> None:
        self.world, self.job = world, job
        self.seconds = 0.0
        self.loaded: list[str] = []
        self.sampled: list[tuple[str, int]] = []
        self.announced: list[tuple[str, str, float]] = []
        self._random = random.Random(job.seed)
        self._factors: dict[str, float] = {}

    def now(self) -> float:
        return self.seconds

    def announce(self, step: str, member: str, limit_s: float) -> None:
        self.announced.append((step, member, limit_s))

    def load(self, member: Member) -> None:
        self.loaded.append(member.name)
        self._factors[member.name] = 1 + self._random.gauss(0, self.world.process_noise)
        self.seconds += 0.01

    def launch_once(self, member: Member) -> None:
        if member.arm in self.world.faults:
            raise ArmFault(*self.world.faults[member.arm])

    def sample(self, member: Member, launches: int) -> Reading:
        self.sampled.append((member.name, launches))
        time = self.world.times_ms.get(member.arm, self.world.default_ms) * self._factors[member.name]
        time *= 1 + self._random.gauss(0, self.world.noise)
        self.seconds += (time * launches + 0.2) * 1e-3
        return Reading(time, self.world.clock_mhz, True)

    def state(self) -> CardState:
        return CardState(300.0, 50.0, self.world.throttle)

    def method(self, member: Member) -> tuple[str, int]:
        return self.job.plan.arms[member.arm].l2, 1

    def problem(self, member: Member) -> str:
        return self.job.plan.arms[member.arm].problem

    def check_again(self, member: Member) -> str:
        return self.world.wrong.get(member.arm, "")


@dataclass
class Project:
    """A project folder; `plan` reads it anew."""

    root: Path

    def write(self, config: str = CONFIG, catalogue: str = CATALOGUE) -> None:
        folder = self.root / "kernels" / "scale"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "k.cu").write_text("")
        (folder / "operation.py").write_text("")
        (folder / "kernels.yaml").write_text(catalogue)
        (self.root / "config.yaml").write_text(config)

    def plan(self) -> Plan:
        device = Device(id="nvidia-test-00000000", kind="gpu", name="NVIDIA Test", arch="sm_90", uuid=UUID)
        return load_plan(self.root, lambda _: device)

    def builds(self, changed: dict[str, str] | None = None) -> dict[str, BuiltArm]:
        return {
            key: BuiltArm(cubin="none", sass_sha256=(changed or {}).get(key, key))
            for key in self.plan().builds
        }


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("KERNELAB_LOCK_DIR", str(tmp_path / "locks"))
    made = Project(tmp_path / "project")
    made.write()
    return made


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def said() -> tuple[list[str], Callable[[str], None]]:
    lines: list[str] = []
    return lines, lines.append
