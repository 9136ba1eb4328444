"""What a GPU machine without kernelab needs to run an arm of the catalogue at a problem: launches, workspaces, tensor maps."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from kernelab.operation.program import make_program
from kernelab.plan.catalogue import Catalogue, read_catalogue

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "kernels" / "sgemm"
WORK = ROOT / ".frontier"  # everything that is made here; never part of the repository


def catalogue() -> Catalogue:
    """The catalogue of sgemm."""
    return read_catalogue(KERNELS / "kernels.yaml", "kernels/sgemm/kernels.yaml")


def compile_command(source: str, arch: str, defines: Mapping[str, str], cubin: str) -> list[str]:
    """nvcc's command line, from the repository root."""
    macros = [f"-D{name}={value}" for name, value in defines.items()]
    return ["nvcc", "-cubin", f"-arch={arch}", *macros, "-o", cubin, source]


def describe_build(
    cat: Catalogue, name: str, levels: Mapping[str, str], cubin: str | None = None
) -> dict[str, Any]:
    """Source, target and macros of an arm; levels that are not given are the defaults."""
    kernel = cat.kernels[name]
    every = {**kernel.defaults(), **levels}
    label = "_".join([name, *(f"{key}={level}" for key, level in levels.items())])
    return {
        "label": label,
        "cubin": cubin or f".frontier/cubins/{_sources_digest()}/{label}.cubin",
        "source": f"kernels/sgemm/{kernel.source}",
        "arch": "sm_90a",  # rung 23 moves registers between warps; to the others it makes no difference
        "defines": {key: str(kernel.parameters[key].macro_value(level)) for key, level in every.items()},
    }


def describe_run(
    cat: Catalogue, name: str, levels: Mapping[str, str], problem: Mapping[str, Any]
) -> dict[str, Any]:
    """The launches of an arm at a problem."""
    kernel = cat.kernels[name]
    program = make_program(cat.operation, kernel, {**kernel.defaults(), **levels}, problem, KERNELS)
    m, n, k = (int(problem[size]) for size in "mnk")
    arrays = {"A": ("A", (m, k)), "B": ("B", (k, n)), "C": ("C", (m, n))}
    workspaces = {key: (key, tuple(map(int, b.shape))) for key, b in program.workspaces.items()}
    maps = (
        program.prepare(dict(program.values), arrays, workspaces, _Descriptions()) if program.prepare else {}
    )
    return {
        "kernel": name,
        "values": dict(problem),
        "maps": maps,
        "workspaces": {
            key: {"shape": [int(size) for size in b.shape], "dtype": b.dtype, "zero": b.zero}
            for key, b in program.workspaces.items()
        },
        "launches": [
            {
                "entry": launch.entry,
                "grid": list(launch.grid),
                "block": math.prod(launch.block),
                "shared": launch.dynamic_shared,
                "args": list(launch.arguments),
            }
            for launch in program.launches
        ],
    }


@cache
def _sources_digest() -> str:
    """Names what was compiled from the sources as they are now."""
    digest = hashlib.sha256()
    for path in sorted(KERNELS.rglob("*.cu*")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:8]


class _Descriptions:
    """Stands in for the device that a prepare hook asks for tensor maps: writes down what was asked."""

    def tensor_map(
        self,
        array: tuple[str, tuple[int, ...]],
        box: tuple[int, ...],
        *,
        shape: tuple[int, ...] | None = None,
        strides: tuple[int, ...] | None = None,
        swizzle: int = 0,
    ) -> dict[str, Any]:
        """The arguments, with shape and strides in bytes filled in."""
        name, own = array
        shape = shape or own
        strides = strides or tuple(4 * math.prod(shape[axis + 1 :]) for axis in range(len(shape) - 1))
        return {"map": name, "shape": shape, "strides": strides, "box": box, "swizzle": swizzle}
