"""The subcommands of comparing: the steps that Snakemake runs, and the tools that people call."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kernelab.cli import ask as ask_command
from kernelab.cli.plan_options import add_plan_options, read_plan
from kernelab.digests import Digests
from kernelab.errors import UserError
from kernelab.plan.arms import Plan
from kernelab.records.compare import CompareRecord
from kernelab.records.layout import RESULTS, Layout
from kernelab.records.record import StaleRecord, read_record, write_record, write_text

ALL_AGREE, DIFFERS, REFUSED = 0, 3, 4
"""Exit status of `diff`, `stale`, `verify`: as hoped; some flip, fade, are stale or did not pass; refused, or not honest."""


def compare(arguments: argparse.Namespace) -> None:
    """Judge one experiment and write its record."""
    from kernelab.compare.describe import describe
    from kernelab.compare.step import compare_experiment

    plan = read_plan(arguments)
    name = arguments.experiment
    if name not in plan.experiments:
        raise UserError(f"{name}: no experiment of the plan (known: {', '.join(plan.experiments)})")
    layout, digests = Layout(RESULTS, plan.device.id), Digests(plan, Path())
    record = compare_experiment(
        plan, name, layout, digest=digests.compare(name), digests=digests, root=Path()
    )
    write_record(layout.compare(name), record)
    for line in describe(record):
        print(line)


def comparisons(arguments: argparse.Namespace) -> None:
    """Write comparisons.csv; a verdict whose premise has expired is shown as stale."""
    from kernelab.compare.staleness import expired
    from kernelab.compare.tabulate import comparisons_csv

    plan = read_plan(arguments)
    layout, digests = Layout(RESULTS, plan.device.id), Digests(plan, Path())
    records = _records(plan, layout, digests)
    stale = {(e.experiment, e.base, e.arm): e.why for e in expired(plan, layout, digests, records, Path())}
    write_text(arguments.out or layout.comparisons, comparisons_csv(records, stale))


def claims(arguments: argparse.Namespace) -> None:
    """Write claims.csv."""
    from kernelab.compare.claimed import claim_row
    from kernelab.compare.tabulate import claims_csv
    from kernelab.statistics.policy import VerdictPolicy

    plan = read_plan(arguments)
    layout = Layout(RESULTS, plan.device.id)
    records = {record.experiment: record for record in _records(plan, layout, Digests(plan, Path()))}
    policy = VerdictPolicy.of_timing(plan.timing)
    rows = [
        claim_row(name, claim, records.get(claim.experiment), policy) for name, claim in plan.claims.items()
    ]
    write_text(arguments.out or layout.claims, claims_csv(rows))


def stale(arguments: argparse.Namespace) -> int:
    """List the verdicts whose premise has expired, of every device below results/."""
    from kernelab.compare.staleness import expired

    plan = read_plan(arguments)
    layout = Layout(arguments.results, plan.device.id)
    paths = sorted(arguments.results.glob("*/compare/*.json"))
    records = []
    for path in paths:
        try:
            record = read_record(path, CompareRecord)
        except StaleRecord as error:
            print(error)
            continue
        if record.experiment in plan.experiments:
            records.append(record)
        else:
            print(f"{path}: {record.experiment} is no experiment of config.yaml (any more); passed over")
    found = expired(plan, layout, Digests(plan, Path()), records, Path())
    for item in found:
        print(f"{item.device} {item.experiment}: {item.base} -> {item.arm} was {item.verdict}: {item.why}")
    total = sum(len(record.comparisons) for record in records)
    print(f"{len(found)} of {total} verdicts are stale" + ("; run snakemake to renew them" if found else ""))
    return DIFFERS if found else ALL_AGREE


def diff(arguments: argparse.Namespace) -> int:
    """Set the verdicts of two results folders side by side."""
    from kernelab.compare.agreement import Answer
    from kernelab.compare.boxes import OtherMethod, read_compared, side_by_side
    from kernelab.statistics.policy import VerdictPolicy

    first, second = read_compared(arguments.first), read_compared(arguments.second)
    try:
        found = side_by_side(first, second, VerdictPolicy())
    except OtherMethod as error:
        print(f"refused: {error}")
        return REFUSED
    for line in found.conditions:
        print(f"differs: {line}")
    for row in found.rows:
        if row.answer is Answer.AGREE and not arguments.all:
            continue
        ratios = " and ".join(
            f"{p.ratio.value:.4f}" if p.ratio else p.verdict for p in (row.first, row.second)
        )
        print(f"{row.answer}: {row.experiment}: {row.base} -> {row.arm}: {row.reason} ({ratios})")
    for folder, names in ((arguments.first, found.only_first), (arguments.second, found.only_second)):
        for name in names:
            print(f"only in {folder}: {name}")
    counts = ", ".join(f"{found.count(answer)} {answer}" for answer in Answer)
    print(f"{len(found.rows)} comparisons: {counts}")
    return DIFFERS if found.count(Answer.FLIP) + found.count(Answer.FADE) else ALL_AGREE


def verify(arguments: argparse.Namespace) -> int:
    """Derive a verdict anew from the raw samples, and hold a certificate against it."""
    from kernelab.compare.certificate import PASSED, parse_certificate
    from kernelab.compare.step import compare_experiment

    line = parse_certificate(arguments.line)
    plan = _recorded_plan(arguments.results / "plan.json")
    asked = arguments.results / "ask" / f"{line.experiment}.json"
    if line.experiment not in plan.experiments and asked.is_file():
        plan = _recorded_plan(asked)
    if plan.device.id != line.device:
        raise UserError(
            f"{arguments.results}: these are results of {plan.device.id}; the line is about {line.device}"
        )
    if line.experiment not in plan.experiments:
        raise UserError(f"{arguments.results}: no experiment {line.experiment} in their plan")
    layout = Layout(arguments.results, line.device)
    record = compare_experiment(plan, line.experiment, layout, digest="", digests=None, root=None)
    pair = record.pair(line.base, line.arm)
    if pair is None:
        raise UserError(
            f"{arguments.results}: {line.experiment} does not compare {line.base} with {line.arm}"
        )
    false = line.contradictions(parse_certificate(pair.certificate))
    for phrase in false:
        print(f"not honest: {phrase}")
    if false:
        return REFUSED
    passed = pair.verdict in PASSED
    print(
        f"honest: the records give this very line; {'passed' if passed else 'not passed'}: {pair.verdict}: {pair.reason}"
    )
    return ALL_AGREE if passed else DIFFERS


def _recorded_plan(path: Path) -> Plan:
    """The plan that results were made by."""
    try:
        return Plan.model_validate_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; name a results folder or a snapshot of one") from None
    except ValueError as error:
        raise UserError(f"{path}: not a plan of this kernelab ({str(error).splitlines()[0]})") from None


def _records(plan: Plan, layout: Layout, digests: Digests) -> list[CompareRecord]:
    """The record of every experiment of the plan, which must be the plan's."""
    return [
        read_record(layout.compare(name), CompareRecord, digests.compare(name)) for name in plan.experiments
    ]


def _compare_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment")
    add_plan_options(parser)


def _table_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the table here")
    add_plan_options(parser)


def _stale_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--results", type=Path, default=RESULTS, metavar="FOLDER", help="results folder (default: results)"
    )
    add_plan_options(parser)


def _diff_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "first", type=Path, metavar="A", help="a results folder, a snapshot, or a device's folder below one"
    )
    parser.add_argument("second", type=Path, metavar="B", help="another")
    parser.add_argument("--all", action="store_true", help="list the comparisons that agree as well")


def _verify_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("line", metavar="LINE", help="the certificate, in quotes")
    parser.add_argument(
        "results", type=Path, metavar="RESULTS", help="the results folder or snapshot that it is about"
    )


@dataclass(frozen=True)
class Command:
    """A subcommand for the parser of cli.main."""

    name: str
    about: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int | None]


COMMANDS = (
    Command("compare", "judge one experiment", _compare_arguments, compare),
    Command("comparisons", "collect every verdict into comparisons.csv", _table_arguments, comparisons),
    Command("claims", "set every claim beside what was measured, in claims.csv", _table_arguments, claims),
    Command(
        "ask",
        "compare two or more levels of one variable, here and now",
        ask_command.add_arguments,
        ask_command.run,
    ),
    Command("stale", "list verdicts whose premise has expired (exit 3 if any)", _stale_arguments, stale),
    Command(
        "diff", "compare two results folders (exit 3: some flip or fade, 4: refused)", _diff_arguments, diff
    ),
    Command("verify", "check a certificate (exit 3: not passed, 4: not honest)", _verify_arguments, verify),
)
