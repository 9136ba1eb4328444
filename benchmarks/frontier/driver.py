"""Loads cubins and launches their entries through the CUDA driver: scalars, device arrays, and bytes by value."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


class Driver:
    """A module of the current context. CuPy must have made the context before."""

    def __init__(self, path: str) -> None:
        self._cuda = ctypes.CDLL("libcuda.so.1")
        self._image = Path(path).read_bytes()
        self._module = ctypes.c_void_p()
        self._call("cuModuleLoadData", ctypes.byref(self._module), self._image)

    def bind(
        self, entry: str, grid: tuple[int, ...] | list[int], block: int, shared: int, *arguments: Any
    ) -> Callable[[], None]:
        """A function that launches the entry on the default stream; ctypes arguments are read again at every launch."""
        function = ctypes.c_void_p()
        self._call("cuModuleGetFunction", ctypes.byref(function), self._module, entry.encode())
        if shared > 48 * 1024:
            self._call("cuFuncSetAttribute", function, MAX_DYNAMIC_SHARED, shared)
        storage = [_stored(argument) for argument in arguments]
        addresses = (ctypes.c_void_p * len(storage))(*(ctypes.addressof(item) for item in storage))
        columns, rows = (*grid, 1, 1)[:2]

        def launch(kept: tuple[Any, ...] = (storage, arguments, self)) -> None:
            self._call(
                "cuLaunchKernel", function, columns, rows, 1, block, 1, 1, shared, None, addresses, None
            )

        return launch

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._cuda, name)(*arguments)
        if status:
            raise RuntimeError(f"CUDA {name}: error {status}")


def _stored(argument: Any) -> Any:
    if isinstance(argument, np.generic):
        argument = argument.tobytes()
    if isinstance(argument, bytes):
        return (ctypes.c_char * len(argument)).from_buffer_copy(argument)
    if isinstance(argument, ctypes._SimpleCData):
        return argument
    return ctypes.c_uint64(argument.data.ptr)
