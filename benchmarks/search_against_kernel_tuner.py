"""One search by kernel_tuner and by `python -m kernelab search`, side by side: wall time, its phases, and the best found.

    PYTHONPATH=workflow python benchmarks/search_against_kernel_tuner.py [--csv FILE] [--skip-kernel-tuner]

Needs a GPU and, for its half, the package kernel_tuner (1.5 was used). Both search one space of config.yaml (seed_a_space), with
the same source at the same problem, each in a fresh copy of the project, with empty caches:

kernel_tuner     brute force with its CuPy backend, every result checked; the wall time is that of `tune_kernel` alone: Python's
                 start, the imports, the inputs and the reference are left out. The phases are its own account.
kernelab, cold   the whole command, Python's start included; its phases overlap
kernelab, again  the same command with nothing new

The floor is what all compiles take one by one, over the cores: the smaller of both tools' sums.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from against_kernel_tuner.project import FreshProject, Ran
from against_kernel_tuner.space import tuned_kernel

from kernelab.device.identify import identify
from kernelab.errors import UserError
from kernelab.plan.load import load_plan
from kernelab.plan.space import Space
from kernelab.records.search import SearchRow

SEARCH = "seed_a_space"
LIMIT_S = 400.0
AIMS = {"kernelab, cold": "aim 18", "kernelab, again": "aim 2", "cold over floor": "aim 1.3"}


@dataclass(frozen=True)
class Line:
    """One figure: a number with its unit, or words."""

    figure: str
    value: float | str
    unit: str = ""
    aim: str = ""


@dataclass(frozen=True)
class Best:
    """The best configuration that a tool found, and its time (ms) by that tool's clock."""

    levels: dict[str, str]
    time_ms: float

    @property
    def name(self) -> str:
        return ",".join(f"{name}={level}" for name, level in self.levels.items())


@dataclass(frozen=True)
class Theirs:
    """What kernel_tuner made of it; `found` is None where it was stopped or failed, and `note` says so."""

    wall_s: float
    found: dict[str, Any] | None
    note: str

    @property
    def times(self) -> list[Best]:
        """Every configuration that it timed, best first."""
        timed = [c for c in (self.found or {}).get("configurations", []) if c["time_ms"] is not None]
        return [Best(c["levels"], c["time_ms"]) for c in sorted(timed, key=lambda c: float(c["time_ms"]))]

    @property
    def compile_s(self) -> float | None:
        """Its compiles one by one, the loading of each module included."""
        return float(self.found["phases_s"]["compile"]) if self.found else None


@dataclass(frozen=True)
class Ours:
    """What kernelab made of it."""

    cold_s: float
    again_s: float
    record: dict[str, Any]
    rows: list[SearchRow]
    compiles: list[float]

    @property
    def times(self) -> list[Best]:
        """Every configuration that it raced, by its rank."""
        return [Best(row.levels, row.time_ms) for row in self.rows if row.rank and row.time_ms is not None]


def run_theirs(root: Path, folder: Path, name: str, limit_s: float) -> Theirs:
    """kernel_tuner in a fresh copy."""
    out = folder / "kernel_tuner.json"
    ran = FreshProject(root, folder).run(["-m", "against_kernel_tuner.tune", name, str(out)], limit_s)
    if ran.status == 0:
        found = json.loads(out.read_text(encoding="utf-8"))
        return Theirs(float(found["wall_s"]), found, "")
    if ran.status is None:
        done = sum("time=" in line for line in ran.words.splitlines())
        return Theirs(ran.wall_s, None, f"stopped after {limit_s:g} s, with {done} configurations timed")
    return Theirs(ran.wall_s, None, f"failed: {_last_words(ran)}")


def run_ours(root: Path, folder: Path, name: str, limit_s: float) -> Ours:
    """kernelab in a fresh copy, and again in the same.

    Raises:
        UserError: it failed, or was not done within the limit.
    """
    project = FreshProject(root, folder)
    walls = []
    for turn in ("cold", "again"):
        ran = project.run(["-m", "kernelab", "search", name], limit_s)
        if ran.status != 0:
            what = (
                f"was not done after {limit_s:g} s" if ran.status is None else f"failed: {_last_words(ran)}"
            )
            raise UserError(f"kernelab search {name} ({turn}) {what}")
        walls.append(ran.wall_s)
        if turn == "cold":
            record, rows = project.searched(name)
    return Ours(walls[0], walls[1], record, rows, project.compile_seconds())


def figures(theirs: Theirs | None, ours: Ours, cores: int, configurations: int) -> Iterator[Line]:
    """Every figure of the comparison."""
    yield Line("configurations", configurations)
    yield Line("cores", cores)
    if theirs is not None:
        yield Line("kernel_tuner, wall", theirs.wall_s, "s", theirs.note)
        for phase, seconds in (theirs.found or {}).get("phases_s", {}).items():
            yield Line(f"kernel_tuner, {phase}", float(seconds), "s")
    yield Line("kernelab, cold", ours.cold_s, "s", AIMS["kernelab, cold"])
    for phase, seconds in ours.record["seconds"].items():
        yield Line(f"kernelab, {phase}", float(seconds), "s")
    yield Line("kernelab, again", ours.again_s, "s", AIMS["kernelab, again"])
    if theirs is not None and theirs.found is not None:
        yield Line("kernel_tuner over kernelab, cold", theirs.wall_s / ours.cold_s)
    sums = [total for total in (sum(ours.compiles), theirs.compile_s if theirs else None) if total]
    if sums:
        floor = min(sums) / cores
        yield Line("compiles one by one, over the cores: the floor", floor, "s")
        yield Line("kernelab, cold over floor", ours.cold_s / floor, "", AIMS["cold over floor"])
    yield from _best(theirs, ours)


def _best(theirs: Theirs | None, ours: Ours) -> Iterator[Line]:
    """The best of each, by its own clock and by the other's: of two clocks only ratios within one can be compared."""
    mine = ours.times
    if mine:
        yield Line("kernelab, best", mine[0].name)
        yield Line("kernelab, time of its best", mine[0].time_ms, "ms")
    other = theirs.times if theirs else []
    if not other:
        return
    yield Line("kernel_tuner, best", other[0].name)
    yield Line("kernel_tuner, time of its best", other[0].time_ms, "ms")
    if not mine:
        return
    by_levels = {frozenset(one.levels.items()): one.time_ms for one in other}
    if (found := by_levels.get(frozenset(mine[0].levels.items()))) is not None:
        yield Line("kernelab's best over kernel_tuner's, by kernel_tuner's clock", found / other[0].time_ms)
    rows = {frozenset(row.levels.items()): row for row in ours.rows}
    row = rows.get(frozenset(other[0].levels.items()))
    if row is not None and row.rank is not None:
        yield Line("rank of kernel_tuner's best in kernelab's race", row.rank)
        if row.ratio and ours.rows[0].ratio:
            yield Line(
                "kernelab's best over kernel_tuner's, by kernelab's ratios", ours.rows[0].ratio / row.ratio
            )


def _last_words(ran: Ran) -> str:
    """The last line of a command that failed; all that it said goes to stderr."""
    print(ran.words, file=sys.stderr)
    lines = [line.strip() for line in ran.words.splitlines() if line.strip()]
    return (lines or ["it said nothing"])[-1][:300]


def write(path: Path, lines: Sequence[Line]) -> None:
    """The figures as csv."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("figure", "value", "unit", "note"))
        for line in lines:
            value = line.value if isinstance(line.value, str) else f"{line.value:.6g}"
            writer.writerow((line.figure, value, line.unit, line.aim))


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", type=Path, default=Path(), help="the project's folder")
    parser.add_argument("--search", default=SEARCH, help=f"a search of config.yaml (default: {SEARCH})")
    parser.add_argument("--skip-kernel-tuner", action="store_true", help="kernelab's half alone")
    parser.add_argument(
        "--limit-s", type=float, default=LIMIT_S, help="for each tool; past it, it is stopped"
    )
    parser.add_argument(
        "--cores", type=int, default=os.cpu_count() or 1, help="that the floor is spread over"
    )
    parser.add_argument("--csv", type=Path, help="where to write the figures")
    options = parser.parse_args()
    root = options.root.resolve()
    try:
        plan = load_plan(root, identify)
        tuned_kernel(plan, options.search)  # what kernel_tuner cannot search is said before anything runs
        size = sum(not point.excluded for point in Space.of(plan, options.search).points())
        if plan.device.kind != "gpu":
            raise UserError("no GPU is visible to CUDA; both tools time kernels on one")
        with TemporaryDirectory(prefix="kernelab-") as scratch:
            folder = Path(scratch)
            # Ours first: a card that the other has warmed up would not be the card of a first run.
            ours = run_ours(root, folder / "ours", options.search, options.limit_s)
            theirs = None
            if not options.skip_kernel_tuner:
                theirs = run_theirs(root, folder / "theirs", options.search, options.limit_s)
        lines = list(figures(theirs, ours, options.cores, size))
    except UserError as error:
        print(error, file=sys.stderr)
        return 1
    for line in lines:
        value = line.value if isinstance(line.value, str) else f"{line.value:.4g}"
        print(f"{line.figure:62s} {value:>10s} {line.unit:3s} {line.aim}".rstrip())
    if options.csv:
        write(options.csv, lines)
    return 1 if theirs is not None and theirs.found is None else 0


if __name__ == "__main__":
    sys.exit(main())
