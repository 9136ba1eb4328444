"""From a compiled build and a problem to the workloads that the model takes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernelab.build.cards import Card
from kernelab.build.compiler import Compilation
from kernelab.build.cubin import Cubin
from kernelab.build.occupancy import theoretical_occupancy
from kernelab.build.resources import parse_resources
from kernelab.build.sass import disassemble, parse_sass
from kernelab.build.toolchain import Tool
from kernelab.operation.launches import LaunchConfig, LaunchRefused, plan_launches
from kernelab.plan.arms import Build
from kernelab.plan.catalogue import Kernel, Operation
from kernelab.plan.expression import Number, parse
from kernelab.predict.board import board_of
from kernelab.predict.emulation import Emulated, sample
from kernelab.predict.machine import machine_of
from kernelab.predict.model import Prediction, predict
from kernelab.predict.workload import Workload, make_workload


class Unpredictable(Exception):
    """Nothing can be said of a configuration; the text says why, in one line."""


def predict_build(
    compilation: Compilation,
    build: Build,
    operation: Operation,
    kernel: Kernel,
    problem: Mapping[str, Number],
    *,
    folder: Path,
    card: Card,
    disassembler: Tool,
) -> Prediction:
    """The prediction of one compiled build at a problem on a card.

    Args:
        compilation: its machine code, PTX and log.
        build, operation, kernel: from the plan.
        problem: values of the operation's variables.
        folder: of the catalogue.
        card: whose SMs and clock count; the build's architecture should be its own.
        disassembler: nvdisasm.

    Raises:
        Unpredictable: it does not compile or cannot be launched, or its loop computes nothing that can be counted.
    """
    if compilation.cubin is None:
        raise Unpredictable(compilation.error)
    try:
        launches = plan_launches(operation, kernel, build.levels, problem)
    except LaunchRefused as refused:
        raise Unpredictable(str(refused)) from None
    counted = sample(compilation.ptx, operation, kernel, build.levels, problem, folder)
    try:
        found = predict(
            _workloads(compilation, compilation.cubin, build.arch, launches, counted, card, disassembler),
            operations=float(parse(operation.flops)(problem)),
            least_bytes=float(parse(operation.bytes)(problem)),
            sms=card.sms,
            board=board_of(card),
            machine=machine_of(build.arch),
        )
    except ValueError as error:  # a barrier of some warps only, say
        raise Unpredictable(f"the simulated SM stopped: {error}") from None
    if found is None:
        raise Unpredictable("its loop has no FP32 arithmetic to count turns by")
    return found


def _workloads(
    compilation: Compilation,
    machine_code: bytes,
    arch: str,
    launches: Sequence[LaunchConfig],
    counted: Sequence[Emulated] | None,
    card: Card,
    disassembler: Tool,
) -> list[Workload]:
    """The workload of each launch, with what the emulated device counted of it."""
    cubin = Cubin(machine_code)
    listings = parse_sass(disassemble(machine_code, disassembler))
    resources = parse_resources(compilation.log)
    workloads = []
    for number, launch in enumerate(launches):
        if launch.entry not in listings:
            raise Unpredictable(f"{launch.entry} is not in the build")
        used = resources[launch.entry]
        threads, blocks = math.prod(launch.block), math.prod(launch.grid)
        held = theoretical_occupancy(
            card,
            threads=threads,
            registers=used.registers,
            shared_bytes=used.static_shared_bytes + launch.dynamic_shared,
            blocks=blocks,
        )
        if not held.blocks_per_sm:
            raise Unpredictable(f"no block of {launch.entry} fits on an SM of the {card.name}")
        emulated = counted[number] if counted else Emulated({}, None)
        workloads.append(
            make_workload(
                cubin,
                launch.entry,
                listings[launch.entry],
                arch,
                emulated.traffic,
                emulated.per_barrier,
                warps=-(-threads // 32),
                blocks=blocks,
                resident=held.blocks_per_sm,
            )
        )
    return workloads
