"""Looking at the tables on a terminal: `table`, `comparisons`, `claims`, `searches` and `plan` without --out.

Each is filtered, sorted and cut to columns, and printed as a table for people, or as csv, json or markdown. Colours are
for terminals alone, and NO_COLOR turns them off.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from kernelab.cli import compare_tools, steps
from kernelab.cli import search as search_command
from kernelab.cli.plan_options import read_plan
from kernelab.errors import UserError
from kernelab.plan.model import suggestion
from kernelab.records.layout import RESULTS, Layout

Row = dict[str, str]
FORMATS = ("table", "csv", "json", "markdown")

# What a terminal has room for; --columns names others, and the other formats show all.
SHORT = {
    "table": (
        "experiment",
        "arm",
        "status",
        "correct",
        "time_ms",
        "tflops",
        "pct_of_cublas",
        "registers",
        "occupancy_pct",
        "ffma_share_pct",
    ),
    "comparisons": (
        "experiment",
        "base_arm",
        "arm",
        "variable",
        "verdict",
        "ratio",
        "ratio_low",
        "ratio_high",
    ),
    "claims": ("claim", "text", "status", "claimed_metric", "claimed", "measured", "experiment"),
    "searches": (
        "search",
        "rank",
        "configuration",
        "verdict",
        "ratio",
        "ratio_low",
        "ratio_high",
        "search_ratio",
    ),
    "search": (
        "rank",
        "configuration",
        "status",
        "ratio",
        "ratio_low",
        "ratio_high",
        "time_ms",
        "registers",
        "spill_bytes",
        "shared_bytes",
    ),
    "plan": ("experiment", "row", "arm", "base_arm", "variable", "base_level", "level", "note"),
}
_FILTER = re.compile(r"^(?P<column>\w+)\s*(?P<operator>!=|<=|>=|=|~|<|>)\s*(?P<value>.*)$")
STYLES = {
    **dict.fromkeys(("faster", "holds"), "cyan"),
    **dict.fromkeys(("slower", "reversed"), "red"),
    **dict.fromkeys(("inconclusive", "unstable", "weaker", "stronger"), "yellow"),
    **dict.fromkeys(("confounded", "refused"), "bold magenta"),
    **dict.fromkeys(
        ("compile_error", "memory_fault", "hazard", "wrong_result", "launch_error", "timeout", "impossible"),
        "bold red",
    ),
    "not_measured": "dim",
}
_MARKED = ("verdict", "status")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of a view."""
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="FILTER",
        help="rows to show: column=value, !=, ~ (contains), <, <=, >, >=; may be given several times",
    )
    parser.add_argument("--columns", metavar="A,B", help="columns to show, in order; 'all' for every one")
    parser.add_argument("--sort", metavar="COLUMN", help="sort by a column; -COLUMN for the largest first")
    parser.add_argument("--format", choices=FORMATS, default="table")
    parser.add_argument(
        "--results",
        type=Path,
        default=RESULTS,
        metavar="FOLDER",
        help="results folder or snapshot (default: results)",
    )


def run_table(arguments: argparse.Namespace) -> None:
    """With --out, the step; else a look at table.csv."""
    if arguments.out:
        steps.table(arguments)
    else:
        show("table", read_csv(arguments.results / "table.csv"), arguments)


def run_comparisons(arguments: argparse.Namespace) -> None:
    """With --out, the step; else a look at comparisons.csv."""
    if arguments.out:
        compare_tools.comparisons(arguments)
    else:
        show("comparisons", read_csv(arguments.results / "comparisons.csv"), arguments)


def run_claims(arguments: argparse.Namespace) -> None:
    """With --out, the step; else a look at claims.csv."""
    if arguments.out:
        compare_tools.claims(arguments)
    else:
        show("claims", read_csv(arguments.results / "claims.csv"), arguments)


def run_plan(arguments: argparse.Namespace) -> None:
    """With --out or --csv, the step; else a look at the plan that config.yaml makes now."""
    if arguments.out or arguments.csv:
        steps.plan(arguments)
        return
    from kernelab.plan.tabular import plan_csv

    show("plan", list(csv.DictReader(io.StringIO(plan_csv(read_plan(arguments))))), arguments)


def run_searches(arguments: argparse.Namespace) -> None:
    """With --out, the step; else a look at searches.csv or, with a name, at every configuration of that search."""
    if arguments.out:
        search_command.searches(arguments)
    elif arguments.name:
        here = Layout(arguments.results, read_plan(arguments).device.id).search(arguments.name)
        # A snapshot holds another machine's card.
        elsewhere = sorted(arguments.results.glob(f"*/search/{arguments.name}.csv"))
        path = elsewhere[0] if len(elsewhere) == 1 else here
        show("search", read_csv(path), arguments)
    else:
        show("searches", read_csv(arguments.results / "searches.csv"), arguments)


def read_csv(path: Path) -> list[Row]:
    """The rows of a CSV.

    Raises:
        UserError: it is not there.
    """
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            return list(csv.DictReader(stream))
    except FileNotFoundError:
        raise UserError(
            f"{path}: not made yet; run snakemake {path}, or name a snapshot with --results"
        ) from None


def show(view: str, rows: Sequence[Row], arguments: argparse.Namespace, stream: TextIO | None = None) -> None:
    """Filter, sort and print rows.

    Raises:
        UserError: a filter or a column that the table does not have.
    """
    stream = stream or sys.stdout
    known = list(rows[0]) if rows else list(SHORT[view])
    chosen = list(rows)
    for text in arguments.where:
        keep = _filter(text, known)
        chosen = [row for row in chosen if keep(row)]
    if arguments.sort:
        column = arguments.sort.removeprefix("-")
        _check(column, known, "--sort")
        # Empty cells come last, whichever way.
        filled = sorted(
            (row for row in chosen if row[column]),
            key=lambda row: _key(row[column]),
            reverse=arguments.sort.startswith("-"),
        )
        chosen = filled + [row for row in chosen if not row[column]]
    columns = _columns(view, arguments, known)
    printers: dict[str, Callable[[list[str], list[Row], TextIO], None]] = {
        "csv": _print_csv,
        "json": _print_json,
        "markdown": _print_markdown,
        "table": _print_table,
    }
    printers[arguments.format](columns, chosen, stream)
    if arguments.format == "table" and len(chosen) != len(rows):
        print(f"{len(chosen)} of {len(rows)} rows", file=stream)


def _columns(view: str, arguments: argparse.Namespace, known: list[str]) -> list[str]:
    if arguments.columns == "all" or (arguments.columns is None and arguments.format != "table"):
        return known
    if arguments.columns is None:
        return [name for name in SHORT[view] if name in known]
    named = [name.strip() for name in arguments.columns.split(",") if name.strip()]
    for name in named:
        _check(name, known, "--columns")
    return named


def _check(column: str, known: list[str], option: str) -> None:
    if column not in known:
        raise UserError(f"{option} {column}: no such column{suggestion(column, known)}")


def _filter(text: str, known: list[str]) -> Callable[[Row], bool]:
    found = _FILTER.match(text)
    if not found:
        raise UserError(f"--where {text}: not a filter; write verdict=faster, arm~final or 'ratio<0.98'")
    column, operator, value = found["column"], found["operator"], found["value"].strip()
    _check(column, known, "--where")
    if operator == "~":
        return lambda row: value.lower() in row[column].lower()
    if operator in ("=", "!="):
        return lambda row: (row[column] == value) == (operator == "=")
    try:
        limit = float(value)
    except ValueError:
        raise UserError(f"--where {text}: {operator} compares numbers, and {value!r} is none") from None
    holds: dict[str, Callable[[float], bool]] = {
        "<": lambda number: number < limit,
        "<=": lambda number: number <= limit,
        ">": lambda number: number > limit,
        ">=": lambda number: number >= limit,
    }

    def keep(row: Row) -> bool:
        kind, number, _ = _key(row[column])
        return kind == 0 and holds[operator](number)

    return keep


def _key(text: str) -> tuple[int, float, str]:
    """Numbers by value, before words."""
    try:
        return 0, float(text), ""
    except ValueError:
        return 1, 0.0, text


def _print_csv(columns: list[str], rows: list[Row], stream: TextIO) -> None:
    writer = csv.DictWriter(stream, columns, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)


def _print_json(columns: list[str], rows: list[Row], stream: TextIO) -> None:
    """Numbers are numbers, empty cells null."""

    def value(text: str) -> str | float | None:
        kind, number, word = _key(text)
        return (
            (None if text == "" else word)
            if kind
            else int(number)
            if re.fullmatch(r"-?\d+", text)
            else number
        )

    json.dump(
        [{name: value(row[name]) for name in columns} for row in rows],
        stream,
        indent=1,
        ensure_ascii=False,
        allow_nan=False,
    )
    stream.write("\n")


def _print_markdown(columns: list[str], rows: list[Row], stream: TextIO) -> None:
    def line(cells: Sequence[str]) -> str:
        return (
            "| "
            + " | ".join(cell.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ") for cell in cells)
            + " |\n"
        )

    stream.write(line(columns))
    stream.write("|" + "---|" * len(columns) + "\n")
    for row in rows:
        stream.write(line([row[name] for name in columns]))


def _print_table(columns: list[str], rows: list[Row], stream: TextIO) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=stream, highlight=False, soft_wrap=False)
    if not console.is_terminal:
        # A pipe has no width: lines are as long as they are, one row each, and `grep` finds all of it.
        widths = [max([len(name), *(len(row[name]) for row in rows)]) for name in columns]
        for cells in (columns, *([row[name] for name in columns] for row in rows)):
            print(
                "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip(),
                file=stream,
            )
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        numeric = any(row[name] for row in rows) and all(
            not row[name] or _key(row[name])[0] == 0 for row in rows
        )
        table.add_column(name, justify="right" if numeric else "left", no_wrap=numeric, overflow="fold")
    for row in rows:
        table.add_row(
            *(Text(row[name], style=STYLES.get(row[name], "") if name in _MARKED else "") for name in columns)
        )
    console.print(table)
