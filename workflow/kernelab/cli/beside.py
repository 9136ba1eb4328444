"""`python -m kernelab beside ARM ARM`: two arms side by side, from the records of a results folder or a snapshot."""

from __future__ import annotations

import argparse

from kernelab.cli.tables import add_arguments as add_view_arguments
from kernelab.cli.tables import show


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `beside`."""
    parser.add_argument("first", metavar="ARM", help="as table.csv names it, or a kernel for its default")
    parser.add_argument("second", metavar="ARM", help="another; ratios are of it over the first")
    parser.add_argument(
        "--experiment", default="", help="whose times to read; by default one that compares the two"
    )
    parser.add_argument(
        "--no-profile",
        dest="profile",
        action="store_false",
        help="leave ncu's counters out, where an arm has none",
    )
    add_view_arguments(parser)


def run(arguments: argparse.Namespace) -> None:
    """Print the figures as a table, and below it what they add up to.

    Raises:
        UserError: an arm that is not there, or one without counters.
    """
    from kernelab.report.beside import beside
    from kernelab.report.reader import read_results

    found = beside(
        read_results(arguments.results),
        arguments.first,
        arguments.second,
        experiment=arguments.experiment,
        profiles=arguments.profile,
    )
    rows = [
        {
            "section": figure.section,
            "figure": figure.name,
            "unit": figure.unit,
            found.first: _text(figure.first),
            found.second: _text(figure.second),
            "ratio": "" if figure.ratio is None else f"{figure.ratio:.4f}",
            "difference": _text(figure.difference),
        }
        for figure in found.figures
        # What neither arm does is left out for readers, not for programs.
        if arguments.format != "table" or figure.first or figure.second
    ]
    arguments.columns = arguments.columns or "all"
    show("beside", rows, arguments)
    if arguments.format == "table":
        for line in found.summary:
            print(line)


def _text(value: float | None) -> str:
    """Counts in full up to 9 digits, everything else with 5 digits; empty where not known."""
    if value is None:
        return ""
    if float(value).is_integer() and abs(value) < 1e9:
        return str(int(value))
    return f"{value:.5g}"
