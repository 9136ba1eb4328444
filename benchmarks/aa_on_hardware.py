"""How often are identical arms called different on this card? 50 A/A comparisons, kernels from 0.05 to 100 ms.

    PYTHONPATH=workflow python benchmarks/aa_on_hardware.py --csv aa.csv

Needs a GPU; about three minutes. Kernels of the repository's own catalogue get a parameter that their source ignores: its levels
are copies of one arm, with one machine code, loaded and timed each by itself and judged like any other arm. The exit status is 1
where more than two are called different (faster, slower or within_margin).

The copies share one cubin because a compiler need not give the same code twice: in the first run of this benchmark NVRTC,
under address randomisation, made other code of one copy of 13_final in six, and the verdicts said so (1.9% slower at 512,
5.6% faster at 4096).
"""

from __future__ import annotations

import argparse
import csv
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from timed_project import Judged, build_all, plan_on_gpu, time_and_judge

from kernelab.errors import UserError
from kernelab.plan import strict_yaml

ROOT = Path(__file__).parents[1]
COPIES = 6  # one base and five arms
ALLOWED = 2
DIFFERENT = ("faster", "slower", "within_margin")
# Kernels by problem size, in groups that one session can time: 0.05 ms to 100 ms on an H200.
SESSIONS: dict[str, dict[str, Any]] = {
    "short": {"bases": ["13_final"], "at": [256, 1024, 2048]},
    "middle": {"bases": ["05_2d_blocktiling", "03_smem", "02_gmem_coalesced"], "at": [2048]},
    "long": {"bases": ["13_final", "08_warptiling", "03_smem"], "at": [4096]},
    "longest": {"bases": ["01_naive"], "at": [2880]},
}
COLUMNS = ("arm", "base_ms", "ratio", "low", "high", "half_width", "aa_half_width", "excludes_1", "verdict")


def make_project(root: Path) -> None:
    """A copy of the sgemm catalogue whose kernels have the parameter COPY, and a config that varies it."""
    folder = root / "kernels" / "sgemm"
    shutil.copytree(ROOT / "kernels" / "sgemm", folder, ignore=shutil.ignore_patterns("__pycache__"))
    catalogue = strict_yaml.read(folder / "kernels.yaml").data
    wanted = {name for session in SESSIONS.values() for name in session["bases"]}
    for name in wanted:
        parameters = catalogue["kernels"][name].setdefault("parameters", {})
        parameters["COPY"] = {"type": "int", "default": 0, "about": "ignored by the source"}
    (folder / "kernels.yaml").write_text(yaml.safe_dump(catalogue, sort_keys=False))
    sizes = sorted({size for session in SESSIONS.values() for size in session["at"]})
    config = {
        "device": "auto",
        "timing": {"budget_s": 21, "extend_to": 6, "warmup_s": 3},
        "problems": {
            f"square_{size}": {"m": size, "n": size, "k": size, "alpha": 1.0, "beta": 0.0} for size in sizes
        },
        "experiments": {
            name: {
                "question": "Are copies told apart?",
                "bases": session["bases"],
                "at": [f"square_{size}" for size in session["at"]],
                "vary": {"COPY": list(range(COPIES))},
            }
            for name, session in SESSIONS.items()
        },
    }
    (root / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))


def _first_copy(key: str) -> str:
    """The build that a copy takes its machine code from."""
    return f"{key.partition('/')[0]}/default"


def row(item: Judged) -> dict[str, object]:
    """A comparison as a row of the CSV."""
    estimate = item.verdict.time
    if estimate is None:
        return {"arm": item.comparison.arm, "verdict": str(item.verdict.kind)}
    return {
        "arm": item.comparison.arm,
        "base_ms": item.base_ms,
        "ratio": round(estimate.ratio, 6),
        "low": round(estimate.low, 6),
        "high": round(estimate.high, 6),
        "half_width": round(estimate.half_width, 6),
        "aa_half_width": round(item.verdict.aa_half_width or 0.0, 6),
        "excludes_1": estimate.p_different() < estimate.alpha,
        "verdict": str(item.verdict.kind),
    }


def summary(made: Sequence[dict[str, object]]) -> tuple[list[str], bool]:
    """What was found, in lines, and whether the target is met."""
    timed = [entry for entry in made if "ratio" in entry]
    different = [entry for entry in timed if entry["verdict"] in DIFFERENT]
    excluding = sum(bool(entry["excludes_1"]) for entry in timed)
    times = sorted(float(str(entry["base_ms"])) for entry in timed)
    lines = [
        f"called different: {entry['arm']}: {entry['ratio']} ({entry['verdict']})" for entry in different
    ]
    if timed:
        lines.append(
            f"{len(timed)} A/A comparisons from {times[0]:.3g} to {times[-1]:.4g} ms: {len(different)} called different, "
            f"{excluding} intervals exclude 1 ({excluding / len(timed):.0%}; 5% expected)"
        )
    lines += [f"not measured: {entry['arm']}" for entry in made if "ratio" not in entry]
    return lines, len(timed) >= 40 and len(different) <= ALLOWED


def main() -> int:
    """Measure, print, and say whether the target is met."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the rows here, after every session")
    parser.add_argument(
        "--sessions", nargs="+", choices=list(SESSIONS), default=list(SESSIONS), help="only these"
    )
    arguments = parser.parse_args()
    made: list[dict[str, object]] = []
    begun = time.monotonic()
    try:
        with TemporaryDirectory(prefix="kernelab-") as scratch:
            root = Path(scratch)
            make_project(root)
            plan = plan_on_gpu(root)
            builds = build_all(plan, root, root / "build", _first_copy)
            for name in arguments.sessions:
                made += [row(item) for item in time_and_judge(plan, root, name, builds, root, print)]
                print(f"{name}: done after {time.monotonic() - begun:.0f} s")
                if arguments.csv:
                    with arguments.csv.open("w", newline="") as stream:
                        writer = csv.DictWriter(stream, COLUMNS, restval="")
                        writer.writeheader()
                        writer.writerows(made)
    except UserError as error:
        print(f"kernelab: {error}", file=sys.stderr)
        return 2
    lines, met = summary(made)
    print("\n".join(lines))
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
