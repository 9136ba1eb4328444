"""How well does a search's pool of compilers use the cores? Its wall time over its compilers' processor time, spread over them.

    PYTHONPATH=workflow python benchmarks/search_builds.py --configurations 40 --arch sm_90

Configurations of 12_double_buffered, drawn evenly from a space of its tiles, are built into an empty folder, and then once
more, which finds them all. Needs no GPU, but a quiet machine: another's processes lengthen the wall time alone. The exit
status is 1 where the ratio is above 1.3, or where what a compiler started for one build makes is not the pool's to the byte.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

import yaml

from kernelab.build.compiler import compile_source
from kernelab.build.toolchain import find_toolchain
from kernelab.device.identify import EMULATED
from kernelab.digests import Digests
from kernelab.plan import strict_yaml
from kernelab.plan.arms import Plan
from kernelab.plan.load import load_plan
from kernelab.plan.space import Space
from kernelab.records.layout import Layout
from kernelab.search.builds import BuildPool, BuildRequest, BuiltConfiguration

ROOT = Path(__file__).resolve().parents[1]
BASE = "12_double_buffered"
ALLOWED = 1.3
COMPARED = 5  # builds that are compiled alone too
OVER: dict[str, list[object]] = {
    "BM": [64, 128, 256],
    "BN": [64, 128, 256],
    "BK": [8, 16],
    "WM": [32, 64],
    "WN": [32, 64],
    "WNITER": [1, 2, 4],
    "TM": [4, 8],
    "A_PAD": [0, 2, 4],
}


def make_plan(folder: Path, arch: str, toolchain: str) -> Plan:
    """The plan of a project whose kernels are the repository's own, and whose one search spans the space."""
    (folder / "kernels").symlink_to(ROOT / "kernels")
    config = strict_yaml.read(ROOT / "config.yaml").data
    project = {
        "device": "emulated",
        "arch": arch,
        "toolchain": toolchain,
        "problems": {"square": config["problems"]["square_4096"]},
        "experiments": {"one": {"question": "?", "base": BASE, "vary": {"A_PAD": [0, 2]}}},
        "search": {"tiles": {"question": "How fast is the pool?", "base": BASE, "over": OVER}},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(project))
    return load_plan(folder, lambda _: EMULATED)


def draw(plan: Plan, digests: Digests, count: int) -> list[BuildRequest]:
    """Some of the space's valid configurations, evenly spaced."""
    valid = [c for c in Space.of(plan, "tiles").points() if c.build]
    step = max(len(valid) / count, 1.0)
    chosen = [valid[int(i * step)] for i in range(min(count, len(valid)))]
    return [BuildRequest(c, digests.of_build(c.build)) for c in chosen if c.build]


def timed(pool: BuildPool, requests: list[BuildRequest]) -> tuple[list[BuiltConfiguration], float, float]:
    """What the pool builds, its wall time and its compilers' processor time, their start-up included, in s."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with pool:
        built = list(pool.run(requests))
        wall = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return built, wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def alone(plan: Plan, folder: Path, one: BuiltConfiguration) -> bool:
    """Whether a compiler started for it alone makes the same machine code, to the byte."""
    build = one.configuration.build
    assert build is not None
    made = compile_source(
        folder / plan.operations[build.operation].folder / build.source,
        arch=build.arch,
        toolchain=find_toolchain(build.toolchain),
        defines={name: str(value) for name, value in build.defines.items()},
        options=build.options,
    )
    return made.cubin == (one.cubin.read_bytes() if one.cubin else None)


def main() -> int:
    """Measure, print, and say whether the targets are met."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--configurations", type=int, default=40, metavar="N")
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--toolchain", choices=("nvrtc", "nvcc"), default="nvrtc")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), metavar="N")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kernelab-") as scratch:
        folder = Path(scratch)
        plan = make_plan(folder, arguments.arch, arguments.toolchain)
        layout, toolchain = Layout(folder / "results", plan.device.id), find_toolchain(arguments.toolchain)
        requests = draw(plan, Digests(plan, folder), arguments.configurations)
        own = time.process_time()
        built, wall, processor = timed(
            BuildPool(toolchain, plan, layout, folder, arguments.workers), requests
        )
        own = time.process_time() - own
        found, again, _ = timed(BuildPool(toolchain, plan, layout, folder, arguments.workers), requests)
        equal = [alone(plan, folder, one) for one in built[:: max(len(built) // COMPARED, 1)]]
    failed = sum(one.status != "ok" for one in built)
    ratio = wall * arguments.workers / processor
    print(f"{len(built)} configurations of {BASE} for {arguments.arch}, {failed} do not compile")
    print(f"{wall:.2f} s with {arguments.workers} compilers, which took {processor:.2f} s of processor time")
    print(f"wall time over processor time spread over them: {ratio:.3f} (at most {ALLOWED})")
    busy = sum(one.seconds for one in built) / (wall * arguments.workers)
    print(f"the compilers were at work {busy:.1%} of the time, whatever else ran on the machine")
    print(f"processor time of the process that drives them: {own / len(built) * 1000:.1f} ms a configuration")
    print(f"again, {sum(one.cached for one in found)} of them found: {again:.2f} s")
    print(f"compiled alone, {sum(equal)} of {len(equal)} are the same to the byte")
    return int(ratio > ALLOWED or not all(equal))


if __name__ == "__main__":
    sys.exit(main())
