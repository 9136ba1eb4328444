"""Two results folders side by side (two cards, two drivers, two dates): which verdicts agree, flip or fade?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelab.compare.agreement import Answer, agreement
from kernelab.compare.recorded import verdict_of
from kernelab.device.identify import EMULATED
from kernelab.errors import UserError
from kernelab.records.compare import ComparedPair, CompareRecord
from kernelab.records.record import read_record
from kernelab.statistics.policy import VerdictPolicy


@dataclass(frozen=True)
class Row:
    """One comparison in both folders."""

    experiment: str
    base: str
    arm: str
    first: ComparedPair
    second: ComparedPair
    answer: Answer
    reason: str
    size_differs: bool


@dataclass(frozen=True)
class SideBySide:
    """The comparisons that both folders hold, those of one alone, and in what else the folders differ."""

    rows: list[Row]
    only_first: list[str]
    only_second: list[str]
    conditions: list[str]

    def count(self, answer: Answer) -> int:
        return sum(row.answer is answer for row in self.rows)


class OtherMethod(UserError):
    """The two were measured or judged by different methods, so that their verdicts are not comparable."""


def read_compared(folder: Path) -> list[CompareRecord]:
    """The compare records of a results folder, of a snapshot, or of one device's folder below either.

    Raises:
        UserError: there is none, or there are those of several cards.
    """
    devices = [path.parent for path in sorted(folder.glob("*/compare/")) if any(path.glob("*.json"))]
    if (folder / "compare").is_dir():
        devices = [folder]
    cards = [path for path in devices if path.name != EMULATED.id] or devices
    if not cards:
        raise UserError(
            f"{folder}: no compare records below it; name a results folder or a snapshot, or run snakemake"
        )
    if len(cards) > 1:
        raise UserError(
            f"{folder}: holds {', '.join(path.name for path in cards)}; name one of these folders"
        )
    return [read_record(path, CompareRecord) for path in sorted((cards[0] / "compare").glob("*.json"))]


def side_by_side(
    first: Sequence[CompareRecord], second: Sequence[CompareRecord], policy: VerdictPolicy
) -> SideBySide:
    """Set two sets of verdicts side by side.

    Raises:
        OtherMethod: an experiment was measured or judged differently in the two.
    """
    one, two = ({record.experiment: record for record in records} for records in (first, second))
    rows: list[Row] = []
    alone: tuple[list[str], list[str]] = ([], [])
    conditions: dict[str, None] = {}
    for name in sorted(one.keys() | two.keys()):
        if name not in one or name not in two:
            held = one.get(name) or two[name]
            alone[name not in one].extend(f"{name}: {pair.base} -> {pair.arm}" for pair in held.comparisons)
            continue
        _same_method(one[name], two[name])
        conditions |= dict.fromkeys(_conditions(one[name], two[name]))
        for pair in one[name].comparisons:
            other = two[name].pair(pair.base, pair.arm)
            if other is None:
                alone[0].append(f"{name}: {pair.base} -> {pair.arm}")
                continue
            found = agreement(verdict_of(pair, policy), verdict_of(other, policy), policy)
            rows.append(
                Row(name, pair.base, pair.arm, pair, other, found.answer, found.reason, found.size_differs)
            )
        alone[1].extend(
            f"{name}: {pair.base} -> {pair.arm}"
            for pair in two[name].comparisons
            if one[name].pair(pair.base, pair.arm) is None
        )
    return SideBySide(rows, alone[0], alone[1], list(conditions))


def _same_method(first: CompareRecord, second: CompareRecord) -> None:
    differing = _differing(first.method, second.method)
    if differing:
        raise OtherMethod(
            f"{first.experiment}: the two were not measured by one method ({'; '.join(differing)}), so their verdicts are "
            "not comparable; measure one of them anew with the other's settings"
        )


def _conditions(first: CompareRecord, second: CompareRecord) -> list[str]:
    """The conditions of the newest sessions that differ: the point of comparing two boxes, and what may explain a flip."""
    cards = _differing({"card": first.card}, {"card": second.card})
    newest = [next(reversed(record.conditions.values()), {}) for record in (first, second)]
    return cards + _differing(*newest)


def _differing(first: Mapping[str, str], second: Mapping[str, str]) -> list[str]:
    names = dict.fromkeys((*first, *second))
    values = {name: (first.get(name, "none"), second.get(name, "none")) for name in names}
    return [f"{name}: {a} and {b}" for name, (a, b) in values.items() if a != b]
