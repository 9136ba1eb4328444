"""The benchmarks that need a card, on plain numbers: their projects, their judgement, their exit conditions."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from synthetic_results import CARD

from kernelab.build.kernel import build_kernel
from kernelab.build.toolchain import find_toolchain
from kernelab.device.nvml import Monitor
from kernelab.plan.load import load_plan
from kernelab.records.timing import CardFacts
from kernelab.timing.groups import Member
from kernelab.timing.job import BuiltArm, InputFacts, Job, ProcessResult, Sizes

ROOT = Path(__file__).parents[3]


@pytest.fixture
def benchmark_module(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))

    def load(name: str) -> ModuleType:
        return importlib.import_module(name)

    yield load
    for name in ("planted_slowdown", "aa_on_hardware", "timed_project"):
        sys.modules.pop(name, None)


def process(job: Job, true_ratio: Any) -> ProcessResult:
    """A worker whose arms take the time that `true_ratio` says, with a little noise of the process."""
    import random

    rng = random.Random(job.seed)
    rows = []
    members = [Member(m.name, m.arm, m.role) for group in job.groups for m in group.members]  # type: ignore[arg-type]
    placement = {m.name: 1 + rng.gauss(0, 3e-4) for m in members}
    for group, inside in enumerate(job.groups):
        for number in range(4):
            for half in ("forward", "mirror"):
                for m in inside.members:
                    time = 3.0 * true_ratio(m.arm) * placement[m.name]
                    problem = job.plan.arms[m.arm].problem
                    rows.append(
                        [job.session, job.process, group, number, half, 0, problem, m.name, m.role, 1, time, 1500.0,
                         time * 1.5e6, 300.0, 50.0, "none", 1]
                    )  # fmt: skip
    names = {m.name: 1 for m in members}
    return ProcessResult(
        seed=job.seed, warmup_s=0.1, steady=True, sizes=Sizes(rounds=4, launches=names, strides=names), rows=rows, wrong={},
        card=CardFacts(
            uuid=CARD.uuid, name=CARD.name, arch="sm_86", multiprocessors=10**9, fp32_lanes=128, l2_bytes=1,
            memory_clock_mhz=None,
            memory_bus_bits=None, max_sm_clock_mhz=None, power_limit_w=None,
        ),
        driver="1", cuda_runtime="1", cupy="", cublas="1", inputs=[InputFacts(problem="short", data="uniform", inputs_sha256={})],
    )  # fmt: skip


def test_a_planted_slowdown_is_judged_against_its_truth(
    benchmark_module: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELAB_LOCK_DIR", str(tmp_path / "locks"))
    planted, project = benchmark_module("planted_slowdown"), benchmark_module("timed_project")
    plan = load_plan(planted.PROJECT, lambda _: CARD)
    builds = {key: BuiltArm(cubin="none", sass_sha256=key) for key in plan.builds}

    def true_ratio(arm: str) -> float:
        work = arm.partition("WORK=")[2].partition("@")[0]
        return int(work or 1000) / 1000

    found = project.time_and_judge(
        plan, planted.PROJECT, "extra_work", builds, tmp_path, lambda _: None,
        run=lambda job: process(job, true_ratio), monitor=lambda uuid: Monitor("none"),
    )  # fmt: skip
    made = planted.rows(found, 30.0)
    assert len(made) == 12
    assert [row["planted"] for row in made[:4]] == pytest.approx([0.005, 0.01, 0.02, 0.05])
    assert [row["truth"] for row in made[:4]] == pytest.approx([1.005, 1.01, 1.02, 1.05], abs=1e-4)
    assert planted.faults(made) == []
    assert planted.faults([row | {"verdict": "equivalent"} for row in made])
    assert planted.faults([row | {"covered": False} for row in made])
    assert planted.faults([*made[:-1], made[-1] | {"covered": False}]) == []  # one of twelve may miss
    assert planted.faults([row | {"half_width": 0.003} for row in made])


def test_levels_of_the_planted_kernel_differ_in_one_constant() -> None:
    folder = ROOT / "benchmarks/planted/kernels/planted"
    made = [
        build_kernel(
            folder / "planted.cu", arch=arch, toolchain=find_toolchain("nvrtc"), defines={"WORK": work}
        )
        for arch in ("sm_86", "sm_90")
        for work in ("1000", "1050")
    ]
    for one, other in (made[:2], made[2:]):
        assert one.entries["planted"].mix == other.entries["planted"].mix
        assert one.entries["planted"].sass_sha256 != other.entries["planted"].sass_sha256
        hot = one.entries["planted"].hot_loop
        assert hot is not None
        assert hot.mix.ffma == 8


def test_the_copies_of_the_a_a_benchmark(benchmark_module: Any, tmp_path: Path) -> None:
    aa = benchmark_module("aa_on_hardware")
    aa.make_project(tmp_path)
    plan = load_plan(tmp_path, lambda _: CARD)
    comparisons = [c for e in plan.experiments.values() for c in e.comparisons]
    assert len(comparisons) == 50
    assert {c.variable for c in comparisons} == {"COPY"}
    folder = tmp_path / "kernels/sgemm"
    made = [
        build_kernel(
            folder / "01_naive.cu",
            arch="sm_86",
            toolchain=find_toolchain("nvrtc"),
            defines={"COPY": str(copy)},
        )
        for copy in (0, 1)
    ]
    assert made[0].entries["sgemm"].sass_sha256 == made[1].entries["sgemm"].sass_sha256


def test_the_a_a_target(benchmark_module: Any) -> None:
    aa = benchmark_module("aa_on_hardware")
    calm = {"arm": "a", "base_ms": 1.0, "ratio": 1.0, "excludes_1": False, "verdict": "equivalent"}
    wrong = calm | {"verdict": "slower", "excludes_1": True}
    assert aa.summary([calm] * 40)[1]
    assert aa.summary([calm] * 38 + [wrong] * 2)[1]
    assert not aa.summary([calm] * 38 + [wrong] * 3)[1]
    assert not aa.summary([calm] * 39)[1]
