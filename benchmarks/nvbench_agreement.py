"""Does our stopwatch agree with nvbench? Cold times of cuBLAS and three rungs by both, in one process and on one stream.

    PYTHONPATH=workflow python benchmarks/nvbench_agreement.py --csv nvbench.csv

Needs a GPU and the package cuda-bench (the extras cuda12 and cuda13 have it). Each kernel is sampled by us, then by
nvbench, then by us again, so that a drift of the card shows as a difference between our two halves. The yardstick is
agreement of the medians within 0.3%; the exit status is 1 where it is missed.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kernelab.build.kernel import build_kernel
from kernelab.build.toolchain import find_toolchain
from kernelab.device.cuda import Session
from kernelab.device.identify import identify
from kernelab.device.lock import card_lock
from kernelab.device.nvml import Monitor
from kernelab.errors import UserError
from kernelab.plan.arms import Arm, Plan
from kernelab.plan.load import load_plan
from kernelab.timing.bench import GpuBench
from kernelab.timing.groups import Member
from kernelab.timing.job import BuiltArm

KERNELS = ("00_cublas", "08_warptiling", "11_staged", "13_final")
WARM_UP = 100
LIMIT_PCT = 0.3


@dataclass(frozen=True)
class Agreement:
    """One kernel. Times are medians in ms, clocks medians in MHz; drift is our second half over our first."""

    kernel: str
    ours_ms: float
    nvbench_ms: float
    ratio: float
    drift: float
    ours_clock_mhz: float
    nvbench_clock_mhz: float
    ours_samples: int
    nvbench_samples: int


@dataclass(frozen=True)
class _Stream:
    """Our stream, as nvbench takes streams, so that both time the very same launches."""

    pointer: int

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.pointer


class Comparison:
    """Times loaded arms by both clocks.

    Args:
        bench: the arms, loaded.
        session: their card.
        samples: ours of each half, and the fewest of nvbench's.
    """

    def __init__(self, bench: GpuBench, session: Session, samples: int) -> None:
        self._bench = bench
        self._session = session
        self._samples = samples
        self._ours: dict[str, tuple[list[float], list[float], list[float]]] = {}

    def run(self, arms: Sequence[Arm], scratch: Path) -> list[Agreement]:
        """Time every arm.

        Raises:
            UserError: cuda-bench is not installed.
        """
        try:
            import cuda.bench as nvbench
            from cuda.bench.results import BenchmarkResult
        except ImportError as error:
            raise UserError(
                f"cuda-bench cannot be imported ({error}); install the extra cuda12 or cuda13"
            ) from None
        for arm in arms:
            benchmark = nvbench.register(self._benchmark(arm))
            benchmark.set_name(arm.kernel)
        report = scratch / "nvbench.json"
        nvbench.run_all_benchmarks(
            [
                "nvbench_agreement",
                *("--device", str(self._session.index)),
                *("--min-samples", str(self._samples)),
                *("--jsonbin", str(report)),
            ]
        )
        result = BenchmarkResult.from_json(report)
        return [self._agreement(arm, result[arm.kernel][0]) for arm in arms]

    def _benchmark(self, arm: Arm) -> Callable[[Any], None]:
        member = Member(arm.name, arm.name, "arm")
        launch = self._bench.launcher(member)

        def benchmark(state: Any) -> None:
            for _ in range(WARM_UP):
                launch()
            first, clocks = self._sampled(member)
            state.set_stream(_Stream(self._session.stream.ptr))
            state.exec(lambda _: launch(), batched=False)
            second, more = self._sampled(member)
            self._ours[arm.kernel] = (first, second, clocks + more)

        benchmark.__name__ = arm.kernel
        return benchmark

    def _sampled(self, member: Member) -> tuple[list[float], list[float]]:
        readings = [self._bench.sample(member, 1) for _ in range(self._samples)]
        return [r.time_ms for r in readings], [r.sm_clock_mhz or 0.0 for r in readings]

    def _agreement(self, arm: Arm, state: Any) -> Agreement:
        first, second, clocks = self._ours[arm.kernel]
        theirs = [1e3 * seconds for seconds in state.samples]
        ours, nvbench = statistics.median(first + second), statistics.median(theirs)
        return Agreement(
            kernel=arm.kernel,
            ours_ms=ours,
            nvbench_ms=nvbench,
            ratio=ours / nvbench,
            drift=statistics.median(second) / statistics.median(first),
            ours_clock_mhz=statistics.median(clocks),
            nvbench_clock_mhz=1e-6 * statistics.median(state.frequencies or [0.0]),
            ours_samples=len(first) + len(second),
            nvbench_samples=len(theirs),
        )


def compare(plan: Plan, root: Path, arms: Sequence[Arm], samples: int) -> list[Agreement]:
    """Build, load and time arms by both clocks."""
    with TemporaryDirectory(prefix="kernelab-") as name, card_lock(plan.device.uuid):
        scratch = Path(name)
        builds = {arm.build: _built(plan, root, arm, scratch) for arm in arms if arm.build}
        session = Session(plan.device.uuid)
        with Monitor(plan.device.uuid) as monitor:
            bench = GpuBench(plan, builds, session, monitor, root=root.resolve(), references=scratch)
            for arm in arms:
                bench.load(Member(arm.name, arm.name, "arm"))
                bench.launch_once(Member(arm.name, arm.name, "arm"))
            found = Comparison(bench, session, samples).run(arms, scratch)
        session.close()
        return found


def _built(plan: Plan, root: Path, arm: Arm, scratch: Path) -> BuiltArm:
    build = plan.builds[arm.build]
    made = build_kernel(
        root / plan.operations[build.operation].folder / build.source,
        arch=build.arch,
        toolchain=find_toolchain(build.toolchain),
        defines={name: str(value) for name, value in build.defines.items()},
        options=build.options,
    )
    if made.compilation.cubin is None:
        raise UserError(f"{arm.build}: does not compile: {made.compilation.error}")
    cubin = scratch / f"{arm.kernel}.cubin"
    cubin.write_bytes(made.compilation.cubin)
    return BuiltArm(cubin=str(cubin), sass_sha256="")


def _arms(plan: Plan, kernels: Sequence[str], problem: str) -> list[Arm]:
    if plan.device.kind != "gpu":
        raise UserError("no GPU is visible to CUDA; this compares two clocks on one")
    names = [f"{kernel}/default@{problem}" for kernel in kernels]
    for name in names:
        if name not in plan.arms:
            raise UserError(f"{name}: no arm of the plan; see the column arm of results/plan.csv")
    return [plan.arms[name] for name in names]


def _write(path: Path, found: Sequence[Agreement]) -> None:
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([field.name for field in fields(Agreement)])
        writer.writerows([f"{v:.6g}" if isinstance(v, float) else v for v in astuple(one)] for one in found)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", type=Path, default=Path(), help="the project's folder")
    parser.add_argument("--problem", default="square_4096")
    parser.add_argument("--kernels", nargs="+", default=list(KERNELS))
    parser.add_argument(
        "--samples", type=int, default=100, help="ours of each half, and the fewest of nvbench's"
    )
    parser.add_argument("--csv", type=Path, help="where to write the figures")
    parser.add_argument("--limit-pct", type=float, default=LIMIT_PCT)
    options = parser.parse_args()
    try:
        plan = load_plan(options.root, identify)
        found = compare(plan, options.root, _arms(plan, options.kernels, options.problem), options.samples)
    except UserError as error:
        print(error, file=sys.stderr)
        return 1
    if options.csv:
        _write(options.csv, found)
    print(f"{'kernel':<20}{'ours ms':>10}{'nvbench ms':>12}{'ratio':>9}{'drift':>9}{'MHz':>7}{'MHz':>7}")
    for one in found:
        times = f"{one.ours_ms:>10.4f}{one.nvbench_ms:>12.4f}{one.ratio:>9.4f}{one.drift:>9.4f}"
        print(f"{one.kernel:<20}{times}{one.ours_clock_mhz:>7.0f}{one.nvbench_clock_mhz:>7.0f}")
    worst = max(abs(one.ratio - 1.0) for one in found)
    agreed = 100.0 * worst <= options.limit_pct
    print(f"widest difference {worst:.2%}: {'within' if agreed else 'beyond'} {options.limit_pct:g}%")
    return 0 if agreed else 1


if __name__ == "__main__":
    sys.exit(main())
