"""results/searches.csv: what every search of config.yaml found, one row a winner, from the records of search and confirm."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields

from kernelab.digests import Digests
from kernelab.plan.arms import Plan
from kernelab.records.layout import Layout
from kernelab.records.record import read_record
from kernelab.records.search import ConfirmRecord, SearchRecord, Winner, settings_text

NO_GPU = "no GPU on this machine: configurations were compiled, none was raced"
NOTHING_RACED = "no configuration came through build and check; see the statuses in its own csv"


@dataclass(frozen=True)
class SearchesRow:
    """One winner of a search; where there is none, one row that says why. None (an empty cell) is not measured.

    search, question   from config.yaml
    base, problem, device   what the configurations were compared with, and where
    rank               in the search; 1 is the best
    configuration      the variant's name; settings   the levels that it sets, as JSON text
    verdict            of the controlled comparison with the base: see comparisons.csv
    ratio, ratio_low, ratio_high   time(configuration) / time(base) there, and its 95% interval
    search_ratio       the same ratio as the search saw it, in one process
    points, built, raced   configurations that the space has, that compiled, that were raced
    note               reasons
    """

    search: str
    question: str
    base: str
    problem: str
    device: str
    rank: int | None
    configuration: str
    verdict: str
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    search_ratio: float | None
    points: int
    built: int
    raced: int
    note: str
    settings: str


COLUMNS = tuple(field.name for field in fields(SearchesRow))


def searches_rows(plan: Plan, layout: Layout, digests: Digests) -> Iterator[SearchesRow]:
    """The rows of every search of a plan, by rank.

    Raises:
        UserError: a record is missing, damaged or of other settings than the plan's.
    """
    for name in plan.searches:
        record = read_record(layout.search_record(name), SearchRecord, digests.search(name))
        if plan.device.kind != "gpu":
            yield _row(plan, record, None, NO_GPU)
            continue
        confirmed = read_record(layout.confirmed(name), ConfirmRecord, digests.confirm(name))
        for winner in confirmed.winners or (None,):
            yield _row(plan, record, winner, NOTHING_RACED)


def searches_csv(rows: Sequence[SearchesRow]) -> str:
    """The text of searches.csv."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _cell(value) for name, value in asdict(row).items()})
    return out.getvalue()


def describe(rows: Sequence[SearchesRow]) -> Iterator[str]:
    """The rows in a line each, for the terminal."""
    for row in rows:
        ratio = "" if row.ratio is None else f" {row.ratio:.4f} ({row.ratio_low:.4f} to {row.ratio_high:.4f})"
        what = f" {row.rank}. {row.configuration}" if row.rank else ""
        yield f"{row.search}:{what} {row.verdict}{ratio}" + (f": {row.note}" if row.note else "")


def _row(plan: Plan, record: SearchRecord, winner: Winner | None, otherwise: str) -> SearchesRow:
    counts = record.counts
    return SearchesRow(
        search=record.name,
        question=plan.searches[record.name].question,
        base=record.base,
        problem=record.problem,
        device=record.device,
        rank=winner.rank if winner else None,
        configuration=winner.configuration if winner else "",
        verdict=winner.verdict if winner else "not_measured",
        ratio=winner.ratio if winner else None,
        ratio_low=winner.ratio_low if winner else None,
        ratio_high=winner.ratio_high if winner else None,
        search_ratio=winner.search_ratio if winner else None,
        points=counts.points,
        built=counts.built,
        raced=counts.raced,
        note=winner.note if winner else otherwise,
        settings=settings_text(winner.settings) if winner else "",
    )


def _cell(value: object) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
