"""What the terminal says when a table is made: what is in it, what failed and why, what was not measured and how to get it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from kernelab.plan.arms import Plan

Row = dict[str, Any]
MOST_FAULTS = 20


def summarise(plan: Plan, rows: list[Row]) -> list[str]:
    """The lines of the summary."""
    arms = {row["arm"]: row for row in rows}
    lines = [
        f"{len(rows)} rows: {len(plan.experiments)} experiments, {len(arms)} arms, "
        f"{len({row.get('sass_sha256') for row in rows} - {None})} distinct codes, on {plan.device.name}"
    ]
    checked = [row for row in arms.values() if row.get("correct") is not None]
    if checked:
        right = sum(bool(row["correct"]) for row in checked)
        how = "by emulation" if plan.device.kind == "emulated" else "on the card"
        lines.append(f"results: {right} of {len(checked)} arms checked {how} are right")
    timed = [row for row in arms.values() if row.get("time_ms") is not None]
    if timed:
        lines.append(f"times: {len(timed)} arms; {_best(timed)}")
    lines += _faults(arms.values())
    lines += _not_measured(arms.values())
    return lines


def _best(timed: list[Row]) -> str:
    ranked = [row for row in timed if row.get("pct_of_cublas") is not None]
    if not ranked:
        return "no library to compare with"
    best = max(ranked, key=lambda row: row["pct_of_cublas"])
    return f"best against the library: {best['arm']}, {best['pct_of_cublas']:.1f}%"


def _faults(rows: Iterable[Row]) -> list[str]:
    faulty = [row for row in rows if row["status"] not in ("ok", "not_measured")]
    lines = [f"{row['status']}: {row['arm']}: {row['note']}" for row in faulty[:MOST_FAULTS]]
    if len(faulty) > MOST_FAULTS:
        lines.append(f"... and {len(faulty) - MOST_FAULTS} more; see the columns status and note")
    return lines


def _not_measured(rows: Iterable[Row]) -> list[str]:
    reasons = Counter(
        row["note"] for row in rows if row.get("time_ms") is None and row["status"] in ("ok", "not_measured")
    )
    return [f"no time for {count} arms: {reason}" for reason, count in reasons.most_common()]
