"""Timing on a real card: the stopwatch, a whole experiment, and arms that hang, fault, remember or skip."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scaling import OPERATION, declaration

from kernelab.device.identify import identify, list_gpus
from kernelab.device.nvml import Monitor
from kernelab.plan.load import load_plan
from kernelab.records.timing import TimingRecord
from kernelab.statistics.estimate import process_medians
from kernelab.timing.bench import GpuBench
from kernelab.timing.experiment import TimeStep, time_experiment
from kernelab.timing.groups import Member
from kernelab.timing.job import BuiltArm
from kernelab.timing.peak import fp32_lanes, impossible
from kernelab.timing.rounds import pair_rounds
from kernelab.timing.samples import read_samples

if TYPE_CHECKING:
    from kernelab.device.cuda import Session

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not list_gpus(), reason="CUDA shows no GPU here"),
]

# y = a x, after WORK dependent fused multiply-adds that change nothing. MODE makes it misbehave.
SOURCE = """\
#ifndef WORK
#define WORK 1000
#endif
#ifndef MODE
#define MODE 0
#endif
__device__ int launches = 0;
extern "C" __global__ void work(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float one = n > 0 ? 1.0f : a, zero = one - 1.0f, value = x[i % n];
    #pragma unroll 16
    for (int k = 0; k < WORK; k++) value = fmaf(value, one, zero);
#if MODE == 1
    if (i == 0 && a != 0.0f) { volatile const float *p = x; while (p[0] == p[0]) { } }
#elif MODE == 2
    if (i == 0) y = (float *)16;
#elif MODE == 3
    // Remembers: after the first few launches the result stands, so nothing is written any more.
    int count = launches;
    if (i == 0) launches = count + 1;
    if (count > 20) return;
#endif
    if (i < n) y[i] = a * value;
}
"""
CATALOGUE = (
    declaration("work")
    + """\
kernels:
  work:
    source: work.cu
    idea: a chain of multiply-adds
    parameters:
      WORK: {type: int, default: 4000, about: length of the chain}
      MODE: {type: int, default: 0, about: "1 hangs, 2 faults, 3 remembers"}
    launches: [{entry: work, grid: "ceil_div(n, 256)", block: 256}]
"""
)
CONFIG = """\
device: auto
timing: {processes: 2, extend_to: 2, rounds: 6, budget_s: 4.0, warmup_s: 1.5, launch_limit_s: 2.0, busy: warn}
problems:
  big: {n: 4194304, a: 2.0}
  cached: {n: 1048576, a: 2.0}
experiments:
  length:
    question: Is a percent seen?
    base: work
    vary: {WORK: [4000, 4048, 8000]}
  misbehaving:
    question: Are they caught?
    base: work
    hold: {WORK: 100}
    vary: {MODE: [0, 1, 2, 3]}
  cache:
    question: Does a warm cache help a short kernel?
    base: work
    hold: {WORK: 0}
    at: [cached]
    vary: {l2: [cold, hot]}
"""
Run = Callable[[str], TimingRecord]


@dataclass
class Place:
    """A project, and its builds for the card that is here."""

    root: Path
    builds: dict[str, BuiltArm]

    def step(self, experiment: str) -> TimeStep:
        plan = load_plan(self.root, identify)
        out = self.root / "results"
        return TimeStep(
            plan,
            experiment,
            self.builds,
            self.root,
            out / f"{experiment}.csv.gz",
            out / f"{experiment}.json",
            "d",
        )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    from kernelab.build.kernel import build_kernel
    from kernelab.build.toolchain import find_toolchain

    root = tmp_path_factory.mktemp("timing")
    folder = root / "kernels" / "work"
    folder.mkdir(parents=True)
    for name, text in (("work.cu", SOURCE), ("operation.py", OPERATION), ("kernels.yaml", CATALOGUE)):
        (folder / name).write_text(text)
    (root / "config.yaml").write_text(CONFIG)
    builds = {}
    for number, (key, build) in enumerate(load_plan(root, identify).builds.items()):
        defines = {name: str(value) for name, value in build.defines.items()}
        made = build_kernel(
            folder / "work.cu", arch=build.arch, toolchain=find_toolchain("nvrtc"), defines=defines
        )
        assert made.status == "ok", made.compilation.log
        cubin = root / f"{number}.cubin"
        cubin.write_bytes(made.compilation.cubin or b"")
        builds[key] = BuiltArm(cubin=str(cubin), sass_sha256=made.entries["work"].sass_sha256)
    return Place(root, builds)


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    from kernelab.device.cuda import Session

    made = Session(list_gpus()[0].uuid)
    yield made
    made.close()


@pytest.fixture(scope="module")
def bench(place: Place, session: Session) -> GpuBench:
    plan = place.step("length").plan
    made = GpuBench(
        plan,
        place.builds,
        session,
        Monitor(session.uuid),
        root=place.root,
        references=place.root / "references",
    )
    for arm in plan.experiments["length"].arms:
        made.load(Member(arm, arm, "arm"))
        made.launch_once(Member(arm, arm, "arm"))
    return made


def member(place: Place, work: int) -> Member:
    name = "work/default@big" if work == 4000 else f"work/WORK={work}@big"
    return Member(name, name, "arm")


def test_a_sample_has_a_time_a_clock_and_a_host_that_was_ahead(bench: GpuBench, place: Place) -> None:
    readings = [bench.sample(member(place, 4000), 1) for _ in range(20)]
    assert all(reading.queued for reading in readings)
    clocks = [reading.sm_clock_mhz for reading in readings]
    assert all(clock is not None and 200 < clock < 4000 for clock in clocks)
    # Consecutive clocks agree to a percent: a stamp that is torn or of another SM would be far off.
    settled = [clock for clock in clocks[10:] if clock is not None]
    assert max(settled) < 1.01 * min(settled)


def test_twice_the_work_takes_twice_the_cycles(bench: GpuBench, place: Place) -> None:
    def cycles(work: int) -> float:
        readings = [bench.sample(member(place, work), 2) for _ in range(15)]
        return statistics.median(r.time_ms * (r.sm_clock_mhz or 0.0) for r in readings)

    assert cycles(8000) / cycles(4000) == pytest.approx(2.0, rel=0.05)


def test_a_repeated_cold_launch_takes_as_long_as_one(bench: GpuBench, place: Place) -> None:
    once = statistics.median(bench.sample(member(place, 4000), 1).time_ms for _ in range(15))
    repeated = statistics.median(bench.sample(member(place, 4000), 8).time_ms for _ in range(5))
    assert repeated == pytest.approx(once, rel=0.02)


def test_a_percent_is_seen_and_the_base_equals_itself(place: Place) -> None:
    step = place.step("length")
    record = time_experiment(step)
    assert {name: arm.status for name, arm in record.arms.items()} == dict.fromkeys(record.arms, "ok")
    samples = read_samples(step.samples)
    assert all(sample.queued for sample in samples)
    assert record.card is not None
    assert record.card.memory_bus_bits
    assert record.sessions[0].conditions.driver

    def ratio(base: str, arm: str) -> float:
        medians, _ = process_medians(pair_rounds(samples, "s1", (base, arm)).cycles or [])
        return float(np.exp(np.mean(medians)))

    base = "work/default@big"
    ((_, second),) = record.controls("s1")
    assert ratio(base, second) == pytest.approx(1.0, abs=0.004)
    assert ratio(base, "work/WORK=4048@big") == pytest.approx(1.012, abs=0.005)
    assert ratio(base, "work/WORK=8000@big") == pytest.approx(2.0, abs=0.05)
    again: list[str] = []
    assert time_experiment(step, say=again.append).sessions == record.sessions
    assert again == ["nothing has changed since it was timed"]
    # 2 WORK operations an element are done, whatever the catalogue says; they are below the peak, ten times as many are not.
    own = [sample for sample in samples if sample.arm == base]
    lanes = fp32_lanes(record.card.arch)
    assert impossible(own, 2.0 * 4000 * 4194304, record.card.multiprocessors, lanes) is None
    assert impossible(own, 20.0 * 4000 * 4194304, record.card.multiprocessors, lanes) is not None


def test_arms_that_hang_fault_or_remember_are_caught_and_the_rest_goes_on(place: Place) -> None:
    record = time_experiment(place.step("misbehaving"))
    status = {name.partition("@")[0]: arm.status for name, arm in record.arms.items()}
    assert status == {
        "work/WORK=100": "ok",
        "work/MODE=1,WORK=100": "timeout",
        "work/MODE=2,WORK=100": "memory_fault",
        "work/MODE=3,WORK=100": "wrong_result",
    }
    assert record.arms["work/WORK=100@big"].time_ms is not None


def test_a_warm_cache_helps_a_kernel_that_only_moves_data(place: Place) -> None:
    record = time_experiment(place.step("cache"))
    cold, hot = (record.arms[f"work/WORK=0@cached{suffix}"] for suffix in ("", ",l2=hot"))
    assert cold.status == hot.status == "ok"
    assert cold.time_ms is not None
    assert hot.time_ms is not None
    assert hot.time_ms < cold.time_ms
    assert cold.launches > 1
