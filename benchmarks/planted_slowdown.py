"""Is a slowdown of known size found, with its size inside the interval? 0.5, 1, 2 and 5%, at three durations.

    PYTHONPATH=workflow python benchmarks/planted_slowdown.py --csv planted.csv

Needs a GPU; about a minute. The kernel (benchmarks/planted) does nothing but FFMAs, and its levels differ in one loop bound,
so time is a straight line in the bound. The line's slope comes from an arm of twice the work, and with it the true ratio of
every other: 1% more trips take 1% more of the part of the time that grows with trips (98 to 99.9% of it on an H200).

The intervals are as narrow as +-0.003%, and at that level no two pieces of machine code are known to be equally fast: where a
loop falls in memory counts. So the truth itself is only claimed to +-0.01%, and `covered` says whether interval and truth meet.
The exit status is 1 where a slowdown of 1% or more is not called slower (or within the margin), where more than one of the
twelve intervals misses the truth, or where the interval of a pair of 1 to 10 ms is wider than +-0.25%.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from timed_project import Judged, build_all, plan_on_gpu, time_and_judge

from kernelab.errors import UserError

PROJECT = Path(__file__).parent / "planted"
WIDEST = 0.0025
TWICE = "2000"  # the level that gives the slope
TRUTH = 1e-4
"""To how much the true ratio is known, in log ratio."""
COLUMNS = (
    "arm",
    "base_ms",
    "planted",
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
    """One row a planted slowdown; `seconds` is the wall-clock time of the whole session."""
    made: list[dict[str, object]] = []
    twice = {
        item.comparison.base: item.verdict.time.ratio - 1.0
        for item in found
        if item.comparison.level == TWICE and item.verdict.time is not None
    }
    for item in found:
        if item.comparison.level == TWICE:
            continue
        estimate = item.verdict.time
        share = twice.get(item.comparison.base, 1.0)
        extra = int(item.comparison.level) / int(item.comparison.base_level) - 1.0
        truth = 1.0 + extra * share
        figures: dict[str, object] = {}
        if estimate is not None:
            error = abs(math.log(truth) - estimate.log_mean)
            figures = {
                "ratio": round(estimate.ratio, 6),
                "low": round(estimate.low, 6),
                "high": round(estimate.high, 6),
                "half_width": round(estimate.half_width, 6),
                "aa_half_width": round(item.verdict.aa_half_width or 0.0, 6),
                "covered": error <= estimate.half_width + TRUTH,
            }
        made.append(
            {
                "arm": item.comparison.arm,
                "base_ms": item.base_ms,
                "planted": extra,
                "truth": round(truth, 6),
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
        elif float(str(row["planted"])) > 0.0099 and row["verdict"] not in ("slower", "within_margin"):
            found.append(
                f"{row['arm']}: {float(str(row['planted'])):.1%} more work was called {row['verdict']}"
            )
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
