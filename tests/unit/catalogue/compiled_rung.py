"""Rung 24, compiled once for all tests that look into its machine code, by the NVRTC that is here."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

from kernelab.build.kernel import build_kernel
from kernelab.build.toolchain import find_toolchain
from kernelab.plan.catalogue import read_catalogue

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "kernels" / "sgemm"
FRONTIER = ROOT / "benchmarks" / "frontier"
sys.path.insert(0, str(FRONTIER))  # its scripts import one another by name


@cache
def rung_24(**moved: str) -> bytes:
    """The cubin, with these levels in place of the defaults."""
    kernel = read_catalogue(FOLDER / "kernels.yaml", "kernels/sgemm/kernels.yaml").kernels["24_code_gap"]
    levels = {**kernel.defaults(), **moved}
    built = build_kernel(
        FOLDER / str(kernel.source),
        arch="sm_90a",
        toolchain=find_toolchain("nvrtc"),
        defines={key: str(kernel.parameters[key].macro_value(level)) for key, level in levels.items()},
    )
    assert built.compilation.cubin is not None
    return built.compilation.cubin
