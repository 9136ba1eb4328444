"""What would rung 24 gain if ...: changes the machine code of a kernel's hot loop and times what comes out.

Usage: PYTHONPATH=workflow python3 benchmarks/frontier/what_if.py CUBIN [kernel[:SETTING=level ...]]     needs nvcc, no GPU
       python3 benchmarks/frontier/what_if.py time [change ...]     writes what_if.csv to $OUT or .frontier/; BUDGET is seconds
The first makes the changed cubins (changes.py) under .frontier/what_if/, and says what each changes and how many conflicts
it leaves; the kernel, rung 24 where none is named, says how to launch them. The second times them against cuBLAS at 4096
cubed, what was there before first and last. Results are wrong, so a time says what a part of the loop costs, no more: what
is loaded no longer changes fewer bits, too, and where power limits the clock that alone can make a kernel faster.
"""

from __future__ import annotations

import csv
import json
import os
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from banks import text, two_reads
from bench import WORK, compile_helpers, run_jobs
from changes import CHANGES, Change, apply
from instruction import Instruction
from loop import hottest
from placement import placement
from problems import TIMES

ROUNDS = 24
JOBS = WORK / "what_if.json"
BASE = "as_it_is"
FIELDS = ["change", "words", "conflicts", "percent", "ms", "cublas_ms"]


@dataclass(frozen=True)
class Changed:
    """A cubin with another hot loop, or other spare warps."""

    cubin: bytes
    conflicts: int  # FFMAs of the loop that must read two registers of a bank
    different: int  # instructions that are not what they were in their place


def changed(cubin: bytes, change: Change, entry: str = "sgemm") -> Changed:
    """Applies a change. Raises ValueError where it, or a part of it, is not about code like this."""
    section = text(cubin, entry)
    before = list(struct.iter_unpack("<QQ", section))
    code = [Instruction(low | high << 64) for low, high in before]
    first, last = hottest(before)
    spare = placement(cubin, entry).spare
    apply(change, code, (first, last), (spare[0] // 16, spare[1] // 16))
    after = [instruction.halves for instruction in code]
    at = cubin.index(section)
    made = b"".join(struct.pack("<QQ", *halves) for halves in after)
    return Changed(
        cubin=cubin[:at] + made + cubin[at + len(section) :],
        conflicts=two_reads(after[first : last + 1])[1],
        different=sum(old != new for old, new in zip(before, after, strict=True)),
    )


def make(path: Path, spec: str) -> None:
    """Writes the changed cubins, and what_if.json with their launches."""
    from describe import catalogue, describe_run

    from kernelab.errors import UserError

    if not path.is_file():
        sys.exit(f"{path}: no such file; make_rungs.py compiles rungs to .frontier/rungs/")
    name, *settings = spec.split(":")
    cat = catalogue()
    if name not in cat.kernels:
        sys.exit(f"{name}: no such kernel; one of {', '.join(cat.kernels)}")
    cubin = path.read_bytes()
    try:
        changed(cubin, CHANGES[BASE])
    except (ValueError, struct.error) as error:
        sys.exit(f"{path}: no cubin of an sgemm: {error}; make_rungs.py compiles rungs to .frontier/rungs/")
    try:
        levels = dict(setting.split("=") for setting in settings)
        run = describe_run(cat, name, levels, TIMES["square_4096"])
    except (UserError, ValueError, KeyError) as error:
        sys.exit(f"{spec}: no settings of {name}: {error}; write kernel:SETTING=level")
    compile_helpers()
    folder = WORK / "what_if"
    folder.mkdir(exist_ok=True)
    jobs: list[dict[str, Any]] = []
    for key, change in CHANGES.items():
        try:
            found = changed(cubin, change)
        except ValueError as error:
            print(f"{key:24s}left out: {error}")
            continue
        (folder / f"{key}.cubin").write_bytes(found.cubin)
        jobs.append(
            {
                "id": key,
                "family": key,
                "cubin": f"{WORK.name}/what_if/{key}.cubin",
                "check": 1,
                "rounds": ROUNDS,
                "time_if_bad": True,
                "words": change.words,
                "conflicts": found.conflicts,
                **run,
            }
        )
        print(f"{key:24s}{found.different:6d} changed {found.conflicts:6d} conflicts  {change.words}")
    JOBS.write_text(json.dumps(jobs))


def measure(names: list[str]) -> None:
    """Times what make() wrote, of these changes alone where any are named, and the cubin as it is."""
    if not JOBS.is_file():
        sys.exit(f"{WORK.name}/{JOBS.name} is missing: run what_if.py CUBIN first")
    jobs: dict[str, dict[str, Any]] = {job["id"]: job for job in json.loads(JOBS.read_text())}
    if unknown := [name for name in names if name not in jobs]:
        sys.exit(f"{', '.join(unknown)}: not made; one of {', '.join(jobs)}")
    wanted = [name for name in names or jobs if name != BASE]
    order = [jobs[name] for name in (BASE, *wanted, BASE)]
    rows = []
    for result in run_jobs(order, float(os.environ.get("BUDGET", "170"))):
        row = row_of(result, jobs[result["id"]])
        print(f"{row['percent']:>7}%  {row['conflicts']:4d} conflicts  {row['change']:24s}{row['words']}")
        if "error" in result:
            print(result["id"], result["error"], file=sys.stderr)
        rows.append(row)
    with open(Path(os.environ.get("OUT", WORK)) / "what_if.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(rows)
    print(f"{len(order) - len(rows)} of {len(order)} not reached")


def row_of(result: dict[str, Any], job: dict[str, Any]) -> dict[str, Any]:
    """A line of the CSV; without times where the arm hung or crashed."""
    times = {
        key: round(result[key], digits) if key in result else ""
        for key, digits in (("percent", 2), ("ms", 5), ("cublas_ms", 5))
    }
    return {"change": job["id"], "words": job["words"], "conflicts": job["conflicts"], **times}


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["time", *names]:
            measure(names)
        case [cubin]:
            make(Path(cubin), "24_code_gap")
        case [cubin, spec]:
            make(Path(cubin), spec)
        case _:
            sys.exit(str(__doc__))
