"""What a device needs to run one arm at one problem, whichever device it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kernelab.operation.launches import Buffer, LaunchConfig, names_of, plan_launches, workspace_buffers
from kernelab.operation.loader import Prepare, load_prepare
from kernelab.plan.catalogue import Kernel, Operation
from kernelab.plan.expression import Number

EPOCH = "epoch"  # a launch argument of every kernel: uint32, 1 at the first call of the sequence, then one more each call


@dataclass(frozen=True)
class Program:
    """One arm at one problem: its launches in order and all that their arguments name.

    Attributes:
        launches: the launches that hold for the problem.
        workspaces: the kernel's own buffers.
        values: problem variables, parameters and derived values, for the prepare hook.
        scalars: the problem variables as arguments, int32 or float32.
        prepare: the hook that makes further arguments once per process, or None. It is called as
            `prepare(values, arrays, workspaces, device)` and returns arguments by name: device arrays (passed
            as pointers), NumPy scalars, or bytes (passed by value).
    """

    launches: tuple[LaunchConfig, ...]
    workspaces: dict[str, Buffer]
    values: dict[str, Number]
    scalars: dict[str, np.int32 | np.float32]
    prepare: Prepare | None


class PrepareDevice(Protocol):
    """What a prepare hook may ask of the device."""

    def tensor_map(
        self,
        array: Any,
        box: tuple[int, ...],
        *,
        shape: tuple[int, ...] | None = None,
        strides: tuple[int, ...] | None = None,
        swizzle: int = 0,
        l2_promotion: int = 256,
    ) -> bytes:
        """The 128 bytes of a tiled TMA descriptor (a CUtensorMap) of a float32 array.

        Args:
            array: a device array, C order.
            box: the tile, in elements, outermost dimension first like `shape`.
            shape: in place of the array's own shape.
            strides: in bytes, of every dimension but the innermost, in place of C order.
            swizzle: 0, 32, 64 or 128 bytes.
            l2_promotion: 0, 64, 128 or 256 bytes.
        """

    def upload(self, data: bytes | NDArray[Any]) -> Any:
        """A device array with these bytes, aligned to 256 bytes, that lives as long as the arm."""


def make_program(
    operation: Operation,
    kernel: Kernel,
    levels: Mapping[str, str],
    problem: Mapping[str, Number],
    folder: Path,
) -> Program:
    """The program of one build at one problem.

    Args:
        operation: the operation.
        kernel: a kernel with a source.
        levels: a level for every parameter, as in a Build.
        problem: the values of the operation's variables.
        folder: kernels/<operation>, where the prepare hook is.

    Raises:
        LaunchRefused: the kernel cannot run this problem; the arm's status is launch_error.
        UserError: the prepare hook is missing or raises when imported.
    """
    values = names_of(kernel, levels, problem)
    return Program(
        launches=plan_launches(operation, kernel, levels, problem),
        workspaces=workspace_buffers(kernel, values),
        values=values,
        scalars=scalar_arguments(operation, problem),
        prepare=load_prepare(folder, kernel),
    )


def scalar_arguments(operation: Operation, problem: Mapping[str, Number]) -> dict[str, np.int32 | np.float32]:
    """The problem variables as kernels take them: int32, or float32."""
    return {
        name: np.int32(problem[name]) if kind == "int" else np.float32(problem[name])
        for name, kind in operation.problem.items()
    }
