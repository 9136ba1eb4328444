"""Writes .frontier/rungs.json and cubins of rungs 13 to 22: every launch at every problem, for rungs.py to run without kernelab.

Usage: PYTHONPATH=workflow python3 benchmarks/frontier/make_rungs.py [kernel ...]     needs nvcc, no GPU
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

from kernelab.operation.program import make_program
from kernelab.plan.catalogue import read_catalogue

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "kernels" / "sgemm"
WORK = ROOT / ".frontier"
CHECKS: dict[str, dict[str, Any]] = {
    "edges": {"m": 1000, "n": 520, "k": 333, "alpha": 1.5, "beta": -0.5},
    "wide": {"m": 300, "n": 4100, "k": 77, "alpha": 1.0, "beta": 0.0},
    "two_waves": {"m": 4097, "n": 1988, "k": 129, "alpha": 1.0, "beta": 0.0},
    "late_at_once": {"m": 4100, "n": 1988, "k": 132, "alpha": -1.0, "beta": 0.25},
    "late_in_slices": {"m": 6000, "n": 3000, "k": 700, "alpha": 1.0, "beta": 0.0},
    "odd": {"m": 513, "n": 1023, "k": 255, "alpha": 1.0, "beta": 1.0},
    "shallow": {"m": 5000, "n": 5000, "k": 8, "alpha": 1.0, "beta": 0.0},
}
TIMES: dict[str, dict[str, Any]] = {
    "square_4096": {"m": 4096, "n": 4096, "k": 4096, "alpha": 1.0, "beta": 0.0},
    "square_1024": {"m": 1024, "n": 1024, "k": 1024, "alpha": 1.0, "beta": 0.0},
    "square_2048": {"m": 2048, "n": 2048, "k": 2048, "alpha": 1.0, "beta": 0.0},
    "square_8192": {"m": 8192, "n": 8192, "k": 8192, "alpha": 1.0, "beta": 0.0},
    "frontier_ragged": {"m": 4001, "n": 3996, "k": 1023, "alpha": 1.0, "beta": 0.5},
    "skinny": {"m": 16384, "n": 512, "k": 4096, "alpha": 1.0, "beta": 0.0},
    "deep": {"m": 1024, "n": 1024, "k": 16384, "alpha": 1.0, "beta": 0.0},
}
RUNGS = "13_final 14_swizzled 15_interleaved 16_serpentine 17_cp_async_ring 18_tma_ring 19_rotating_producer 20_early_poll"
RUNGS += " 21_stream_k 22_late_transposition"
AT_ALL_SIZES = ("16", "20", "21", "22")


class Descriptions:
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


def main(names: list[str]) -> None:
    """Writes the cubins and the list of launches of these kernels."""
    catalogue = read_catalogue(KERNELS / "kernels.yaml", "kernels/sgemm/kernels.yaml")
    operation = catalogue.operation
    (WORK / "rungs").mkdir(parents=True, exist_ok=True)
    helpers = Path(__file__).with_name("device_helpers.cu")
    subprocess.run(
        ["nvcc", "-cubin", "-arch=sm_90", "-o", str(WORK / "device_helpers.cubin"), str(helpers)], check=True
    )
    runs = []
    for name in names:
        kernel = catalogue.kernels[name]
        cubin = WORK / "rungs" / f"{name}.cubin"
        subprocess.run(
            ["nvcc", "-cubin", "-arch=sm_90", "-o", str(cubin), str(KERNELS / str(kernel.source))], check=True
        )
        levels = {key: str(value.default).lower() for key, value in kernel.parameters.items()}
        times = {k: v for k, v in TIMES.items() if k == "square_4096" or name.startswith(AT_ALL_SIZES)}
        for kind, problems in (("check", {**operation.checks, **CHECKS}), ("time", times)):
            for problem, values in problems.items():
                program = make_program(operation, kernel, levels, values, KERNELS)
                arrays = {key: (key, tuple(buffer)) for key, buffer in shapes(dict(values)).items()}
                workspaces = {key: (key, tuple(map(int, b.shape))) for key, b in program.workspaces.items()}
                extra = (
                    program.prepare(dict(program.values), arrays, workspaces, Descriptions())
                    if program.prepare
                    else {}
                )
                runs.append(
                    {
                        "kernel": name,
                        "kind": kind,
                        "problem": problem,
                        "values": dict(values),
                        "workspaces": {
                            key: {"shape": [int(n) for n in b.shape], "dtype": b.dtype, "zero": b.zero}
                            for key, b in program.workspaces.items()
                        },
                        "extra": extra,
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
                )
    (WORK / "rungs.json").write_text(json.dumps(runs))
    print(f"{len(runs)} runs of {len(names)} kernels in {WORK.name}/rungs.json")


def shapes(values: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Shapes of the arrays of sgemm."""
    m, n, k = int(values["m"]), int(values["n"]), int(values["k"])
    return {"A": (m, k), "B": (k, n), "C": (m, n)}


if __name__ == "__main__":
    main(sys.argv[1:] or RUNGS.split())
