"""Reading a project: config.yaml, overrides and catalogues in; one frozen plan out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kernelab.errors import UserError
from kernelab.plan import strict_yaml
from kernelab.plan.arms import Device, OperationPlan, Plan
from kernelab.plan.catalogue import Catalogue, read_catalogue
from kernelab.plan.config import Config
from kernelab.plan.design import Designer
from kernelab.plan.model import named_keys, require_mapping, validate
from kernelab.plan.resolve import Resolver, Unresolvable
from kernelab.plan.search import plan_search
from kernelab.plan.strict_yaml import Document, KeyPath

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
    overrides_from: str = "--config",
    command_line: Mapping[str, Any] | None = None,
) -> Plan:
    """The plan of the project in a folder.

    Args:
        root: the folder that holds config.yaml and kernels/.
        identify: resolves the config's `device` to a device (a GPU's UUID or `emulated`).
        overrides: values laid over config.yaml (Snakemake's --config), nested like it.
        config_files: further files laid over config.yaml, in order (Snakemake's --configfile).
        overrides_from: what messages call the source of `overrides`.
        command_line: what of `overrides` came by --config, where that is not all of it.

    Raises:
        UserError: one line for each fault, naming file, line, key and reason; the file is the last that has the key.
    """
    resolver, folders, document = load_resolver(
        root, identify, overrides, config_files, overrides_from, command_line
    )
    config = resolver.config
    experiments = {}
    for name, experiment in config.experiments.items():
        if config.only and name not in config.only:
            continue
        try:
            experiments[name] = Designer(resolver, name, experiment).expand()
        except Unresolvable as error:
            where = document.where(
                ("experiments", name), [("experiments", name, part) for part in error.keys]
            )
            raise UserError(f"{where}: {error}") from None
    # A search's base is built and checked for the search alone: no table has a row of it.
    arms = dict(resolver.arms)
    searches = {}
    for name, search in config.search.items():
        try:
            searches[name] = plan_search(resolver, name, search)
        except Unresolvable as error:
            below, reason = _within(str(error), ("base", "hold", "over", "at"))
            key = ("search", name, *below)
            causes = [*([key] if below else []), *(("search", name, part) for part in error.keys)]
            raise UserError(f"{document.where(key, causes)}: {reason}") from None
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
    overrides_from: str = "--config",
    command_line: Mapping[str, Any] | None = None,
) -> tuple[Resolver, dict[str, str], Document]:
    """What arms are made by, without the experiments: the resolver, each operation's folder, and config.yaml for messages.

    Arguments and errors are those of load_plan.
    """
    document = strict_yaml.read(root / CONFIG, CONFIG)
    for path in config_files:
        document = _laid_over(document, strict_yaml.read(path, _shown(path)))
    for source, given in ((overrides_from, overrides), ("--config", command_line)):
        if given:
            no_lines = dict.fromkeys(_keys(given), 0)
            document = _laid_over(document, Document(source, dict(given), no_lines))
    config = validate(Config, document)
    folders, catalogues = _catalogues(root)
    try:
        return Resolver(config, catalogues, _identified(identify, config.device, document)), folders, document
    except Unresolvable as error:
        key, reason = _within(str(error), ("problems",))
        raise UserError(f"{document.where(key, named_keys(key, reason))}: {reason}") from None


def _laid_over(under: Document, over: Document) -> Document:
    require_mapping(Config, over)
    if under.data is not None:  # an empty config.yaml takes everything from what is laid over it
        require_mapping(Config, under)
    return replace(over, data=overlay(under.data, over.data), under=under)


def _keys(data: Any, above: KeyPath = ()) -> Iterator[KeyPath]:
    """The path of every key and item of nested data."""
    items = data.items() if isinstance(data, Mapping) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        path = (*above, str(key))
        yield path
        yield from _keys(value, path)


def _shown(path: Path) -> str:
    """A file as the user would name it: Snakemake makes the paths of --configfile absolute."""
    here, absolute = Path.cwd(), path.absolute()
    return (absolute.relative_to(here) if absolute.is_relative_to(here) else path).as_posix()


def _identified(identify: Identify, wanted: str, document: Document) -> Device:
    try:
        return identify(wanted)
    except UserError as error:
        key = ("device",)
        if document.owner(key).under is None:
            raise
        # Where a device is looked for, no other file than config.yaml is known.
        raise UserError(str(error).replace(f"{CONFIG}: device", document.where(key), 1)) from None


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
    key = tuple(head.split(".", 1))  # a name may hold dots
    return (key, reason) if key[0] in sections else ((), message)
