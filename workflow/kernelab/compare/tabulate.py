"""results/comparisons.csv and results/claims.csv, from the records of all experiments."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from kernelab.compare.claimed import ClaimRow
from kernelab.records.compare import Change, ComparedPair, CompareRecord

COMPARISON_COLUMNS = (
    "experiment",
    "base_arm",
    "arm",
    "variable",
    "base_level",
    "level",
    "composite",
    "device",
    "verdict",
    "ratio",
    "ratio_low",
    "ratio_high",
    "cycles_ratio",
    "aa_half_width",
    "processes",
    "rounds",
    "control_facts_changed",
    "outcomes_changed",
    "note",
)
CLAIM_COLUMNS = tuple(field.name for field in fields(ClaimRow))


def comparisons_csv(records: Sequence[CompareRecord], stale: Mapping[tuple[str, str, str], str]) -> str:
    """The text of comparisons.csv, one row a comparison, in the order of the records.

    Args:
        records: of all experiments.
        stale: by experiment, base and arm, why a verdict no longer stands; it leads the note.
    """
    rows = [
        _comparison_row(record, pair, stale.get((record.experiment, pair.base, pair.arm), ""))
        for record in records
        for pair in record.comparisons
    ]
    return _csv(COMPARISON_COLUMNS, rows)


def claims_csv(rows: Sequence[ClaimRow]) -> str:
    """The text of claims.csv."""
    return _csv(CLAIM_COLUMNS, [asdict(row) for row in rows])


def _comparison_row(record: CompareRecord, pair: ComparedPair, stale: str) -> dict[str, Any]:
    timed = pair.ratio is not None
    elsewhere = _elsewhere(record, pair)
    parts = (f"stale: {stale}" if stale else "", *pair.notes, pair.reason, *elsewhere)
    note = "; ".join(part for part in parts if part)
    return {
        "experiment": record.experiment,
        "base_arm": pair.base,
        "arm": pair.arm,
        "variable": pair.variable,
        "base_level": pair.base_level,
        "level": pair.level,
        "composite": str(pair.composite).lower(),
        "device": record.device,
        "verdict": pair.verdict,
        "ratio": _number(pair.ratio.value if pair.ratio else None),
        "ratio_low": _number(pair.ratio.low if pair.ratio else None),
        "ratio_high": _number(pair.ratio.high if pair.ratio else None),
        "cycles_ratio": _number(pair.cycles.value if pair.cycles else None),
        "aa_half_width": _number(pair.aa_half_width),
        "processes": pair.processes if timed else "",
        "rounds": pair.rounds if timed else "",
        "control_facts_changed": _changes(pair.control_facts_changed),
        "outcomes_changed": _changes(pair.outcomes_changed),
        "note": note,
    }


def _elsewhere(record: CompareRecord, pair: ComparedPair) -> list[str]:
    """Where the same change was asked of another base or problem first, and the answer is not the same."""
    change = f"{pair.variable}: {pair.base_level} -> {pair.level}"
    return [
        f"the answer {asked.answer}s from {asked.first}"
        for asked in record.same_question
        if (asked.second, asked.change) == (pair.base, change) and asked.answer in ("flip", "fade")
    ]


def _changes(changes: Sequence[Change]) -> str:
    """`registers 202 -> 227; ...`; a control fact that nothing declares is marked. Opcode counts are left to the record."""
    shown = (change for change in changes if not change.name.startswith("sass_"))
    return "; ".join(f"{c.name} {c.base} -> {c.arm}" + ("" if c.declared else " (undeclared)") for c in shown)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def _csv(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
