"""Reading a project: config.yaml, overrides and catalogues in; one frozen plan out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kernelab.errors import UserError
from kernelab.plan import strict_yaml
from kernelab.plan.arms import Device, OperationPlan, Plan
from kernelab.plan.catalogue import Catalogue, read_catalogue
from kernelab.plan.config import Config
from kernelab.plan.design import Designer
from kernelab.plan.model import validate
from kernelab.plan.resolve import Resolver, Unresolvable
from kernelab.plan.search import plan_search
from kernelab.plan.strict_yaml import Document

CONFIG = "config.yaml"
DEFAULT_ARCH = "sm_86"
# Environment variables by which Snakemake's --config and --configfile reach the steps that its rules call.
OVERRIDES = "KERNELAB_OVERRIDES"
CONFIG_FILES = "KERNELAB_CONFIGFILES"

Identify = Callable[[str], Device]


def load_plan(
    root: Path,
    identify: Identify,
    overrides: Mapping[str, Any] | None = None,
    config_files: Sequence[Path] = (),
) -> Plan:
    """The plan of the project in a folder.

    Args:
        root: the folder that holds config.yaml and kernels/.
        identify: resolves the config's `device` to a device (a GPU's UUID or `emulated`).
        overrides: values laid over config.yaml (Snakemake's --config), nested like it.
        config_files: further files laid over config.yaml, in order (Snakemake's --configfile).

    Raises:
        UserError: one line for each fault, naming file, line, key and reason.
    """
    resolver, folders, document = load_resolver(root, identify, overrides, config_files)
    config = resolver.config
    experiments = {}
    for name, experiment in config.experiments.items():
        if config.only and name not in config.only:
            continue
        try:
            experiments[name] = Designer(resolver, name, experiment).expand()
        except Unresolvable as error:
            raise UserError(f"{document.where(('experiments', name))}: {error}") from None
    # A search's base is built and checked for the search alone: no table has a row of it.
    arms = dict(resolver.arms)
    searches = {}
    for name, search in config.search.items():
        try:
            searches[name] = plan_search(resolver, name, search)
        except Unresolvable as error:
            key, reason = _within(str(error), ("base", "hold", "over", "at"))
            raise UserError(f"{document.where(('search', name, *key))}: {reason}") from None
    operations = {
        name: OperationPlan(
            folder=folders[name], operation=catalogue.operation, kernels=dict(catalogue.kernels)
        )
        for name, catalogue in resolver.catalogues.items()
    }
    return Plan(
        device=resolver.device,
        target_card=config.target_card,
        operations=operations,
        problems=resolver.problems,
        builds=dict(sorted(resolver.builds.items())),
        arms=arms,
        experiments=experiments,
        claims={name: claim for name, claim in config.claims.items() if claim.experiment in experiments},
        timing=config.timing,
        check=config.check,
        profile=config.profile,
        searches=searches,
    )


def load_resolver(
    root: Path,
    identify: Identify,
    overrides: Mapping[str, Any] | None = None,
    config_files: Sequence[Path] = (),
) -> tuple[Resolver, dict[str, str], Document]:
    """What arms are made by, without the experiments: the resolver, each operation's folder, and config.yaml for messages.

    Arguments and errors are those of load_plan.
    """
    document = strict_yaml.read(root / CONFIG, CONFIG)
    for path in config_files:
        extra = strict_yaml.read(path)
        document = Document(document.file, overlay(document.data, extra.data), document.lines)
    if overrides:
        document = Document(document.file, overlay(document.data, overrides), document.lines)
    config = validate(Config, document)
    folders, catalogues = _catalogues(root)
    try:
        return Resolver(config, catalogues, identify(config.device)), folders, document
    except Unresolvable as error:
        key, reason = _within(str(error), ("problems",))
        raise UserError(f"{document.where(key)}: {reason}") from None


def overlay(under: Any, over: Any) -> Any:
    """Two nested mappings, the second winning key by key."""
    if isinstance(under, dict) and isinstance(over, Mapping):
        merged = dict(under)
        for key, value in over.items():
            merged[str(key)] = overlay(merged.get(str(key)), value)
        return merged
    if isinstance(over, Mapping):
        return {str(key): overlay(None, value) for key, value in over.items()}
    return over


def _catalogues(root: Path) -> tuple[dict[str, str], dict[str, Catalogue]]:
    folders: dict[str, str] = {}
    catalogues: dict[str, Catalogue] = {}
    owners: dict[str, str] = {}
    for path in sorted((root / "kernels").glob("*/kernels.yaml")):
        shown = path.relative_to(root).as_posix()
        catalogue = read_catalogue(path, shown)
        name = catalogue.operation.name
        if name in catalogues:
            raise UserError(
                f"{shown}: operation.name: {name} is already declared in {folders[name]}/kernels.yaml; rename one"
            )
        if not (path.parent / "operation.py").is_file():
            raise UserError(f"{shown}: operation.py is missing beside it; it holds the reference of {name}")
        for kernel in catalogue.kernels:
            if kernel in owners:
                raise UserError(
                    f"{shown}: kernels.{kernel}: the name is already taken in {folders[owners[kernel]]}/kernels.yaml"
                )
            owners[kernel] = name
        folders[name] = path.parent.relative_to(root).as_posix()
        catalogues[name] = catalogue
    if not catalogues:
        raise UserError("kernels: no catalogue found; expected kernels/<operation>/kernels.yaml")
    return folders, catalogues


def _within(message: str, sections: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """A message `section.key: reason` as key and reason; one that begins otherwise has no key."""
    head, _, reason = message.partition(": ")
    key = tuple(head.split("."))
    return (key, reason) if key[0] in sections else ((), message)
