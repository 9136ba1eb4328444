"""The steps of the pipeline as subcommands: read the plan, call one room, write the records.

Each imports its room when it runs, so that a step pays for nothing that it does not use.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from kernelab.cli.plan_options import read_plan
from kernelab.device.identify import slug
from kernelab.digests import ABSENT, Digests
from kernelab.errors import UserError
from kernelab.plan.model import suggestion
from kernelab.records.layout import RESULTS, Layout
from kernelab.records.record import write_text


def plan(arguments: argparse.Namespace) -> None:
    """Make the plan; without --out and --csv, print plan.csv."""
    from kernelab.plan.tabular import plan_csv

    made = read_plan(arguments)
    if arguments.out:
        write_text(arguments.out, made.model_dump_json(indent=1) + "\n")
    if arguments.csv:
        write_text(arguments.csv, plan_csv(made))
    if not arguments.out and not arguments.csv:
        sys.stdout.write(plan_csv(made))


def toolchain(arguments: argparse.Namespace) -> None:
    """Describe every toolchain that the plan uses; one that is absent is said to be."""
    from kernelab.build.toolchain import describe, find_toolchain

    made = read_plan(arguments)
    described = {}
    for name, fingerprint in Digests(made, Path()).toolchains.items():
        described[name] = {"status": ABSENT} if fingerprint == ABSENT else describe(find_toolchain(name))
    text = json.dumps(described, indent=1, sort_keys=True) + "\n"
    if arguments.out:
        write_text(arguments.out, text)
    else:
        sys.stdout.write(text)


def build(arguments: argparse.Namespace) -> None:
    """Compile one build and write its four files."""
    from kernelab.build.step import build_planned

    made = read_plan(arguments)
    key = f"{arguments.kernel}/{arguments.variant}"
    build_planned(made, key, Layout(RESULTS, made.device.id), Digests(made, Path()))


def check(arguments: argparse.Namespace) -> None:
    """Check one build, or a library function, on a problem or on the operation's small ones."""
    from kernelab.check.step import check_planned

    made = read_plan(arguments)
    key = f"{arguments.kernel}/{arguments.variant}"
    device = arguments.device or made.device.id
    layout, digests = Layout(RESULTS, made.device.id), Digests(made, Path())
    record = check_planned(made, key, arguments.problem, device, layout, digests)
    print(f"{key}: {record.status}" + (f": {record.note}" if record.note else ""))


def time(arguments: argparse.Namespace) -> None:
    """Time one experiment."""
    from kernelab.cli.progress import Progress, terminal
    from kernelab.timing.step import time_planned

    made = read_plan(arguments)
    name = arguments.experiment
    if name not in made.experiments:
        raise UserError(f"{name}: no experiment of the plan{suggestion(name, list(made.experiments))}")
    layout, digests = Layout(RESULTS, made.device.id), Digests(made, Path())
    with Progress(name, terminal()) as say:
        time_planned(made, name, layout, digests, say=say)


def profile(arguments: argparse.Namespace) -> None:
    """Profile one build, or a library function, on one problem."""
    from kernelab.profile.arm import ProfileStep, profile_arm
    from kernelab.timing.gate import Gate

    made = read_plan(arguments)
    key, problem = f"{arguments.kernel}/{arguments.variant}", arguments.problem
    arm = next(
        (a for a in made.arms.values() if a.record_key == key and a.problem == problem and a.runs), None
    )
    if arm is None:
        raise UserError(f"{key} at {problem}: no arm of the plan; see the column arm of results/plan.csv")
    layout, digests = Layout(RESULTS, made.device.id), Digests(made, Path())
    gate = Gate(made, layout, digests)
    step = ProfileStep(
        plan=made,
        arm=arm,
        built=gate.built([arm]).get(arm.build),
        root=Path(),
        report=layout.profile_report(key, problem),
        record=layout.profile(key, problem),
        digest=digests.profile(arm),
        refused=gate.refused([arm]).get(arm.name),
    )
    profile_arm(step, say=print)


def table(arguments: argparse.Namespace) -> None:
    """Collect every record into table.csv, and say what is in it."""
    from kernelab.table.rows import TableReader
    from kernelab.table.summary import summarise
    from kernelab.table.write import table_csv

    made = read_plan(arguments)
    layout = Layout(RESULTS, made.device.id)
    rows = TableReader(made, layout, Digests(made, Path())).rows()
    out = arguments.out or layout.table
    write_text(out, table_csv(rows))
    for line in [
        f"{out}: {line}" if index == 0 else line for index, line in enumerate(summarise(made, rows))
    ]:
        print(line)


def snapshot(arguments: argparse.Namespace) -> None:
    """Copy the tables and records of this device below results/snapshots/."""
    from kernelab.records.snapshot import take_snapshot

    made = read_plan(arguments)
    out = arguments.out or RESULTS / "snapshots" / slug(made.device.name)
    copied = take_snapshot(made, Layout(RESULTS, made.device.id), out)
    print(f"{out}: {len(copied)} files, {sum(path.stat().st_size for path in copied) / 1e6:.1f} MB")


def doctor(arguments: argparse.Namespace) -> int:
    """Say what this machine can do."""
    from kernelab.cli.doctor import doctor as examine

    return examine(Path(), arguments.format)


def schema(arguments: argparse.Namespace) -> None:
    """Write the JSON schemas."""
    from kernelab.plan.schema import write_schemas

    for path in write_schemas(arguments.folder):
        print(path)
