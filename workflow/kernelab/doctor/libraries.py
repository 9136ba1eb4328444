"""The GPU libraries of this Python: CuPy, cuBLAS, and the yardstick nvbench."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from kernelab.doctor.finding import Finding

CUPY = re.compile(r"^cupy-cuda(\d+)x$")
# In a process of its own: a broken CuPy can do worse than raise, and doctor must outlive it.
IMPORT_CUPY = "import cupy; print(cupy.__version__)"


def cupy_packages() -> dict[int, str]:
    """The CuPy wheels that are installed: CUDA major -> version."""
    found = {}
    for distribution in metadata.distributions():
        if match := CUPY.match((distribution.metadata["Name"] or "").lower()):
            found[int(match.group(1))] = distribution.version
    return found


def cupy(driver: tuple[int, int] | None) -> Finding:
    """Whether CuPy imports, and runs on the driver.

    Args:
        driver: the newest CUDA that the driver supports, or None where there is no driver.
    """
    installed = cupy_packages()
    if len(installed) > 1:
        names = " and ".join(f"cupy-cuda{major}x" for major in sorted(installed))
        return Finding("cupy", "missing", f"{names} overwrite each other", "keep one: make clean venv")
    if not installed:
        return Finding("cupy", "missing", "not installed", "make venv")
    ((major, version),) = installed.items()
    if driver is not None and driver[0] < major:
        reason = f"cupy-cuda{major}x {version}, but the driver supports CUDA {driver[0]}.{driver[1]} at most"
        return Finding(
            "cupy", "missing", reason, f"make venv LOCK=gpu-cuda{max(driver[0], 12)}, or a newer driver"
        )
    try:
        done = subprocess.run(
            [sys.executable, "-c", IMPORT_CUPY], capture_output=True, text=True, timeout=120, check=False
        )
        reason = (
            ""
            if done.returncode == 0
            else (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = str(error)
    if reason:
        return Finding(
            "cupy", "missing", f"cupy-cuda{major}x {version} does not import: {reason}", "make clean venv"
        )
    return Finding("cupy", "ok", f"cupy-cuda{major}x {version}")


def cublas(majors: tuple[int, ...]) -> Finding:
    """cuBLAS for the CUDA majors that CuPy is installed for: the yardstick of every GEMM."""
    for major in majors:
        name = f"libcublas.so.{major}"
        if (wheel := _in_wheel(name)) or _loads(name):
            return Finding("cublas", "ok", f"{name}, {wheel or 'of the system'}")
    fix = f"make venv LOCK=gpu-cuda{majors[0] if majors else 12}"
    return Finding("cublas", "warn", "not here: 00_cublas and pct_of_cublas stay empty", fix)


def yardstick() -> Finding:
    """nvbench, against which the timing is held (benchmarks/)."""
    try:
        return Finding("cuda-bench", "ok", metadata.version("cuda-bench"))
    except metadata.PackageNotFoundError:
        return Finding(
            "cuda-bench",
            "ok",
            "not here; only the agreement benchmark needs it: pip install 'cuda-bench[cu12]'",
        )


def _in_wheel(name: str) -> Path | None:
    for entry in sys.path:
        # nvidia/cublas/lib for CUDA 12, nvidia/cu13/lib since.
        for library in Path(entry or ".").glob(f"nvidia/*/lib/{name}"):
            return library
    return None


def _loads(name: str) -> bool:
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True
