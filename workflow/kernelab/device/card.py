"""What a record says of the card and of the libraries on it, as far as driver and NVML say it."""

from __future__ import annotations

import contextlib
import importlib.metadata
from typing import TYPE_CHECKING

from kernelab.device.cuda_faults import translated
from kernelab.device.nvml import Monitor

if TYPE_CHECKING:
    from kernelab.device.cuda import Session


def memory_bus_bits(session: Session) -> int | None:
    """Width of the memory bus, in bits."""
    runtime = session.cupy.cuda.runtime
    with translated():
        return int(runtime.deviceGetAttribute(runtime.cudaDevAttrGlobalMemoryBusWidth, session.index)) or None


def cublas_version(session: Session) -> str:
    """The version of the cuBLAS that is loaded, such as 130100; empty where there is none."""
    with contextlib.suppress(Exception):
        # Any failure: cuBLAS is optional, and its version only a fact for the record.
        cupy = session.cupy
        return str(cupy.cuda.cublas.getVersion(cupy.cuda.device.get_cublas_handle()))
    return ""


def driver_version(monitor: Monitor) -> str:
    """The driver's version, such as 580.159.04, by NVML; empty where NVML does not answer. Makes no context."""
    if not monitor.available:
        return ""
    import pynvml

    with contextlib.suppress(pynvml.NVMLError):
        version = pynvml.nvmlSystemGetDriverVersion()
        return version.decode() if isinstance(version, bytes) else str(version)
    return ""


def cupy_version() -> str:
    """The version of the CuPy that is installed, without importing it; empty where there is none."""
    for name in ("cupy-cuda12x", "cupy-cuda13x", "cupy"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            return importlib.metadata.version(name)
    return ""
