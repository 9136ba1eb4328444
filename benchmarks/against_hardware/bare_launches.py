"""Launch kernels out of cubins with nothing but the CUDA driver: the program that ncu and compute-sanitizer watch.

    python bare_launches.py JOB.json

JOB.json holds a list of launches (BareLaunch, as plain dictionaries), done in order in one context. It imports only the
standard library and starts in some 50 ms, and no kernel but those of the job is launched. The exit status is 3 where the
driver refuses a call.
"""

from __future__ import annotations

import ctypes
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SPACER = 1 << 16
"""Bytes on either side of an array that belong to no allocation, so that an access outside it is outside all."""

DONE = "all launches are done"
"""What it prints at its end: a watcher that has nothing to report is only believed together with it."""

MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
DEFAULT_SHARED = 48 * 1024


@dataclass(frozen=True)
class BareArray:
    """A device array. contents: a file with its bytes, empty to leave them unwritten; save: where to, empty for nowhere."""

    nbytes: int
    contents: str
    save: str


@dataclass(frozen=True)
class BareLaunch:
    """One launch. An argument is `array:NAME` (its address) or `bytes:HEX` (by value)."""

    cubin: str
    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared: int
    arrays: dict[str, BareArray]
    arguments: tuple[str, ...]


class DriverError(Exception):
    """A call of the driver failed; the text names it and CUDA's reason."""


class Driver:
    """The CUDA driver with the primary context of device 0 current."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise DriverError(f"no CUDA driver: {error}") from None
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function by name.

        Raises:
            DriverError: it does not return CUDA_SUCCESS.
        """
        status = getattr(self._library, name)(*arguments)
        if status != 0:
            text = ctypes.c_char_p()
            self._library.cuGetErrorName(status, ctypes.byref(text))
            raise DriverError(f"{name}: {(text.value or b'unknown').decode()} ({status})")

    def allocate(self, nbytes: int) -> ctypes.c_uint64:
        """A device address."""
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(nbytes))
        return address

    def run(self, launch: BareLaunch) -> None:
        """One launch, from the arrays' allocation to their release."""
        spacers = [self.allocate(SPACER)]
        addresses: dict[str, ctypes.c_uint64] = {}
        for name, array in launch.arrays.items():
            addresses[name] = self.allocate(array.nbytes)
            spacers.append(self.allocate(SPACER))
        for spacer in spacers:
            self.call("cuMemFree_v2", spacer)
        for name, array in launch.arrays.items():
            if array.contents:
                data = Path(array.contents).read_bytes()
                self.call("cuMemcpyHtoD_v2", addresses[name], data, ctypes.c_size_t(len(data)))
        self._launch(launch, addresses)
        for name, array in launch.arrays.items():
            if array.save:
                buffer = ctypes.create_string_buffer(array.nbytes)
                self.call("cuMemcpyDtoH_v2", buffer, addresses[name], ctypes.c_size_t(array.nbytes))
                Path(array.save).write_bytes(buffer.raw)
        for address in addresses.values():
            self.call("cuMemFree_v2", address)

    def _launch(self, launch: BareLaunch, addresses: dict[str, ctypes.c_uint64]) -> None:
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), Path(launch.cubin).read_bytes())
        self.call("cuModuleGetFunction", ctypes.byref(function), module, launch.entry.encode())
        if launch.dynamic_shared > DEFAULT_SHARED:
            self.call("cuFuncSetAttribute", function, MAX_DYNAMIC_SHARED, launch.dynamic_shared)
        stored = [_stored(argument, addresses) for argument in launch.arguments]
        pointers = (ctypes.c_void_p * max(1, len(stored)))(*(ctypes.addressof(item) for item in stored))
        sizes = (*launch.grid, *launch.block, launch.dynamic_shared)
        self.call("cuLaunchKernel", function, *sizes, None, pointers, None)
        self.call("cuCtxSynchronize")
        self.call("cuModuleUnload", module)


def _stored(argument: str, addresses: dict[str, ctypes.c_uint64]) -> Any:
    kind, _, value = argument.partition(":")
    if kind == "array":
        return addresses[value]
    data = bytes.fromhex(value)
    return (ctypes.c_char * len(data)).from_buffer_copy(data)


def read_job(path: Path) -> list[BareLaunch]:
    """The launches of a job file."""
    return [
        BareLaunch(
            **{**one, "arrays": {name: BareArray(**array) for name, array in one["arrays"].items()}},
        )
        for one in json.loads(path.read_text())
    ]


def main() -> int:
    """The command."""
    try:
        driver = Driver()
        for launch in read_job(Path(sys.argv[1])):
            driver.run(launch)
    except DriverError as error:
        print(error, file=sys.stderr)
        return 3
    print(DONE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
