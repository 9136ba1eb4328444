"""What checking a kernel on the emulated device costs, against problem size, for each kernel of a catalogue.

    PYTHONPATH=workflow python benchmarks/emulator.py --sizes 128 256 512 --csv emulator.csv

For each kernel, at its default parameters: seconds to parse the PTX, to compile it into steps (once for a build), and to
run each size with counters and races, with counters alone, and with neither. Compiling the CUDA source is not counted.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernelab.build.compiler import compile_source
from kernelab.build.toolchain import find_toolchain
from kernelab.device.emulated import (
    EmulationError,
    GlobalMemory,
    Launch,
    Module,
    emulate,
    parse_ptx,
    tensor_map,
)
from kernelab.device.emulated.program import compile_entry
from kernelab.operation.launches import Buffer, LaunchRefused, array_buffers
from kernelab.operation.program import EPOCH, Program, make_program
from kernelab.plan.catalogue import Catalogue, Kernel, read_catalogue

COLUMNS = (
    "kernel",
    "size",
    "parse_s",
    "group_s",
    "full_s",
    "counters_s",
    "bare_s",
    "instructions",
    "per_gflop_s",
    "status",
)
Values = dict[str, int | float]
MODES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("full_s", {}),
    ("counters_s", {"detect_races": False}),
    ("bare_s", {"detect_races": False, "count": False}),
)


def measure(
    folder: Path, catalogue: Catalogue, name: str, sizes: Sequence[int], arch: str
) -> list[dict[str, float | str]]:
    """One row for each size; a kernel that cannot run says so in its status."""
    kernel = catalogue.kernels[name]
    levels = kernel.defaults()
    defines = {p: str(kernel.parameters[p].macro_value(level)) for p, level in levels.items()}
    arch = (
        arch if not kernel.min_arch or int(arch.strip("sm_a")) >= kernel.min_arch else f"sm_{kernel.min_arch}"
    )
    built = compile_source(
        folder / str(kernel.source), arch=arch, toolchain=find_toolchain("nvrtc"), defines=defines
    )
    if not built.ok:
        return [{"kernel": name, "status": f"compile_error: {built.error}"}]
    began = time.perf_counter()
    module = parse_ptx(built.ptx)
    parsed = time.perf_counter()
    for entry in module.entries:
        compile_entry(module, entry)
    grouped = time.perf_counter()
    rows = []
    for size in sizes:
        row: dict[str, float | str] = {
            "kernel": name,
            "size": size,
            "parse_s": parsed - began,
            "group_s": grouped - parsed,
        }
        try:
            row |= one_size(folder, catalogue, kernel, levels, module, size)
        except (EmulationError, LaunchRefused) as refused:
            row["status"] = str(refused)
        rows.append(row)
    return rows


def one_size(
    folder: Path, catalogue: Catalogue, kernel: Kernel, levels: Mapping[str, str], module: Module, size: int
) -> dict[str, float | str]:
    """Seconds in each mode, for a square problem."""
    values: Values = {"m": size, "n": size, "k": size, "alpha": 1.0, "beta": 0.0}
    program = make_program(catalogue.operation, kernel, levels, values, folder)
    row: dict[str, float | str] = {}
    for column, options in MODES:
        device = Device(catalogue, values, program)
        statuses, instructions = [], 0
        began = time.perf_counter()
        for launch in device.launches:
            result = emulate(module, launch, device.memory, **options)
            statuses.append(result.status)
            instructions += result.instructions
        row[column] = time.perf_counter() - began
        row["status"] = next((s for s in statuses if s != "ok"), "ok")
        row["instructions"] = instructions
    row["per_gflop_s"] = float(row["full_s"]) / (2e-9 * size**3)
    return row


class Device:
    """Arrays of one problem on the emulated device, and what a prepare hook may ask of it."""

    def __init__(self, catalogue: Catalogue, values: Values, program: Program) -> None:
        self.memory = GlobalMemory()
        rng = np.random.default_rng(1)
        self.named: dict[str, Any] = dict(program.scalars) | {EPOCH: 1}
        arrays, workspaces = (
            {name: self._array(name, buffer, rng) for name, buffer in group.items()}
            for group in (array_buffers(catalogue.operation, values), program.workspaces)
        )
        if program.prepare is not None:
            self.named |= program.prepare(dict(program.values), arrays, workspaces, self)
        self.launches = [
            Launch(c.entry, c.grid, c.block, [self.named[a] for a in c.arguments], c.dynamic_shared)
            for c in program.launches
        ]

    def _array(self, name: str, buffer: Buffer, rng: np.random.Generator) -> Array:
        contents = rng.uniform(-1, 1, buffer.shape).astype(buffer.dtype)
        self.named[name] = self.memory.allocate(name, np.zeros_like(contents) if buffer.zero else contents)
        return Array(self.named[name], buffer.shape)

    def tensor_map(
        self,
        array: Array,
        box: tuple[int, ...],
        *,
        shape: tuple[int, ...] | None = None,
        strides: tuple[int, ...] | None = None,
        swizzle: int = 0,
        l2_promotion: int = 256,
    ) -> bytes:
        """As cuTensorMapEncodeTiled on hardware; the promotion changes nothing here."""
        return tensor_map(array.address, shape or array.shape, box, strides=strides, swizzle=swizzle)


@dataclass(frozen=True)
class Array:
    """A device array, as a prepare hook sees it."""

    address: int
    shape: tuple[int, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table and, if asked, write it as CSV; exit status 1 when a kernel did not run clean."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=Path("kernels/sgemm"))
    parser.add_argument("--sizes", type=int, nargs="+", default=[128, 256])
    parser.add_argument("--kernels", nargs="*", default=[])
    parser.add_argument("--arch", default="sm_86")
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args(arguments)
    catalogue = read_catalogue(options.folder / "kernels.yaml", str(options.folder / "kernels.yaml"))
    names = options.kernels or [name for name, kernel in catalogue.kernels.items() if kernel.source]
    rows = []
    print("".join(f"{column:>13}" if column != "kernel" else f"{column:26}" for column in COLUMNS))
    for name in names:
        for row in measure(options.folder.resolve(), catalogue, name, options.sizes, options.arch):
            rows.append(row)
            cells = [row.get(column, "") for column in COLUMNS]
            print(
                f"{cells[0]:26}"
                + "".join(
                    f"{cell:>13.3f}" if isinstance(cell, float) else f"{cell!s:>13}" for cell in cells[1:]
                ),
                flush=True,
            )
    if options.csv is not None:
        with options.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(rows)
    return 0 if all(row.get("status") == "ok" for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
