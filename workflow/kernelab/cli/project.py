"""`python -m kernelab init DIR`, a new project that runs at once, and `new-experiment`, one more question in config.yaml."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import kernelab
from kernelab.device.identify import identify
from kernelab.errors import UserError
from kernelab.plan import strict_yaml
from kernelab.plan.load import load_plan
from kernelab.plan.model import NAME, level_text
from kernelab.records.record import write_text

PACKAGE = Path(kernelab.__file__).parent
SCAFFOLD = PACKAGE / "scaffold"
PROFILE = Path("profiles") / "default" / "config.yaml"
EXPERIMENTS = re.compile(r"^experiments:[ \t]*(#.*)?$", re.MULTILINE)
TOP_LEVEL = re.compile(r"^[^\s#]", re.MULTILINE)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `init`."""
    parser.add_argument(
        "folder", type=Path, metavar="DIR", help="a folder that is not there yet, or is empty"
    )


def run(arguments: argparse.Namespace) -> None:
    """Write a project: an operation, two kernels, two experiments, and a Snakefile that uses kernelab's rules."""
    folder: Path = arguments.folder
    workflow = PACKAGE.parent / "Snakefile"
    if not workflow.is_file():
        raise UserError(
            f"{workflow}: not there; `init` needs kernelab's repository, since the rules are no part of the package"
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder}: is not empty; name a new folder")
    written = []
    for source in sorted(path for path in SCAFFOLD.rglob("*") if path.is_file() and path.suffix != ".pyc"):
        name = source.relative_to(SCAFFOLD)
        target = folder / (name.with_name(".gitignore") if name.name == "gitignore" else name)
        text = source.read_text(encoding="utf-8")
        if name.name == "Snakefile":
            text = text.replace("WORKFLOW", json.dumps(workflow.as_posix(), ensure_ascii=False))
        write_text(target, text)
        written.append(target)
    profile = PACKAGE.parents[1] / PROFILE
    if profile.is_file():
        (folder / PROFILE).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(profile, folder / PROFILE)
        written.append(folder / PROFILE)
    for path in written:
        print(path)
    snakemake = Path(sys.executable).with_name("snakemake")
    print(f"\nNow:  cd {folder} && {snakemake if snakemake.is_file() else 'snakemake'} results/report.html")


def add_experiment_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `new-experiment`."""
    parser.add_argument("name", help="letters, digits and _")
    parser.add_argument(
        "--base",
        required=True,
        metavar="KERNEL",
        action="append",
        help="the kernel that is varied; several ask the same of each",
    )
    parser.add_argument(
        "--vary",
        required=True,
        metavar="VARIABLE=A,B",
        help="the one variable and its levels, the base level first",
    )
    parser.add_argument("--question", help="what it asks; made from --vary where not given")
    parser.add_argument(
        "--at",
        metavar="PROBLEM",
        action="append",
        default=[],
        help="a problem of config.yaml; several compare at each",
    )


def run_experiment(arguments: argparse.Namespace) -> None:
    """Add an experiment to config.yaml, once it is known to be valid; the rest of the file stays as it is."""
    if not NAME.match(arguments.name):
        raise UserError(f"{arguments.name}: not a name; use letters, digits and _")
    variable, equals, listed = arguments.vary.partition("=")
    levels = [strict_yaml.scalar(level.strip()) for level in listed.split(",") if level.strip()]
    if not equals or not levels:
        raise UserError(f"--vary {arguments.vary}: write the variable and its levels, as in UNROLL=1,4")
    # A kernel is varied against the base, which need not be among its levels.
    spelled = [level_text(level) for level in levels if level is not None]
    question = arguments.question or f"Does {variable} matter: {', '.join(spelled)}?"
    bases = arguments.base
    declared: dict[str, Any] = {"question": question}
    declared |= {"base": bases[0]} if len(bases) == 1 else {"bases": bases}
    declared |= {"at": arguments.at} if arguments.at else {}
    declared["vary"] = {variable: levels}
    path = Path("config.yaml")
    document = strict_yaml.read(path)
    if isinstance(document.data, dict) and arguments.name in (document.data.get("experiments") or {}):
        raise UserError(
            f"{document.where(('experiments', arguments.name))}: is already there; choose another name"
        )
    # The whole plan is made with it, in memory, before a byte of the file changes.
    more = {"experiments": {arguments.name: declared}, "only": []}
    plan = load_plan(Path(), identify, more, overrides_from="new-experiment")
    text = _inserted(path.read_text(encoding="utf-8"), arguments.name, declared)
    write_text(path, text)
    arms = len(plan.experiments[arguments.name].arms)
    compared = len(plan.experiments[arguments.name].comparisons)
    print(
        f"config.yaml: {arguments.name}: {arms} arms, {compared} comparisons; run snakemake results/report.html"
    )
    if document.data.get("only"):
        print(f"config.yaml: only: does not name it yet; add {arguments.name} there")


def _inserted(text: str, name: str, declared: dict[str, Any]) -> str:
    """The file with an experiment behind the last of its experiments."""
    heading = EXPERIMENTS.search(text)
    if heading is None:
        raise UserError(f"config.yaml: experiments is not a block of its own lines; add {name} to it by hand")
    following = TOP_LEVEL.search(text, heading.end())
    end = following.start() if following else len(text)
    body = text[heading.end() : end]
    # Comments and blank lines before the next section belong to that section.
    kept = body.rstrip()
    while kept and (last := kept.rpartition("\n")[2]) and last.startswith("#"):
        kept = kept[: -len(last)].rstrip()
    rest = body[len(kept) :].lstrip("\n") if following else ""
    lines = [
        f"  {name}:",
        *(f"    {key}: {json.dumps(value, ensure_ascii=False)}" for key, value in declared.items()),
    ]
    return (
        text[: heading.end()]
        + kept
        + "\n\n"
        + "\n".join(lines)
        + "\n"
        + ("\n" + rest if rest or following else "")
        + text[end:]
    )
