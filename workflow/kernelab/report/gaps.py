"""What failed, and what was not measured and how to get it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from kernelab.report.reader import Results, Row


@dataclass(frozen=True)
class Gap:
    """Cells that are empty for one reason: how many arms, which (a few), why, and what would fill them."""

    what: str
    count: int
    arms: list[str]
    why: str
    remedy: str


SHOWN = 6
FAULTS = ("compile_error", "memory_fault", "hazard", "wrong_result", "launch_error", "timeout", "impossible")


def failed(results: Results) -> list[Row]:
    """The row of every arm that did not come out right, once."""
    return list({row["arm"]: row for row in results.table if row["status"] in FAULTS}.values())


def gaps(results: Results) -> list[Gap]:
    """Every reason for which something was not measured."""
    arms = list({row["arm"]: row for row in results.table}.values())
    found: list[Gap] = []
    unbuilt = [
        row
        for row in arms
        if row["status"] == "not_measured" and not row["registers"] and results.arm(row["arm"]).build
    ]
    untimed = [row for row in arms if not row["time_ms"] and row["status"] not in FAULTS]
    unprofiled = [row for row in arms if row["time_ms"] and not row.get("ncu_time_ms")]
    unchecked = [row for row in arms if not row["correct"] and row["status"] not in FAULTS]
    for what, rows in (
        ("code", unbuilt),
        ("time", untimed),
        ("counters", unprofiled),
        ("correctness", unchecked),
    ):
        for why, count in Counter(_why(what, row, results) for row in rows).most_common():
            names = [row["arm"] for row in rows if _why(what, row, results) == why]
            found.append(Gap(what, count, names[:SHOWN], why, _remedy(what, why, results)))
    return found


def _why(what: str, row: Row, results: Results) -> str:
    if what in ("time", "counters") and not results.on_gpu and "not timed" not in row["note"]:
        return "there was no GPU"
    if what == "counters":
        if not results.plan.profile.enabled:
            return "profiling is off (config.yaml: profile.enabled)"
        if row["arm"] not in results.plan.profiled:
            return "none of its experiments is profiled (config.yaml: profile.experiments)"
        _, _, reason = row["note"].partition("not profiled: ")
        return reason or "ncu gave no counters"
    return row["note"] or "not said"


def _remedy(what: str, why: str, results: Results) -> str:
    if what == "code":
        return "python -m kernelab doctor"
    if what in ("time", "correctness") and not results.on_gpu:
        return "snakemake results/report.html  # on a machine with an NVIDIA GPU; what is built and checked here is reused"
    if what == "counters" and "config.yaml" in why:
        return "snakemake results/report.html  # once config.yaml asks for them"
    if what == "counters" and "died under ncu" in why:
        return "look into results/logs/<device>/profile/, delete its record, and run again"
    if what == "counters":
        return "python -m kernelab doctor  # says how to get ncu and the permission to count"
    return "snakemake results/report.html"
