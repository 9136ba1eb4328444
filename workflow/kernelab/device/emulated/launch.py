"""A launch as the host asks for it: geometry, the bytes of its arguments, and the module's variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import EmulationError
from .memory import GlobalMemory
from .parser import Module
from .program import Program


@dataclass(slots=True)
class Launch:
    """One launch: `grid` and `block` as (x, y, z), arguments in the order of the entry's parameters.

    Arguments are numbers, device addresses from GlobalMemory.allocate, or bytes for structures.
    """

    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: Sequence[Any] = ()
    dynamic_shared: int = 0


def check_launch(module: Module, program: Program, launch: Launch) -> None:
    """Raises EmulationError for what the hardware would refuse to launch."""
    function = module.functions[program.name]
    threads = launch.block[0] * launch.block[1] * launch.block[2]
    if min(*launch.grid, *launch.block) < 1 or threads > 1024:
        raise EmulationError(
            f"{program.name}: a grid of {launch.grid} and a block of {launch.block} cannot be launched"
        )
    if function.maxntid is not None and threads > int(np.prod(function.maxntid)):
        raise EmulationError(
            f"{program.name}: {threads} threads per block, but its launch bounds allow {int(np.prod(function.maxntid))}"
        )
    if function.reqntid is not None and tuple(launch.block) != (*function.reqntid, 1, 1)[:3]:
        raise EmulationError(
            f"{program.name}: a block of {launch.block}, but the kernel requires {function.reqntid}"
        )
    if len(launch.arguments) != len(program.parameters):
        raise EmulationError(
            f"{program.name}: {len(launch.arguments)} arguments for {len(program.parameters)} parameters"
        )


def argument_bytes(program: Program, launch: Launch) -> bytes:
    """The kernel's parameter block."""
    data = bytearray(program.parameter_bytes)
    for (start, parameter), value in zip(program.parameters.values(), launch.arguments, strict=True):
        if isinstance(value, (bytes, bytearray)):
            raw = bytes(value)
        elif parameter.type in ("f32", "f64", "f16"):
            raw = np.array(
                value, {"f32": np.float32, "f64": np.float64, "f16": np.float16}[parameter.type]
            ).tobytes()
        elif isinstance(value, (float, np.floating)):
            raw = np.array(value, np.float32 if parameter.size == 4 else np.float64).tobytes()
        else:
            raw = (int(value) & (1 << 8 * parameter.size) - 1).to_bytes(parameter.size, "little")
        if len(raw) != parameter.size:
            raise EmulationError(
                f"{program.name}: {len(raw)} bytes for parameter {parameter.name} of {parameter.size}"
            )
        data[start : start + parameter.size] = raw
    return bytes(data)


def place_symbols(module: Module, memory: GlobalMemory) -> dict[str, int]:
    """Allocate the module's .global and .const variables at their first launch; they keep their values after it."""
    symbols = {}
    for variable in module.variables.values():
        if variable.space not in ("global", "const"):
            continue
        name = f"variable {variable.name}"
        if name not in memory.names:
            initial = variable.initial or bytes(variable.size)
            memory.allocate(
                name, np.frombuffer(initial or b"\0", np.uint8), writable=variable.space == "global"
            )
        symbols[variable.name] = memory.address(name)
    for variable in module.variables.values():
        for offset, text in variable.relocations:
            target, _, plus = text.partition("+")
            number = (symbols[target] + int(plus or "0", 0)).to_bytes(8, "little")
            memory.patch(f"variable {variable.name}", offset, number)
    return symbols
