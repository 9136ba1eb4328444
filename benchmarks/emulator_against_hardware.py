"""Does the emulated device agree with ncu and compute-sanitizer? Its counters and its verdicts, against the card's.

    PYTHONPATH=workflow python benchmarks/emulator_against_hardware.py --out FOLDER

Needs a GPU, ncu with permission to read counters, compute-sanitizer and a compiler. Kernels of the catalogue run once under
ncu, all in one process, and on the emulated device, from the same compilation and inputs: FOLDER/counters.csv. Planted faults
and their clean twins run under the tool that must see them, and on the emulated device: FOLDER/hazards.csv. The exit status is
1 where a counter is off by more than 1% without an explanation, or a verdict differs.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import astuple, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from against_hardware.counters import (
    Case,
    bare_launch,
    build_case,
    catalogued,
    emulate_case,
    judge_output,
    profile_launches,
)
from against_hardware.rows import NEVER_WRONG, CounterRow, close, compare_counters
from against_hardware.verdicts import HazardRow, compare_verdicts

from kernelab.build.toolchain import find_toolchain
from kernelab.device.identify import Gpu, list_gpus
from kernelab.device.lock import card_lock
from kernelab.errors import UserError

EXACT: dict[str, Mapping[str, int | float]] = {
    "sgemm": {"m": 256, "n": 256, "k": 128, "alpha": 1.0, "beta": 0.0},
    "triad": {"n": 8192, "s": 3.0},
}
RAGGED: dict[str, Mapping[str, int | float]] = {
    "sgemm": {"m": 131, "n": 67, "k": 45, "alpha": 1.5, "beta": -0.5},
    "triad": {"n": 4099, "s": -0.5},
}
RAGGED_KERNELS = ("02_gmem_coalesced", "08_warptiling", "13_final", "triad_vectorized")
LAST_RUNG = "13"
SANITIZERS_AT_ONCE = 10


def cases(root: Path) -> list[Case]:
    """Rungs 01 to 13, the cp.async kernels of one launch and the triads at an exact problem; some at a ragged one too."""
    found = []
    for operation in EXACT:
        folder = (root / "kernels" / operation).resolve()
        _, kernels = catalogued(folder)
        for name, kernel in kernels.items():
            number = name.partition("_")[0]
            if kernel.source is None or kernel.workspaces or (number.isdigit() and number > LAST_RUNG):
                continue
            found.append(Case(str(folder), name, "exact", EXACT[operation]))
            if name in RAGGED_KERNELS:
                found.append(Case(str(folder), name, "ragged", RAGGED[operation]))
    return found


def compare_all_counters(
    asked: Sequence[Case], folder: Path, arch: str, toolchain: str
) -> tuple[list[CounterRow], list[str]]:
    """Build, emulate and profile the cases.

    Returns:
        The rows, and a line for each case whose result is wrong on either device.
    """
    cores = os.cpu_count() or 1
    with ThreadPoolExecutor(cores) as pool:
        prepared = list(pool.map(lambda case: build_case(case, arch, toolchain), asked))
    with ProcessPoolExecutor(min(cores, len(asked))) as processes:
        waited = [processes.submit(emulate_case, one) for one in prepared]
        folders = [folder / f"{number:02}" for number in range(len(prepared))]
        for place in folders:
            place.mkdir()
        launches = [bare_launch(one, place) for one, place in zip(prepared, folders, strict=True)]
        kernels = profile_launches(launches, folder)
        emulated = [one.result() for one in waited]
    rows: list[CounterRow] = []
    wrong = []
    for one, place, ours, theirs in zip(prepared, folders, emulated, kernels, strict=True):
        rows += compare_counters(one.case.kernel, one.case.problem, ours.counters, theirs, one.code)
        if fault := judge_output(one, place, ours):
            wrong.append(f"{one.case.kernel} {one.case.problem}: {fault}")
    return rows, wrong


def show_counters(rows: Sequence[CounterRow], wrong: Sequence[str]) -> bool:
    """Print what is off by more than 1%, and how much is not; whether nothing is left unexplained."""
    compared = [row for row in rows if row.explanation not in NEVER_WRONG]
    within = [row for row in compared if row.measured is not None and close(row.emulated, row.measured)]
    print(
        f"{'kernel':<27}{'problem':<9}{'counter':<25}{'emulated':>10}{'measured':>10}{'ratio':>8}  explanation"
    )
    for row in compared:
        if row not in within:
            numbers = f"{row.emulated:>10}{row.measured or 0:>10.0f}{row.ratio or 0:>8.4f}"
            print(
                f"{row.kernel:<27}{row.problem:<9}{row.counter:<25}{numbers}  {row.explanation or 'UNEXPLAINED'}"
            )
    for line in wrong:
        print(f"WRONG RESULT: {line}")
    unexplained = [row for row in compared if not row.agrees]
    print(
        f"counters: {len(within)} of {len(compared)} within 1%, {len(compared) - len(within) - len(unexplained)} explained, "
        f"{len(unexplained)} unexplained"
    )
    return not unexplained and not wrong


def show_hazards(rows: Sequence[HazardRow]) -> bool:
    """Print every verdict; whether all agree."""
    print(f"{'fault':<49}{'tool':<11}{'twin':<9}{'sanitizer':<22}{'emulator':<40}")
    for row in rows:
        verdicts = f"{row.sanitizer[:21]:<22}{row.emulator[:39]:<40}"
        print(
            f"{row.fault:<49}{row.tool:<11}{row.twin:<9}{verdicts}{'' if row.agree else 'DIFFERS: ' + row.sanitizer_line}"
        )
    agreed = sum(row.agree for row in rows)
    print(f"hazards: {agreed} of {len(rows)} verdicts agree")
    return agreed == len(rows)


def write_csv(path: Path, kind: type[Any], rows: Sequence[Any]) -> None:
    """Rows of a dataclass as CSV."""
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([field.name for field in fields(kind)])
        for row in rows:
            cells = astuple(row)
            # Counts of ncu are floats without a fraction, and are written whole.
            writer.writerow([f"{v:.12g}" if isinstance(v, float) else v for v in cells])


def _gpu() -> Gpu:
    found = list_gpus()
    if not found:
        raise UserError("no GPU is visible to CUDA; this compares the emulated device with one")
    return found[0]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", type=Path, default=Path(), help="the project's folder")
    parser.add_argument("--out", type=Path, required=True, help="folder for counters.csv and hazards.csv")
    parser.add_argument("--toolchain", default="nvcc", choices=("nvcc", "nvrtc"))
    parser.add_argument("--only", choices=("counters", "hazards"), help="one half of it")
    parser.add_argument(
        "--at-once", type=int, default=SANITIZERS_AT_ONCE, help="processes of compute-sanitizer"
    )
    options = parser.parse_args(arguments)
    began = time.monotonic()
    options.out.mkdir(parents=True, exist_ok=True)
    good = True
    try:
        gpu = _gpu()
        with card_lock(gpu.uuid):
            # Each half stands alone: what fails in one must not cost the other.
            for half in (options.only,) if options.only else ("counters", "hazards"):
                with TemporaryDirectory(prefix="kernelab-") as scratch:
                    good &= _half(half, options, Path(scratch), gpu.arch)
                print(f"{half} took until {time.monotonic() - began:.0f} s", flush=True)
    except UserError as error:
        print(error, file=sys.stderr)
        return 1
    return 0 if good else 1


def _half(half: str, options: argparse.Namespace, scratch: Path, arch: str) -> bool:
    try:
        if half == "counters":
            rows, wrong = compare_all_counters(cases(options.root), scratch, arch, options.toolchain)
            write_csv(options.out / "counters.csv", CounterRow, rows)
            return show_counters(rows, wrong)
        verdicts = compare_verdicts(scratch, find_toolchain(options.toolchain), arch, options.at_once)
        write_csv(options.out / "hazards.csv", HazardRow, verdicts)
        return show_hazards(verdicts)
    except UserError as error:
        print(f"{half}: {error}", file=sys.stderr)
        return False


if __name__ == "__main__":
    sys.exit(main())
