"""Rows of the results as the page's tables: which columns, in which order, and how their cells are written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from kernelab.records.compare import CompareRecord
from kernelab.report.answers import effect, interval, percent
from kernelab.report.reader import Results, Row
from kernelab.report.rungs import Rung, number
from kernelab.table.columns import COLUMNS

Kind = Literal["text", "word", "note", "name", "number", "verdict", "link"]
ABOUT = {
    column.name: f"{column.about} ({column.unit})" if column.unit else column.about for column in COLUMNS
}


@dataclass(frozen=True)
class Heading:
    """A column of a table on the page."""

    title: str
    kind: Kind
    about: str = ""


@dataclass(frozen=True)
class Cell:
    """What a cell shows, and what it is sorted by."""

    text: str
    value: str


@dataclass(frozen=True)
class GridRow:
    """A row: cells with their columns, and the kind that the filter goes by."""

    cells: list[tuple[Heading, Cell]]
    kind: str = ""


@dataclass(frozen=True)
class Filter:
    """A choice of kinds above a table."""

    label: str
    kinds: list[str]


@dataclass(frozen=True)
class Grid:
    """A table of the page."""

    columns: list[Heading]
    rows: list[GridRow]
    filter: Filter | None = None
    counts: list[tuple[str, int]] = field(default_factory=list)


def cell(text: str, value: str | None = None) -> Cell:
    return Cell(text, text if value is None else value)


def figure(row: Row, column: str, digits: int = 4) -> Cell:
    """A number of a table with a few digits; it is sorted by all of them."""
    value = number(row, column)
    return cell("") if value is None else Cell(written(value, digits), row[column])


def written(value: float, digits: int = 4) -> str:
    """A number as text: no exponent below a million, thousands apart."""
    if value == int(value) and abs(value) < 1e12:
        return f"{int(value):,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
    return f"{value:.{digits}g}" if 1e-4 <= abs(value) < 1e6 else f"{value:.3e}"


def grid(columns: list[Heading], rows: Iterable[tuple[Sequence[Cell], str]], filter_label: str = "") -> Grid:
    """A table; with a label, its filter offers the kinds that its rows have."""
    made = [GridRow(list(zip(columns, cells, strict=True)), kind) for cells, kind in rows]
    counts = Counter(row.kind for row in made if row.kind).most_common()
    return Grid(
        columns, made, Filter(filter_label, [kind for kind, _ in counts]) if filter_label else None, counts
    )


def comparisons_grid(results: Results) -> Grid:
    """Every comparison."""
    columns = [
        Heading("experiment", "link"),
        Heading("change", "text"),
        Heading("verdict", "verdict"),
        Heading("time", "number", "change of time, arm against base"),
        Heading("95% from", "number"),
        Heading("to", "number"),
        Heading("cycles", "number", "change of SM cycles"),
        Heading("base", "name"),
        Heading("arm", "name"),
        Heading("note", "note"),
    ]
    rows = []
    for row in results.comparisons:
        levels = f"{row['base_level'] or 'none'} to {row['level'] or 'none'}"
        cells = [
            cell(row["experiment"]),
            cell(levels if row["variable"] == "kernel" else f"{row['variable']}: {levels}"),
            cell(row["verdict"]),
            *(_share(row, column) for column in ("ratio", "ratio_low", "ratio_high", "cycles_ratio")),
            cell(row["base_arm"]),
            cell(row["arm"]),
            cell(row["note"]),
        ]
        rows.append((cells, row["verdict"]))
    return grid(columns, rows, "Verdict")


def _share(row: Row, column: str) -> Cell:
    ratio = number(row, column)
    return cell("") if ratio is None else Cell(percent(ratio - 1.0), row[column])


def claims_grid(results: Results) -> Grid | None:
    """The scoreboard of claims; None where none is made."""
    if not results.claims:
        return None
    columns = [
        Heading("claim", "word"),
        Heading("says", "text"),
        Heading("status", "verdict"),
        Heading("claimed", "number"),
        Heading("measured", "number"),
        Heading("95% interval", "number"),
        Heading("of", "word"),
        Heading("experiment", "link"),
        Heading("claimed on", "text"),
        Heading("why", "note"),
    ]
    rows = []
    for row in results.claims:
        ends = f"{row['measured_low']} to {row['measured_high']}" if row["measured_low"] else ""
        cells = [
            cell(row["claim"]),
            cell(row["text"]),
            cell(row["status"]),
            cell(row["claimed"]),
            cell(row["measured"]),
            Cell(ends, row["measured_low"]),
            cell(row["claimed_metric"]),
            cell(row["experiment"]),
            cell(f"{row['claimed_on']} ({row['source']})"),
            cell(row.get("note", "")),
        ]
        rows.append((cells, row["status"]))
    return grid(columns, rows, "Status")


ARM_COLUMNS = (
    "time_ms", "tflops", "pct_of_cublas", "pct_of_peak", "registers", "spill_bytes", "shared_bytes", "threads", "occupancy_pct",
    "hot_loop_instructions", "ffma_share_pct", "bound_pct_of_peak", "lds_128", "lds_64", "lds_32", "ldsm", "emu_sectors_per_load",
    "emu_wavefronts_per_load", "emu_wavefronts_per_store", "ncu_fma_pipe_pct", "ncu_issue_active_pct",
    "ncu_warp_cycles_per_issue",
)  # fmt: skip


def arms_grid(results: Results) -> Grid:
    """Every arm once, with the columns that any arm has."""
    arms = list({row["arm"]: row for row in results.table}.values())
    used = [name for name in ARM_COLUMNS if any(row.get(name) for row in arms)]
    columns = [
        Heading("arm", "name"),
        Heading("status", "verdict"),
        Heading("correct", "word"),
        *(Heading(name, "number", ABOUT.get(name, "")) for name in used),
    ]
    rows = [
        (
            [
                cell(row["arm"]),
                cell(row["status"]),
                cell(row["correct"]),
                *(figure(row, name) for name in used),
            ],
            row["status"],
        )
        for row in arms
    ]
    return grid(columns, rows, "Status")


def rungs_grid(rungs: Sequence[Rung], sources: Sequence[str]) -> Grid:
    """The ladder as a table, with the published figures."""
    wanted = (
        ("time_ms", "time, ms"), ("tflops", "TFLOP/s"), ("pct_of_cublas", "% of library"), ("pct_of_peak", "% of peak"),
        ("registers", "registers"), ("occupancy_pct", "occupancy, %"), ("ffma_share_pct", "FFMA in hot loop, %"),
        ("bound_pct_of_peak", "bound, % of peak"), ("emu_sectors_per_load", "sectors a load"),
        ("emu_wavefronts_per_load", "passes a shared load"), ("emu_wavefronts_per_store", "passes a shared store"),
        ("ncu_warp_cycles_per_issue", "warp cycles an issue"),
    )  # fmt: skip
    used = [(name, title) for name, title in wanted if any(rung.row.get(name) for rung in rungs)]
    columns = [
        Heading("rung", "name"),
        Heading("idea", "text"),
        Heading("status", "verdict"),
        *(Heading(title, "number", ABOUT.get(name, "")) for name, title in used),
        *(Heading(f"{source}: % of library", "number") for source in sources),
    ]
    rows = []
    for rung in rungs:
        published = [rung.published.get(source) for source in sources]
        cells = [
            cell(rung.kernel),
            cell(rung.idea),
            cell(rung.row["status"]),
            *(figure(rung.row, name) for name, _ in used),
            *(cell("") if share is None else cell(f"{share:g}") for share in published),
        ]
        rows.append((cells, ""))
    return grid(columns, rows)


def effects_grid(record: CompareRecord) -> Grid | None:
    """Main effects and interactions of a factorial; None where there are none."""
    if not record.effects:
        return None
    columns = [
        Heading("effect", "text"),
        Heading("kernel", "name"),
        Heading("problem", "name"),
        Heading("time", "number"),
        Heading("95% interval", "number"),
        Heading("p", "number"),
    ]
    rows = []
    for found in record.effects:
        what = " \N{MULTIPLICATION SIGN} ".join(
            f"{name}={level}" for name, level in zip(found.variables, found.levels, strict=True)
        )
        cells = [
            cell(what),
            cell(found.kernel),
            cell(found.problem),
            Cell(effect(found.ratio), str(found.ratio.value)),
            Cell(interval(found.ratio), str(found.ratio.low)),
            cell(f"{found.p_value:.2g}"),
        ]
        rows.append((cells, ""))
    return grid(columns, rows)
