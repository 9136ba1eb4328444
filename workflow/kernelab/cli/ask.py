"""`kernelab ask`: a one-off comparison from the command line, by the same pipeline as any experiment of config.yaml."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from kernelab.device.identify import identify
from kernelab.errors import UserError
from kernelab.plan import strict_yaml
from kernelab.plan.load import load_plan
from kernelab.records.compare import CompareRecord
from kernelab.records.layout import RESULTS, Layout
from kernelab.records.record import read_record, write_text

QUICK = {"processes": 3, "extend_to": 3}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `ask`."""
    parser.add_argument(
        "--base", required=True, metavar="KERNEL[,KERNEL]", help="the kernel, or several to ask the same of"
    )
    parser.add_argument(
        "--vary",
        required=True,
        metavar="VARIABLE=LEVEL,LEVEL",
        help="the one variable; its first level is the base level",
    )
    parser.add_argument(
        "--hold", action="append", default=[], metavar="VARIABLE=LEVEL", help="a level that all arms share"
    )
    parser.add_argument(
        "--at",
        action="append",
        default=[],
        metavar="PROBLEM",
        help="a problem of config.yaml; may be repeated",
    )
    parser.add_argument(
        "--quick", action="store_true", help="three processes and no extension: a wider interval, sooner"
    )
    parser.add_argument("--name", default="ask", help="of the experiment (default: ask)")
    parser.add_argument(
        "snakemake", nargs="*", metavar="OPTION", help="after --: options for snakemake, such as --cores 4"
    )


def run(arguments: argparse.Namespace) -> int:
    """Ask, print the verdict, and the YAML that keeps the question.

    Raises:
        UserError: the question is not one that an experiment may ask; the line says why.
    """
    from kernelab.compare.describe import describe

    name = arguments.name
    declared = strict_yaml.read(Path("config.yaml"), "config.yaml").data
    if name in (declared.get("experiments") or {}):
        raise UserError(f"--name {name}: config.yaml has an experiment of that name; choose another")
    overlay: dict[str, Any] = {"experiments": {name: experiment(arguments)}}
    if declared.get("only"):
        overlay["only"] = [name]
    if arguments.quick:
        overlay["timing"] = QUICK
    # A wrong question is answered here, before Snakemake starts.
    plan = load_plan(Path(), identify, overlay, overrides_from="ask")
    layout = Layout(RESULTS, plan.device.id)
    path = RESULTS / "ask" / f"{name}.yaml"
    write_text(path, yaml_text(overlay))
    # `verify` needs the plan that the answer was made by; results/plan.json is config.yaml's.
    write_text(path.with_suffix(".json"), plan.model_dump_json(indent=1) + "\n")
    target = layout.compare(name)
    command = [
        sys.executable,
        "-m",
        "snakemake",
        target.as_posix(),
        *arguments.snakemake,
        "--configfile",
        path.as_posix(),
    ]
    # Its log goes to stderr, so that stdout holds the answer alone.
    status = subprocess.run(command, stdout=sys.stderr).returncode
    if status != 0:
        raise UserError(f"snakemake ended with {status}; what it printed above says why")
    for line in describe(read_record(target, CompareRecord)):
        print(line)
    print("\nTo keep the question, add to config.yaml:\n")
    print(yaml_text({"experiments": {name: experiment(arguments)}}), end="")
    return 0


def experiment(arguments: argparse.Namespace) -> dict[str, Any]:
    """The experiment that the options describe, as config.yaml would hold it.

    Raises:
        UserError: an option is not VARIABLE=LEVEL.
    """
    variable, levels = _setting("--vary", arguments.vary)
    bases = arguments.base.split(",")
    found: dict[str, Any] = {"question": f"What does {variable} do to {' and '.join(bases)}?"}
    found |= {"base": bases[0]} if len(bases) == 1 else {"bases": bases}
    held = [_setting("--hold", text) for text in arguments.hold]
    if held:
        found["hold"] = {name: _level(level) for name, level in held}
    found["vary"] = {variable: [_level(level) for level in levels.split(",")]}
    if arguments.at:
        found["at"] = list(arguments.at)
    return found


def yaml_text(data: Any) -> str:
    """YAML that YAML 1.1 and 1.2 read alike: text that either would take for something else is quoted."""
    return yaml.safe_dump(data, sort_keys=False, default_flow_style=None, width=100)


def _setting(option: str, text: str) -> tuple[str, str]:
    name, equals, level = text.partition("=")
    if not (name and equals and level):
        raise UserError(f"{option} {text}: must be VARIABLE=LEVEL, as in MIN_BLOCKS=none,1")
    return name, level


def _level(text: str) -> Any:
    """A level as config.yaml would read it: 1 is a number, true a boolean, none a word."""
    value = strict_yaml.scalar(text.strip())
    return text.strip() if value is None else value
