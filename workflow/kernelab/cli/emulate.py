"""`kernelab emulate`: one kernel by hand on the emulated device, with what each of its memory instructions costs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelab.cli.plan_options import add_plan_options, read_resolver
from kernelab.errors import UserError
from kernelab.plan.expression import Number
from kernelab.plan.model import suggestion
from kernelab.plan.resolve import Resolver, Unresolvable
from kernelab.plan.strict_yaml import scalar
from kernelab.records.record import write_bytes, write_text

if TYPE_CHECKING:
    from kernelab.device.emulated import Result, SiteCounters

MOST_SITES = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `emulate`."""
    parser.add_argument("kernel")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=LEVEL",
        help="a parameter or composite at another level",
    )
    parser.add_argument(
        "--problem",
        default="",
        metavar="NAME",
        help="a check problem of the operation, a problem of config.yaml, or values: m=64,k=32 (the rest as the first check's)",
    )
    parser.add_argument(
        "--trace", action="store_true", help="every memory instruction, not only the costliest"
    )
    parser.add_argument(
        "--line", type=int, help="draw the access at this PTX line, not the costliest shared one"
    )
    parser.add_argument("--picture", type=Path, metavar="FILE", help="write the drawing as .svg or .png")
    add_plan_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Compile, emulate and tell; the status is 1 where the result is wrong or a hazard was found."""
    from kernelab.build.kernel import build_kernel
    from kernelab.build.toolchain import find_toolchain
    from kernelab.check.judgement import Findings, make_task
    from kernelab.check.on_emulated import EmulatedDevice, NotEmulated
    from kernelab.device.emulated import parse_ptx
    from kernelab.operation.launches import LaunchRefused, array_buffers
    from kernelab.operation.loader import load_operation
    from kernelab.operation.program import make_program

    resolver, folders = read_resolver(arguments)
    try:
        build, values = _build(resolver, arguments)
    except Unresolvable as error:
        raise UserError(f"emulate: {error}") from None
    folder = Path(folders[build.operation])
    catalogue = resolver.catalogues[build.operation]
    kernel = catalogue.kernels[build.kernel]
    built = build_kernel(
        folder / build.source,
        arch=build.arch,
        toolchain=find_toolchain(build.toolchain),
        defines={name: str(value) for name, value in build.defines.items()},
        options=build.options,
    )
    if built.status != "ok":
        raise UserError(f"{folder / build.source}: does not compile: {built.compilation.error}")
    loaded = load_operation(folder, catalogue.operation)
    task = make_task(loaded, values, resolver.config.check.seed, lambda stage: None)
    try:
        program = make_program(catalogue.operation, kernel, build.levels, values, folder)
        buffers = array_buffers(catalogue.operation, values)
        device = EmulatedDevice(parse_ptx(built.compilation.ptx), program, buffers, task)
        results = device.launch()
    except (LaunchRefused, NotEmulated) as refused:
        raise UserError(f"{build.key}: {refused}") from None
    findings = Findings()
    findings.judge_outputs(task, catalogue.operation.tolerance, device.outputs())
    for hazard in (hazard for result in results for hazard in result.hazards):
        findings.fault(hazard.status, str(hazard))  # type: ignore[arg-type]
    checked = findings.result(0.0, [], {})
    shown = " ".join(f"{name}={value}" for name, value in values.items())
    print(
        f"{build.key} at {shown}, {build.arch}: {checked.status}{': ' + checked.note if checked.note else ''}"
    )
    if checked.rel_error is not None:
        print(f"largest error {checked.max_abs_error:.3g}, relative {checked.rel_error:.3g}")
    for launch, result in zip(program.launches, results, strict=True):
        _tell(launch.entry, result, arguments.trace)
    _draw(results, arguments)
    return int(checked.status != "ok")


def _build(resolver: Resolver, arguments: argparse.Namespace) -> tuple[Any, dict[str, Number]]:
    kernel = arguments.kernel
    if resolver.kernel(kernel).source is None:
        raise Unresolvable(f"{kernel} is a library function; there is no PTX to run")
    operation = resolver.catalogues[resolver.owner[kernel]].operation
    settings = resolver.base_settings(kernel, resolver.default_problem(operation.name))
    for assignment in arguments.set:
        name, equals, level = assignment.partition("=")
        if not equals:
            raise Unresolvable(f"--set {assignment}: write it as NAME=LEVEL")
        settings = resolver.move(settings, name, scalar(level))
    arm = resolver.arm(settings)
    if arm.excluded:
        raise Unresolvable(arm.excluded)
    wanted = arguments.problem or next(iter(operation.checks))
    if wanted in operation.checks:
        values: dict[str, Any] = dict(operation.checks[wanted])
    elif wanted in resolver.problems:
        values = dict(resolver.problems[wanted].values)
    elif "=" in wanted:
        values = dict(next(iter(operation.checks.values())))
        values |= {
            name: scalar(value) for name, _, value in (part.partition("=") for part in wanted.split(","))
        }
    else:
        known = [*operation.checks, *resolver.problems]
        raise Unresolvable(f"--problem {wanted} is not known{suggestion(wanted, known)}")
    try:
        return resolver.builds[arm.build], operation.problem_values(values, "--problem")
    except ValueError as error:
        raise Unresolvable(str(error)) from None


def _tell(entry: str, result: Result, every: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    sites = sorted(result.counters.sites, key=_cost, reverse=True)
    shown = sites if every else sites[:MOST_SITES]
    table = Table(title=f"{entry}: {len(sites)} memory instructions", title_justify="left", box=None)
    for column in ("source", "PTX line", "instruction"):
        table.add_column(column)
    for column in ("requests", "sectors", "per request", "wavefronts", "per request", "excess"):
        table.add_column(column, justify="right")
    for site in sorted(shown, key=lambda site: site.ptx_line):
        source = f"{Path(site.source_file).name}:{site.source_line}" if site.source_file else ""
        cells = [source, str(site.ptx_line), site.opcode, f"{site.requests:,}"]
        if site.space == "shared":
            excess = site.wavefronts - site.ideal_wavefronts
            cells += ["", "", f"{site.wavefronts:,}", f"{site.wavefronts_per_request:.2f}", f"{excess:,}"]
        else:
            cells += [f"{site.sectors:,}", f"{site.sectors_per_request:.2f}", "", "", ""]
        table.add_row(*cells)
    Console(width=None if Console().is_terminal else 140).print(table)
    if len(shown) < len(sites):
        print(f"the {len(shown)} costliest of {len(sites)}; --trace shows all")
    for hazard in result.hazards:
        print(f"{hazard.status}: {hazard}")
    for line in result.advice:
        print(f"advice: {line}")


def _cost(site: SiteCounters) -> int:
    return site.wavefronts + site.sectors


def _draw(results: list[Result], arguments: argparse.Namespace) -> None:
    from kernelab.device.emulated.picture import bank_png, bank_svg, bank_text

    accesses = [access for result in results for access in result.worst if access.space == "shared"]
    if arguments.line is not None:
        accesses = [access for access in accesses if access.ptx_line == arguments.line]
        if not accesses:
            raise UserError(
                f"--line {arguments.line}: no shared-memory access stands there; --trace lists the lines"
            )
    if not accesses:
        if arguments.picture:
            raise UserError("--picture: the kernel makes no shared-memory access")
        return
    access = max(accesses, key=lambda access: access.cost)
    print()
    print(bank_text(access), end="")
    if arguments.picture:
        if arguments.picture.suffix == ".svg":
            write_text(arguments.picture, bank_svg(access))
        elif arguments.picture.suffix == ".png":
            write_bytes(arguments.picture, bank_png(access))
        else:
            raise UserError(f"--picture {arguments.picture}: the name must end in .svg or .png")
        print(arguments.picture)
