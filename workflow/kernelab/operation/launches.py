"""Grids, blocks, shared memory and buffers of one arm at one problem, evaluated from the catalogue. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from kernelab.plan.catalogue import Kernel, LaunchDeclaration, Operation
from kernelab.plan.expression import ExpressionError, Number, parse

# CUDA's limits on one launch, the same from sm_75 to sm_121 (CUDA C++ Programming Guide, table of technical specifications).
MAX_GRID = (2**31 - 1, 65535, 65535)
MAX_BLOCK = (1024, 1024, 64)
MAX_THREADS = 1024

Dim3 = tuple[int, int, int]


class LaunchRefused(ValueError):
    """No launch applies to the problem, or CUDA would refuse one: the arm's status is launch_error, and this is why."""


@dataclass(frozen=True)
class LaunchConfig:
    """One launch: its entry, grid and block (x, y, z), dynamic shared memory in bytes, and its arguments' names in order."""

    entry: str
    grid: Dim3
    block: Dim3
    dynamic_shared: int
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Buffer:
    """A device array: its shape, its dtype by NumPy's name, and whether it starts as zeros (or else poisoned)."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    zero: bool = False

    @property
    def count(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)


def names_of(kernel: Kernel, levels: Mapping[str, str], problem: Mapping[str, Number]) -> dict[str, Number]:
    """The problem's, the parameters' and the derived values of a kernel, by name.

    Raises:
        LaunchRefused: a derived value cannot be evaluated.
    """
    try:
        return {**problem, **kernel.values(levels)}
    except ExpressionError as error:
        raise LaunchRefused(str(error)) from None


def plan_launches(
    operation: Operation, kernel: Kernel, levels: Mapping[str, str], problem: Mapping[str, Number]
) -> tuple[LaunchConfig, ...]:
    """The launches of a kernel that hold for a problem, in order.

    Args:
        operation: gives the arguments of the launches that name none.
        kernel: a kernel with a source.
        levels: a level for every parameter, as in a Build.
        problem: the values of the operation's variables.

    Raises:
        LaunchRefused: no launch applies, an expression cannot be evaluated, or a grid, block or size is outside CUDA's limits.
    """
    values = names_of(kernel, levels, problem)
    launches = tuple(
        _config(declared, operation, values)
        for declared in kernel.launches
        if _value(declared.when, "when", declared, values)
    )
    if not launches:
        shown = ", ".join(f"{name}={value}" for name, value in problem.items())
        raise LaunchRefused(f"no launch applies to {shown}: every `when` of the kernel is false")
    return launches


def array_buffers(operation: Operation, problem: Mapping[str, Number]) -> dict[str, Buffer]:
    """The operation's arrays at a problem, by name.

    Raises:
        LaunchRefused: a shape cannot be evaluated, or is not of positive whole numbers.
    """
    return {name: Buffer(_shape(name, array.shape, problem, 1)) for name, array in operation.arrays.items()}


def workspace_buffers(kernel: Kernel, values: Mapping[str, Number]) -> dict[str, Buffer]:
    """The workspaces of a kernel, by name; `values` as from `names_of`. A workspace may be empty.

    Raises:
        LaunchRefused: a shape cannot be evaluated, or is not of whole numbers.
    """
    return {
        name: Buffer(_shape(name, workspace.shape, values, 0), workspace.dtype, workspace.fill == "zero")
        for name, workspace in kernel.workspaces.items()
    }


def is_read(operation: Operation, array: str, problem: Mapping[str, Number]) -> bool:
    """Whether the operation reads an array at a problem: an input always, an output when its `read_when` holds."""
    declared = operation.arrays[array]
    if declared.role == "input":
        return True
    return declared.read_when is not None and bool(parse(declared.read_when)(problem))


def _config(declared: LaunchDeclaration, operation: Operation, values: Mapping[str, Number]) -> LaunchConfig:
    entry = declared.entry
    grid = _dimensions("grid", declared.grid, MAX_GRID, declared, values)
    block = _dimensions("block", declared.block, MAX_BLOCK, declared, values)
    if math.prod(block) > MAX_THREADS:
        raise LaunchRefused(f"{entry}: a block of {math.prod(block)} threads; CUDA allows {MAX_THREADS}")
    shared = _whole(
        _value(declared.dynamic_shared, "dynamic_shared", declared, values), f"{entry}: dynamic_shared"
    )
    if shared < 0:
        raise LaunchRefused(f"{entry}: dynamic_shared is {shared} bytes")
    arguments = operation.arguments if declared.arguments is None else declared.arguments
    return LaunchConfig(entry, grid, block, shared, arguments)


def _dimensions(
    what: str, texts: tuple[str, ...], limits: Dim3, declared: LaunchDeclaration, values: Mapping[str, Number]
) -> Dim3:
    sizes = []
    for axis, text, limit in zip("xyz", (*texts, "1", "1"), limits, strict=False):
        size = _whole(_value(text, what, declared, values), f"{declared.entry}: {what}.{axis}")
        if not 1 <= size <= limit:
            raise LaunchRefused(
                f"{declared.entry}: {what}.{axis} is {size} (from '{text}'); CUDA allows 1 to {limit}"
            )
        sizes.append(size)
    return (sizes[0], sizes[1], sizes[2])


def _shape(name: str, texts: tuple[str, ...], values: Mapping[str, Number], least: int) -> tuple[int, ...]:
    shape = []
    for text in texts:
        try:
            size = _whole(parse(text)(values), f"the shape of {name}")
        except ExpressionError as error:
            raise LaunchRefused(f"the shape of {name}: {error}") from None
        if size < least:
            raise LaunchRefused(f"the shape of {name}: '{text}' is {size}")
        shape.append(size)
    return tuple(shape)


def _value(text: str, what: str, declared: LaunchDeclaration, values: Mapping[str, Number]) -> Number:
    try:
        return parse(text)(values)
    except ExpressionError as error:
        raise LaunchRefused(f"{declared.entry}: {what}: {error}") from None


def _whole(value: Number, what: str) -> int:
    if value != value or value in (math.inf, -math.inf) or int(value) != value:
        raise LaunchRefused(f"{what} is {value}, not a whole number")
    return int(value)
