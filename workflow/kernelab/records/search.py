"""The records of a search: <name>.csv, one row a configuration; <name>.json, how it was made; <name>.confirmed.json."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

from pydantic import BaseModel, ConfigDict

from kernelab.errors import UserError
from kernelab.records.record import Record, write_text

SearchStatus = Literal[
    "finalist",  # raced to the end
    "dropped",  # raced, and out early
    "raced",  # screened, and the budget ended before its fate was decided
    "wrong_result",
    "launch_error",
    "memory_fault",
    "timeout",
    "compile_error",
    "excluded",  # a constraint of the catalogue
    "not_measured",
]
STATUSES: tuple[str, ...] = get_args(SearchStatus)
SIGNIFICANT = 7  # digits: an event time is a float32


@dataclass(frozen=True, slots=True)
class SearchRow:
    """One configuration. None (an empty cell) is not measured, or not known.

    rank           1 is the best; finalists first, then by how far each came; None where it was not raced
    configuration  the variant's name, such as BK=8,TM=16
    note           why, for a status that needs one
    stage, rounds  the last stage of the race that it took part in, and its rounds in all
    time_ms        median time of a launch in that stage
    ratio          time(configuration) / time(base) within rounds; low and high bound its 95% interval over the
                   rounds of that stage: a screening in one process, no verdict
    registers      a thread; spill_bytes a thread (loads and stores), shared_bytes a block (static)
    sass_sha256    of its machine code; empty where it was not disassembled
    settings       the levels of the varied parameters, as JSON text
    """

    rank: int | None
    configuration: str
    status: str
    note: str = ""
    stage: int | None = None
    rounds: int | None = None
    time_ms: float | None = None
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    registers: int | None = None
    spill_bytes: int | None = None
    shared_bytes: int | None = None
    sass_sha256: str = ""
    build_digest: str = ""
    settings: str = "{}"

    @property
    def levels(self) -> dict[str, str]:
        """`settings`, read."""
        return dict(json.loads(self.settings))


COLUMNS = tuple(field.name for field in fields(SearchRow))
_INTEGERS = ("rank", "stage", "rounds", "registers", "spill_bytes", "shared_bytes")
_FLOATS = ("time_ms", "ratio", "ratio_low", "ratio_high")


def settings_text(levels: Mapping[str, str]) -> str:
    """Levels as the text of `SearchRow.settings`."""
    return json.dumps(dict(levels), separators=(",", ":"))


def write_search(path: Path, rows: Iterable[SearchRow]) -> None:
    """Write the rows, ranked ones first and by rank, the others in the order given.

    Raises:
        ValueError: a status that is none of STATUSES.
    """
    ordered = sorted(rows, key=lambda row: math.inf if row.rank is None else row.rank)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in ordered:
        if row.status not in STATUSES:
            raise ValueError(f"{row.configuration}: status {row.status}")
        writer.writerow([_cell(getattr(row, name)) for name in COLUMNS])
    write_text(path, out.getvalue())


def read_search(path: Path) -> list[SearchRow]:
    """Read the rows that `write_search` wrote, in their order.

    Raises:
        UserError: missing or damaged.
    """
    shown = path.as_posix()
    try:
        with path.open(newline="", encoding="utf-8") as stream:
            reader = csv.DictReader(stream, strict=True)
            if tuple(reader.fieldnames or ()) != COLUMNS:
                raise ValueError("other columns than a search's")
            return [_row(cells) for cells in reader]
    except FileNotFoundError:
        raise UserError(f"{shown}: not made yet; run snakemake {shown}") from None
    except (OSError, ValueError, csv.Error) as error:
        raise UserError(f"{shown}: damaged ({error}); delete it and run again") from None


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.{SIGNIFICANT}g}" if math.isfinite(value) else ""
    return "" if value is None else str(value)


def _row(cells: Mapping[str | None, str | None]) -> SearchRow:
    if None in cells or None in cells.values():
        raise ValueError("a row with too many or too few cells")
    row: dict[str, Any] = {str(name): cell for name, cell in cells.items()}
    for name in _INTEGERS:
        row[name] = int(row[name]) if row[name] else None
    for name in _FLOATS:
        row[name] = float(row[name]) if row[name] else None
    if row["status"] not in STATUSES:
        raise ValueError(f"status {row['status']}")
    if not isinstance(json.loads(row["settings"]), dict):
        raise ValueError("settings that are no mapping")
    return SearchRow(**row)


class Part(BaseModel):
    """A frozen part of a record."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class SearchCard(Part):
    """The card that was searched on."""

    name: str
    uuid: str
    driver: str


class SearchCounts(Part):
    """How many configurations there were, and what became of them. `points` counts the excluded ones too."""

    points: int
    excluded: int
    built: int
    failed: int
    raced: int
    finalists: int


class SearchSeconds(Part):
    """Wall-clock seconds. Phases overlap: builds go on while the card checks; `total` is the whole step."""

    build: float
    check: float
    race: float
    total: float


class SearchRecord(Record):
    """<name>.json. `card` is None where there was none; `started` is UTC, ISO 8601."""

    version: ClassVar[int] = 1

    name: str
    device: str
    base: str
    problem: str
    counts: SearchCounts
    seconds: SearchSeconds
    card: SearchCard | None
    started: str


class Winner(Part):
    """One of the best, timed against the base as any experiment times its arms. None: it was not timed."""

    configuration: str
    settings: dict[str, str]
    rank: int
    search_ratio: float
    verdict: str
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    note: str = ""


class ConfirmRecord(Record):
    """<name>.confirmed.json: the winners, by rank."""

    version: ClassVar[int] = 1

    name: str
    device: str
    base: str
    problem: str
    winners: list[Winner]
