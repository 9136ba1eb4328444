"""The subcommands of searching: `search`, `confirm` and `searches`."""

from __future__ import annotations

import argparse
from pathlib import Path

from kernelab.cli.plan_options import add_plan_options, read_plan
from kernelab.cli.progress import Progress, terminal
from kernelab.digests import Digests
from kernelab.errors import UserError
from kernelab.plan.arms import Plan
from kernelab.plan.model import suggestion
from kernelab.records.layout import RESULTS, Layout
from kernelab.records.record import write_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `search` and `confirm`."""
    parser.add_argument("name", help="a search of config.yaml")
    add_plan_options(parser)


def add_table_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `searches`."""
    parser.add_argument("name", nargs="?", help="show every configuration of this search")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write searches.csv here")
    add_plan_options(parser)


def search(arguments: argparse.Namespace) -> None:
    """Build, check and race the configurations of one search."""
    from kernelab.plan.space import Space
    from kernelab.search.step import SearchStep, run_search

    made = _plan(arguments)
    name = arguments.name
    step = SearchStep(
        plan=made,
        name=name,
        space=Space.of(made, name),
        digests=Digests(made, Path()),
        root=Path(),
        layout=Layout(RESULTS, made.device.id),
    )
    with Progress(name, terminal()) as say:
        run_search(step, say)


def confirm(arguments: argparse.Namespace) -> None:
    """Compare the best configurations of a search with its base, as an experiment would."""
    from kernelab.search.confirm import ConfirmStep, confirm_search

    made = _plan(arguments)
    step = ConfirmStep(
        plan=made,
        name=arguments.name,
        load=lambda over: read_plan(arguments, over),
        layout=Layout(RESULTS, made.device.id),
        digests=Digests(made, Path()),
    )
    with Progress(arguments.name, terminal()) as say:
        confirm_search(step, say=say)


def searches(arguments: argparse.Namespace) -> None:
    """Collect what every search found into one table."""
    from kernelab.search.tabulate import describe, searches_csv, searches_rows

    made = read_plan(arguments)
    layout = Layout(RESULTS, made.device.id)
    rows = list(searches_rows(made, layout, Digests(made, Path())))
    write_text(arguments.out, searches_csv(rows))
    print(
        f"{arguments.out}: rows: {len(rows)}, searches: {', '.join(made.searches) or 'none in config.yaml'}"
    )
    for line in describe(rows):
        print(line)


def _plan(arguments: argparse.Namespace) -> Plan:
    """The plan, which has the search that is named."""
    made = read_plan(arguments)
    if arguments.name not in made.searches:
        raise UserError(
            f"{arguments.name}: no search of config.yaml{suggestion(arguments.name, list(made.searches))}"
        )
    return made
