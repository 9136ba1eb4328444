"""`python -m kernelab keep SEARCH --as LEVEL`: a configuration that a search found, written into the catalogue."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernelab.cli.plan_options import read_plan
from kernelab.digests import Digests
from kernelab.errors import UserError
from kernelab.plan import strict_yaml
from kernelab.plan.arms import Build, Plan
from kernelab.plan.catalogue import Kernel, read_catalogue
from kernelab.plan.model import NAME, level_text
from kernelab.plan.space import Space
from kernelab.plan.yaml_edit import inserted
from kernelab.records.layout import RESULTS, Layout
from kernelab.records.record import replacing
from kernelab.records.search import SearchRow, read_search

COMPOSITE = "configuration"
DEFAULT = "default"
ABOUT = "points of its parameter space that a search found, beside its defaults"


def keep(arguments: argparse.Namespace) -> None:
    """Write the configuration of a rank as a level of the kernel's composite `configuration`, comments kept.

    Args:
        arguments: `name` of the search, `rank` (1 is the best), `level` to write it as, and the plan options.

    Raises:
        UserError: no such search, rank or result; a result of another space or source; a level that is there.
    """
    plan = read_plan(arguments)
    space = Space.of(plan, arguments.name)
    path = Layout(RESULTS, plan.device.id).search(arguments.name)
    row = _ranked(read_search(path), arguments.rank, path)
    build = _current(plan, space, row, path)
    planned = space.planned
    settings = {name: build.levels[name] for name in space.parameters}
    file = Path(plan.operations[planned.operation].folder) / "kernels.yaml"
    _write(file, planned.kernel, arguments.level, settings, build.levels)
    written = ", ".join(f"{name}: {level}" for name, level in settings.items())
    where = f"{file.as_posix()}: kernels.{planned.kernel}.composites.{COMPOSITE}.levels.{arguments.level}"
    print(f"{where}: {{{written}}}")
    held = {name: level for name, level in planned.machine.items() if level}
    if held:
        shown = ", ".join(f"{name}: {level}" for name, level in held.items())
        print(
            f"it was searched with {{{shown}}}, which no composite can set; hold it where you use the level"
        )
    print(
        f"To compare it: {{base: {planned.kernel}, vary: {{{COMPOSITE}: [{DEFAULT}, {arguments.level}]}}}}; "
        f"as part of another question: hold: {{{COMPOSITE}: {arguments.level}}}"
    )


def _ranked(rows: Sequence[SearchRow], rank: int, path: Path) -> SearchRow:
    ranks = {row.rank: row for row in rows if row.rank is not None}
    if not ranks:
        raise UserError(f"{path.as_posix()}: no configuration was measured; run the search on a GPU first")
    if rank not in ranks:
        raise UserError(f"--rank {rank}: {path.as_posix()} has the ranks 1 to {max(ranks)}")
    return ranks[rank]


def _current(plan: Plan, space: Space, row: SearchRow, path: Path) -> Build:
    """The build of a row, which must be what the project would build today."""
    configuration = space.point({str(k): level_text(v) for k, v in json.loads(row.settings).items()})
    if configuration.build is None:
        raise UserError(
            f"{path.as_posix()}: {row.configuration} is no longer valid: {configuration.excluded}"
        )
    if Digests(plan, Path()).of_build(configuration.build) != row.build_digest:
        raise UserError(
            f"{path.as_posix()}: {row.configuration} was measured from another source or compiler; "
            f"run `python -m kernelab search {space.planned.name}` again"
        )
    return configuration.build


def _write(file: Path, kernel: str, level: str, settings: dict[str, str], full: dict[str, str]) -> None:
    """Add the level to the catalogue's text, once the edited catalogue is known to be valid.

    Args:
        settings: the parameters to write, with their levels.
        full: every parameter's level, for those that the composite sets beside them.
    """
    shown = file.as_posix()
    if not NAME.match(level):
        raise UserError(f"--as {level}: not a name; use letters, digits, _, ., + and -")
    text = file.read_bytes().decode("utf-8")
    declared = read_catalogue(file, shown).kernels[kernel]
    defaults = declared.defaults()
    if all(defaults[name] == value for name, value in settings.items()):
        raise UserError(f"{kernel}: this configuration is the kernel's own default; there is nothing to keep")
    composite = declared.composites.get(COMPOSITE)
    where = ("kernels", kernel, "composites")
    if composite is None:
        _refuse(level == DEFAULT, shown, f"--as {level}: is what the kernel's own defaults are called")
        levels = {DEFAULT: {name: defaults[name] for name in settings}, level: settings}
        value: dict[str, Any] = {"about": ABOUT, "levels": levels}
        has_composites = "composites" in strict_yaml.parse(text, shown).data["kernels"][kernel]
        if has_composites:
            text = inserted(text, shown, where, COMPOSITE, value)
        else:
            text = inserted(text, shown, where[:2], "composites", {COMPOSITE: value})
    else:
        text = _extended(text, shown, (*where, COMPOSITE, "levels"), declared, level, settings, full)
    with replacing(file) as temporary:
        temporary.write_bytes(text.encode("utf-8"))
        read_catalogue(temporary, shown)


def _extended(
    text: str,
    shown: str,
    where: tuple[str, ...],
    declared: Kernel,
    level: str,
    settings: dict[str, str],
    full: dict[str, str],
) -> str:
    """The text with one more level; every level of a composite sets the same parameters, so the others are filled up."""
    levels = declared.composites[COMPOSITE].levels
    defaults = declared.defaults()
    _refuse(level in levels, shown, f"{'.'.join(where)}.{level}: is already there; choose another name")
    for name, values in levels.items():
        texts = {parameter: level_text(value) for parameter, value in values.items()}
        same = defaults | texts == defaults | settings
        _refuse(same, shown, f"{'.'.join(where)}.{name}: is this very configuration; it is kept already")
        for parameter in settings:
            if parameter not in values:
                text = inserted(text, shown, (*where, name), parameter, defaults[parameter])
    set_by_others = next(iter(levels.values()))
    names = [name for name in declared.parameters if name in settings or name in set_by_others]
    return inserted(text, shown, where, level, {name: full[name] for name in names})


def _refuse(wrong: bool, shown: str, reason: str) -> None:
    if wrong:
        raise UserError(f"{shown}: {reason}")
