"""Is a slowdown of known size found, with its size inside the interval? 0.5, 1, 2 and 5%, at three durations.

    PYTHONPATH=workflow python benchmarks/planted_slowdown.py --csv planted.csv

Needs a GPU; about a minute. The kernel (benchmarks/planted) does nothing but FFMAs, and its levels differ in one loop bound, so
the ratio of times is the ratio of the bounds to a few parts in ten thousand. The exit status is 1 where a slowdown of 1% or more
is not called slower (or within the margin), where more than one interval of the twelve misses the truth, or where the interval of
a pair of 1 to 10 ms is wider than +-0.25%.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from timed_project import Judged, build_all, plan_on_gpu, time_and_judge

from kernelab.errors import UserError

PROJECT = Path(__file__).parent / "planted"
WIDEST = 0.0025
COLUMNS = (
    "arm",
    "base_ms",
    "truth",
    "ratio",
    "low",
    "high",
    "half_width",
    "aa_half_width",
    "covered",
    "verdict",
    "seconds",
)


def rows(found: Sequence[Judged], seconds: float) -> list[dict[str, object]]:
    """One row a comparison; `seconds` is the wall-clock time of the whole session."""
    made: list[dict[str, object]] = []
    for item in found:
        estimate = item.verdict.time
        truth = int(item.comparison.level) / int(item.comparison.base_level)
        figures = {} if estimate is None else {
            "ratio": round(estimate.ratio, 6), "low": round(estimate.low, 6), "high": round(estimate.high, 6),
            "half_width": round(estimate.half_width, 6), "covered": estimate.low <= truth <= estimate.high,
            "aa_half_width": round(item.verdict.aa_half_width or 0.0, 6),
        }  # fmt: skip
        made.append(
            {
                "arm": item.comparison.arm,
                "base_ms": item.base_ms,
                "truth": truth,
                **figures,
                "verdict": str(item.verdict.kind),
                "seconds": round(seconds, 1),
            }
        )
    return made


def faults(made: Sequence[dict[str, object]]) -> list[str]:
    """What misses the targets, one phrase each."""
    found = []
    for row in made:
        if "ratio" not in row:
            found.append(f"{row['arm']} was not measured")
        elif float(str(row["truth"])) >= 1.01 and row["verdict"] not in ("slower", "within_margin"):
            found.append(f"{row['arm']}: {row['truth']} was called {row['verdict']}")
        elif 1.0 <= float(str(row["base_ms"])) <= 10.0 and float(str(row["half_width"])) > WIDEST:
            found.append(f"{row['arm']}: +-{float(str(row['half_width'])):.2%} is wider than +-{WIDEST:.2%}")
    missed = [str(row["arm"]) for row in made if row.get("covered") is False]
    if len(missed) > 1:
        found.append(f"the intervals of {', '.join(missed)} miss the truth")
    return found


def main() -> int:
    """Measure, print, and say whether the targets are met."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the rows here")
    arguments = parser.parse_args()
    try:
        plan = plan_on_gpu(PROJECT)
        with TemporaryDirectory(prefix="kernelab-") as scratch:
            builds = build_all(plan, PROJECT, Path(scratch))
            begun = time.monotonic()
            found = time_and_judge(plan, PROJECT, "extra_work", builds, Path(scratch), print)
            made = rows(found, time.monotonic() - begun)
    except UserError as error:
        print(f"kernelab: {error}", file=sys.stderr)
        return 2
    if arguments.csv:
        with arguments.csv.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, COLUMNS, restval="")
            writer.writeheader()
            writer.writerows(made)
    for row in made:
        print("  ".join(f"{name} {row[name]}" for name in COLUMNS if name in row))
    missed = faults(made)
    for phrase in missed:
        print(f"missed: {phrase}")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
