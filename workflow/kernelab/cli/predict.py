"""`python -m kernelab predict`: which configurations should be fast, from their machine code alone."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from kernelab.cli.plan_options import add_plan_options, read_plan, read_resolver
from kernelab.cli.progress import Progress, terminal
from kernelab.errors import UserError
from kernelab.plan.arms import Plan
from kernelab.plan.model import suggestion
from kernelab.records.layout import RESULTS, Layout

if TYPE_CHECKING:
    from kernelab.build.cards import Card
    from kernelab.predict.order import Candidate, Ordered


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `predict`."""
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="kernels (at their defaults), experiments (their arms) or searches (their points); by default every experiment",
    )
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the table here, or to - as CSV")
    parser.add_argument(
        "--card", metavar="NAME", help="predict for this card; its architecture must be the builds'"
    )
    parser.add_argument("--top", type=int, metavar="N", help="show the N fastest")
    add_plan_options(parser)


def run(arguments: argparse.Namespace) -> None:
    """Compile, simulate, and print the fastest first.

    Raises:
        UserError: a name that nothing has, a card that no table knows, a missing file or tool.
    """
    from kernelab.predict.order import order

    plan = read_plan(arguments)
    candidates = list(_candidates(plan, arguments))
    if not candidates:
        raise UserError("predict: nothing to predict: no arm of these names has a source")
    cards = {arch: _card(plan, arguments, arch) for arch in {one.build.arch for one in candidates}}
    with Progress("predict", terminal(), say=lambda line: None) as say:
        found = order(candidates, plan, cards, Layout(RESULTS, plan.device.id), say=say)
    found = found[: arguments.top] if arguments.top else found
    if arguments.csv:
        _write(found, arguments.csv)
    else:
        _show(found)


def _candidates(plan: Plan, arguments: argparse.Namespace) -> Iterator[Candidate]:
    seen: set[str] = set()
    for candidate in _named(plan, arguments):
        if candidate.arm.name not in seen:
            seen.add(candidate.arm.name)
            yield candidate


def _named(plan: Plan, arguments: argparse.Namespace) -> Iterator[Candidate]:
    from kernelab.plan.space import Space
    from kernelab.predict.order import Candidate

    kernels = {name for operation in plan.operations.values() for name in operation.kernels}
    for name in arguments.names or plan.experiments:
        if name in plan.experiments:
            for arm in (plan.arms[arm] for arm in plan.experiments[name].arms):
                if arm.build and not arm.excluded:
                    yield Candidate(arm.name, plan.builds[arm.build], arm)
        elif name in plan.searches:
            for point in Space.of(plan, name).points():
                if point.build is not None and point.arm is not None:
                    yield Candidate(point.name, point.build, point.arm)
        elif name in kernels:
            resolver, _ = read_resolver(arguments)
            operation = resolver.owner[name]
            arm = resolver.arm(resolver.base_settings(name, resolver.default_problem(operation)))
            if not arm.build or arm.excluded:
                raise UserError(
                    f"{name}: {arm.excluded or 'is a library function; there is no code to look at'}"
                )
            yield Candidate(arm.name, resolver.builds[arm.build], arm)
        else:
            known = [*plan.experiments, *plan.searches, *kernels]
            raise UserError(f"{name}: no kernel, experiment or search{suggestion(name, known)}")


def _card(plan: Plan, arguments: argparse.Namespace, arch: str) -> Card:
    from kernelab.build.cards import find_card
    from kernelab.compare.static import target_card

    if arguments.card:
        card = find_card(arguments.card)
        if card is None:
            raise UserError(f"--card {arguments.card}: in no table of cards; use the driver's name for it")
        if card.arch != arch.rstrip("af"):  # sm_90a runs on an sm_90
            raise UserError(
                f"--card {arguments.card}: is {card.arch}, and the builds are for {arch}; add "
                f'--override \'{{"arch": "{card.arch}"}}\''
            )
        return card
    card = target_card(plan, arch)
    if card is None:
        raise UserError(f"{arch}: no card stands for this architecture; name one with --card")
    return card


def _rows(found: list[Ordered]) -> Iterator[dict[str, str]]:
    from kernelab.predict.model import PARTS

    for number, one in enumerate(found, 1):
        made = one.prediction
        row = {"rank": str(number) if made else "", "configuration": one.name}
        row["predicted_ms"] = f"{made.ms:.4g}" if made else ""
        row["bound"] = made.bound if made else ""
        row |= {f"{name}_ms": f"{made.parts[name]:.3g}" if made else "" for name in PARTS}
        yield row | {"note": one.note}


def _write(found: list[Ordered], out: Path) -> None:
    from io import StringIO

    from kernelab.records.record import write_text

    text = StringIO()
    rows = list(_rows(found))
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    if out == Path("-"):
        sys.stdout.write(text.getvalue())
        return
    write_text(out, text.getvalue())
    print(f"{out}: {len(rows)} configurations, the fastest first")


def _show(found: list[Ordered]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, title_justify="left")
    rows = list(_rows(found))
    # A part that nothing spends time on is left out for readers, not for programs.
    shown = [
        name
        for name in rows[0]
        if name in ("rank", "configuration", "predicted_ms", "bound", "note")
        or any(float(row[name] or 0) > 0.0 for row in rows)
    ]
    if not any(row["note"] for row in rows):
        shown.remove("note")
    for name in shown:
        right = name == "rank" or name.endswith("_ms")
        table.add_column(name.removesuffix("_ms"), justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(row[name] for name in shown))
    Console(width=None if sys.stdout.isatty() else 200).print(table)
    print("in ms, from a model: good for an order, not for a result (docs/predict.md)")
