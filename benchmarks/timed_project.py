"""Time the experiments of a project with kernelab's own machinery, outside Snakemake: build, time, judge.

For the benchmarks that measure the measurement. Checks before timing and profiles are left out; every arm is still
checked after timing, as in any session.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from kernelab.build.kernel import build_kernel, write_build
from kernelab.build.toolchain import find_toolchain
from kernelab.compare.measured import Measured, judged_comparison
from kernelab.compare.verdict import Verdict, judge
from kernelab.device.identify import identify
from kernelab.errors import UserError
from kernelab.plan.arms import Comparison, Plan
from kernelab.plan.load import load_plan
from kernelab.statistics.policy import VerdictPolicy
from kernelab.timing.experiment import TimeStep, time_experiment
from kernelab.timing.job import BuiltArm
from kernelab.timing.samples import read_samples

Say = Callable[[str], None]


@dataclass(frozen=True)
class Judged:
    """One comparison with its verdict and the base's time (ms; None where it was not timed)."""

    comparison: Comparison
    verdict: Verdict
    base_ms: float | None


def plan_on_gpu(root: Path) -> Plan:
    """The plan of a project, for the GPU of this machine.

    Raises:
        UserError: the project has a fault, or there is no GPU.
    """
    plan = load_plan(root, identify)
    if plan.device.kind != "gpu":
        raise UserError("this benchmark times kernels; no GPU is visible to CUDA")
    return plan


def build_all(
    plan: Plan, root: Path, folder: Path, code_of: Callable[[str], str] = lambda key: key
) -> dict[str, BuiltArm]:
    """Compile the builds of the plan, several at a time.

    Args:
        plan, root: the project.
        folder: where machine code goes.
        code_of: the build whose machine code a build takes: itself, or another that it is a copy of.
    """
    toolchains = {name: find_toolchain(name) for name in {build.toolchain for build in plan.builds.values()}}

    def compiled(key: str) -> BuiltArm:
        build = plan.builds[key]
        made = build_kernel(
            root / plan.operations[build.operation].folder / build.source,
            arch=build.arch,
            toolchain=toolchains[build.toolchain],
            defines={name: str(value) for name, value in build.defines.items()},
            options=build.options,
        )
        if made.status != "ok":
            raise UserError(f"{key}: {made.compilation.error}")
        write_build(made, folder / key)
        codes = "".join(entry.sass_sha256 for _, entry in sorted(made.entries.items()))
        return BuiltArm(cubin=str((folder / key / "kernel.cubin").resolve()), sass_sha256=codes)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        wanted = list(dict.fromkeys(code_of(key) for key in plan.builds))
        made = dict(zip(wanted, pool.map(compiled, wanted), strict=True))
    return {key: made[code_of(key)] for key in plan.builds}


def time_and_judge(
    plan: Plan,
    root: Path,
    experiment: str,
    builds: dict[str, BuiltArm],
    folder: Path,
    say: Say,
    **time: object,
) -> list[Judged]:
    """Time one experiment and judge each of its comparisons by itself, without Holm's correction.

    Args:
        plan, root: the project.
        experiment: its name.
        builds: from `build_all`.
        folder: where samples and records go.
        say: told in a line what happens.
        time: further arguments of `time_experiment`.
    """
    step = TimeStep(
        plan=plan,
        experiment=experiment,
        builds=builds,
        root=root,
        samples=folder / f"{experiment}.csv.gz",
        record=folder / f"{experiment}.json",
        digest="benchmark",
    )
    record = time_experiment(step, say=say, **time)  # type: ignore[arg-type]
    measured = Measured(record, read_samples(step.samples))
    policy = VerdictPolicy.of_timing(plan.timing)
    found = []
    for comparison in plan.experiments[experiment].comparisons:
        name = f"{comparison.base} -> {comparison.arm}"
        item, sessions = judged_comparison(name, measured, comparison.base, comparison.arm, (), False)
        verdict = judge([item], sessions, policy)[name]
        found.append(Judged(comparison, verdict, record.arms[comparison.base].time_ms))
        if verdict.time is None:
            say(f"{name}: {measured.why_not(comparison.base, comparison.arm)}")
    return found
