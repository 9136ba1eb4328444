"""Parsing the command line and printing errors. Each subcommand's work is a function of cli.steps or of its own room."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from kernelab import __version__
from kernelab.cli.plan_options import add_plan_options
from kernelab.errors import BrokenMachine, UserError
from kernelab.records.layout import SMALL


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand; returns the exit status. A user's mistake prints one line and gives 1, a broken machine 2."""
    # A step that Snakemake stops should end as on Ctrl-C: children reaped, temporary files gone.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    parsed = _parser().parse_args(arguments)
    try:
        status = parsed.run(parsed)
    except UserError as error:
        for line in str(error).splitlines():
            print(f"kernelab: {line}", file=sys.stderr)
        return 1
    except BrokenMachine as error:
        print(
            f"kernelab: {' '.join(str(error).split())}; see `python -m kernelab doctor`, then run again",
            file=sys.stderr,
        )
        return 2
    except KeyboardInterrupt:
        print("kernelab: interrupted; what was finished is kept", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output left (| head); that is no fault.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return int(status or 0)


def _parser() -> argparse.ArgumentParser:
    from kernelab.cli import beside as beside_command
    from kernelab.cli import emulate as emulate_command
    from kernelab.cli import figure as figure_command
    from kernelab.cli import keep as keep_command
    from kernelab.cli import predict as predict_command
    from kernelab.cli import project as project_command
    from kernelab.cli import search as search_command
    from kernelab.cli import steps
    from kernelab.cli import tables as tables_command

    parser = argparse.ArgumentParser(prog="kernelab", description="Controlled comparison of CUDA kernels.")
    parser.add_argument("--version", action="version", version=f"kernelab {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(
        name: str, run: Callable[[argparse.Namespace], int | None], about: str
    ) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=about, description=about)
        added.set_defaults(run=run)
        return added

    plan = command("plan", tables_command.run_plan, "make the plan from config.yaml and the catalogues")
    plan.add_argument("--out", type=Path, metavar="FILE", help="write plan.json here")
    plan.add_argument(
        "--csv",
        type=Path,
        metavar="FILE",
        help="write plan.csv here (standard output where neither is given)",
    )
    add_plan_options(plan)

    toolchain = command(
        "toolchain", steps.toolchain, "describe the compilers and disassemblers of this machine"
    )
    toolchain.add_argument("--out", type=Path, metavar="FILE", help="write toolchain.json here")
    add_plan_options(toolchain)

    build = command("build", steps.build, "compile one build and read its static facts")
    _name_build(build)
    add_plan_options(build)

    check = command("check", steps.check, "check one build's results")
    _name_build(check)
    check.add_argument(
        "--problem", default=SMALL, help=f"a problem's name, or {SMALL} for the operation's own"
    )
    check.add_argument(
        "--device", default="", help="emulated, on a GPU box too; the plan's device where none is given"
    )
    add_plan_options(check)

    time = command("time", steps.time, "time one experiment")
    time.add_argument("experiment")
    add_plan_options(time)

    profile = command("profile", steps.profile, "profile one build with ncu")
    _name_build(profile)
    profile.add_argument("--problem", required=True)
    add_plan_options(profile)

    search_command.add_arguments(
        command("search", search_command.search, "build, check and race the configurations of one search")
    )
    search_command.add_arguments(
        command("confirm", search_command.confirm, "compare the best of a search with its base")
    )
    searches = command(
        "searches", tables_command.run_searches, "collect what every search found into searches.csv"
    )
    search_command.add_table_arguments(searches)
    tables_command.add_arguments(searches)

    keep = command("keep", keep_command.keep, "write a configuration that a search found into the catalogue")
    search_command.add_arguments(keep)
    keep.add_argument(
        "--rank", type=int, default=1, metavar="N", help="in the search; 1 is the best (default)"
    )
    keep.add_argument(
        "--as", dest="level", required=True, metavar="LEVEL", help="its name, as a level of `configuration`"
    )

    table = command(
        "table", tables_command.run_table, "collect every record into table.csv and say what is in it"
    )
    table.add_argument("--out", type=Path, metavar="FILE", help="write table.csv here")
    add_plan_options(table)

    snapshot = command("snapshot", steps.snapshot, "keep the results of this device as evidence")
    snapshot.add_argument("--out", type=Path, metavar="DIR", help="by default results/snapshots/<card>")
    add_plan_options(snapshot)

    from kernelab.cli.compare_tools import COMMANDS

    views = {"comparisons": tables_command.run_comparisons, "claims": tables_command.run_claims}
    for tool in COMMANDS:
        added = command(tool.name, views.get(tool.name, tool.run), tool.about)
        tool.add_arguments(added)
        if tool.name in views:
            tables_command.add_arguments(added)

    figure_command.add_report_arguments(
        command("report", figure_command.run_report, "write everything into one page: report.html")
    )
    figure_command.add_arguments(
        command("figure", figure_command.run, "draw one chart of the report as svg, png or pdf")
    )

    beside_command.add_arguments(
        command(
            "beside",
            beside_command.run,
            "set two arms side by side: where the time goes, counters, code",
        )
    )

    emulate_command.add_arguments(
        command(
            "emulate",
            emulate_command.run,
            "run one kernel without a GPU: hazards, sectors, wavefronts, banks",
        )
    )
    predict_command.add_arguments(
        command(
            "predict", predict_command.run, "order configurations without a GPU: a model, not a measurement"
        )
    )

    tables_command.add_arguments(plan)
    tables_command.add_arguments(table)
    init = command("init", project_command.run, "a new project that runs at once")
    project_command.add_arguments(init)
    new = command("new-experiment", project_command.run_experiment, "add an experiment to config.yaml")
    project_command.add_experiment_arguments(new)

    doctor = command("doctor", steps.doctor, "what this machine can do, and how to mend what it cannot")
    doctor.add_argument("--format", choices=("table", "json"), default="table")

    schema = command("schema", steps.schema, "write the JSON schemas of config.yaml and kernels.yaml")
    schema.add_argument("folder", type=Path)
    return parser


def _name_build(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kernel")
    parser.add_argument(
        "variant", nargs="?", default="default", help="as results/plan.csv spells it, after the slash"
    )
