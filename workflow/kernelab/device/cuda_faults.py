"""What CUDA's error codes say about whom: the kernel (data, a status) or the machine (an exception). No CuPy.

Codes and their meanings: cudaError and CUresult in the CUDA Runtime and Driver API references; the two share their
numbers from 100 on, and below that where it matters here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from kernelab.errors import BrokenMachine

FaultStatus = Literal["launch_error", "memory_fault", "timeout"]

MEMORY_FAULTS = {
    700: "illegal address",
    714: "hardware stack error",
    716: "misaligned address",
    717: "instruction on the wrong address space",
    718: "invalid program counter",
    # The runtime reference names an invalid pointer and out-of-bounds shared memory as its common causes. Driver 580 reports a
    # trap so, too.
    719: "unspecified launch failure, commonly out-of-bounds shared memory or a trap",
}
LAUNCH_ERRORS = {
    1: "invalid value",
    9: "invalid configuration",
    13: "invalid symbol",
    98: "invalid device function",
    200: "the cubin is damaged",
    209: "the cubin is for another architecture",
    218: "the PTX does not assemble",
    222: "the PTX is newer than the driver",
    223: "the PTX cannot be compiled by this driver",
    300: "invalid source",
    301: "file not found",
    400: "invalid handle",
    500: "the entry does not exist in the cubin",
    701: "out of resources: registers or shared memory for a block of this size",
    710: "device-side assertion",
    715: "illegal instruction or trap",
    720: "cooperative launch too large",
}
TIMEOUTS = {702: "stopped by the display watchdog"}
# After these the context is dead: every later call returns the same code.
STICKY = frozenset({700, 702, 710, 714, 715, 716, 717, 718, 719})


class KernelFault(Exception):
    """A kernel that could not be launched, or broke while it ran.

    Attributes:
        status: launch_error, memory_fault or timeout.
        sticky: the CUDA context is dead, so the process can do nothing more with the card.
    """

    def __init__(self, status: FaultStatus, message: str, *, sticky: bool = False) -> None:
        super().__init__(message)
        self.status: FaultStatus = status
        self.sticky = sticky


def judge(code: int, text: str) -> KernelFault | BrokenMachine:
    """The exception that a CUDA error code stands for.

    Args:
        code: a cudaError or CUresult.
        text: CuPy's message, such as `CUDA_ERROR_NOT_FOUND: named symbol not found`.
    """
    tables: tuple[tuple[FaultStatus, dict[int, str]], ...] = (
        ("memory_fault", MEMORY_FAULTS),
        ("launch_error", LAUNCH_ERRORS),
        ("timeout", TIMEOUTS),
    )
    for status, table in tables:
        if code in table:
            return KernelFault(status, f"{table[code]} ({text})", sticky=code in STICKY)
    return BrokenMachine(f"CUDA error {code}: {text}")


@contextmanager
def translated() -> Iterator[None]:
    """Turns CuPy's errors inside the block into KernelFault or BrokenMachine.

    CuPy's driver and runtime errors carry `status`, the CUDA code; its OutOfMemoryError is a MemoryError. Recognised
    by name and attribute, so that this needs no CuPy.
    """
    try:
        yield
    except (KernelFault, BrokenMachine):
        raise
    except MemoryError as error:
        raise BrokenMachine(f"no memory: {_one_line(error)}") from error
    except Exception as error:
        kind, code = type(error).__name__, getattr(error, "status", None)
        if kind in ("CUDADriverError", "CUDARuntimeError") and isinstance(code, int):
            raise judge(code, _one_line(error)) from error
        if kind == "CUBLASError":
            raise BrokenMachine(f"cuBLAS: {_one_line(error)}") from error
        raise


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
