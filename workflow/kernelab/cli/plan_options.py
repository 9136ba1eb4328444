"""Which plan a subcommand works on: config.yaml in the working directory, with what is laid over it."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernelab.device.identify import identify
from kernelab.errors import UserError
from kernelab.plan.arms import Plan
from kernelab.plan.load import CONFIG_FILES, OVERRIDES, load_plan, load_resolver, overlay
from kernelab.plan.resolve import Resolver


def add_plan_options(parser: argparse.ArgumentParser) -> None:
    """--override and --configfile; their defaults come from the environment that Snakemake's rules set."""
    overrides = os.environ.get(OVERRIDES, "{}")
    files = [Path(name) for name in os.environ.get(CONFIG_FILES, "").split(os.pathsep) if name]
    parser.add_argument(
        "--override", default=overrides, metavar="JSON", help="settings laid over config.yaml"
    )
    parser.add_argument(
        "--configfile",
        type=Path,
        action="append",
        default=files,
        metavar="FILE",
        help="a file laid over config.yaml",
    )


def read_plan(arguments: argparse.Namespace, over: Mapping[str, Any] | None = None) -> Plan:
    """The plan that the options above mean, with the settings `over` laid over it all.

    Raises:
        UserError: one line for each fault in the files or the override.
    """
    overrides = overlay(_overrides(arguments), over or {})
    return load_plan(Path(), identify, overrides, arguments.configfile, _overrides_from(arguments))


def read_resolver(arguments: argparse.Namespace) -> tuple[Resolver, dict[str, str]]:
    """What makes arms by hand, and the folder of each operation; errors as read_plan."""
    overrides, source = _overrides(arguments), _overrides_from(arguments)
    resolver, folders, _ = load_resolver(Path(), identify, overrides, arguments.configfile, source)
    return resolver, folders


def _overrides(arguments: argparse.Namespace) -> dict[str, Any]:
    try:
        overrides = json.loads(arguments.override)
    except ValueError as error:
        raise UserError(f'--override: not JSON ({error}); write it as {{"arch": "sm_80"}}') from None
    if not isinstance(overrides, dict):
        raise UserError('--override: must be a JSON object; write it as {"arch": "sm_80"}')
    return overrides


def _overrides_from(arguments: argparse.Namespace) -> str:
    """Which option the user wrote: what comes by the environment is Snakemake's --config."""
    return "--config" if arguments.override == os.environ.get(OVERRIDES) else "--override"
