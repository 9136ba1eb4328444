"""Source and machine code of two arms side by side."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kernelab.build.hot_loop import find_hot_loop
from kernelab.build.loops import find_loops
from kernelab.build.sass import Instruction, parse_sass


@dataclass(frozen=True)
class Side:
    """One cell of a side-by-side view. `hot`: inside the hot loop. `changed`: the other side has something else."""

    text: str
    hot: bool = False
    changed: bool = False


@dataclass(frozen=True)
class Line:
    """A row of a side-by-side view, or (with `skipped`) the number of equal rows left out."""

    base: Side | None
    arm: Side | None
    skipped: int = 0


@dataclass(frozen=True)
class SideBySide:
    """A view, and how many rows of it were left out at the end."""

    lines: list[Line]
    left_out: int
    note: str = ""


@dataclass(frozen=True)
class Run:
    """Instructions of one opcode in a row. Registers are not part of it: a changed allocation is no changed code."""

    opcode: str
    count: int
    hot: bool

    @property
    def text(self) -> str:
        return self.opcode if self.count == 1 else f"{self.opcode} \N{MULTIPLICATION SIGN}{self.count}"


def runs_of(sass: str, entry: str, arch: str) -> list[Run]:
    """The opcodes of an entry as runs, with those of the hot loop marked; empty where the listing has no such entry."""
    listing = parse_sass(sass).get(entry, [])
    inside = _hot_addresses(listing, arch)
    groups = itertools.groupby(listing, key=lambda i: (i.opcode, i.address in inside))
    found = [Run(opcode, sum(1 for _ in group), hot) for (opcode, hot), group in groups]
    while found and found[-1].opcode == "NOP":  # padding behind the end
        found.pop()
    return found


def sass_side_by_side(base: Sequence[Run], arm: Sequence[Run], most: int, context: int = 2) -> SideBySide:
    """Two listings aligned by opcode."""
    matcher = difflib.SequenceMatcher(None, base, arm)  # its junk heuristic keeps long loops of FFMAs quick
    lines: list[Line] = []
    for tag, low, high, start, end in matcher.get_opcodes():
        if tag == "equal":
            lines += _equal(
                [(a, b) for a, b in zip(base[low:high], arm[start:end], strict=True)],
                context,
                not lines,
                high == len(base),
            )
            continue
        for left, right in itertools.zip_longest(base[low:high], arm[start:end]):
            lines.append(Line(_side(left, True), _side(right, True)))
    return SideBySide(lines[:most], max(0, len(lines) - most))


def source_side_by_side(diff: str) -> SideBySide:
    """The token diff of a compare record: its removed statements on the left, its added ones on the right."""
    head, *rest = diff.splitlines()
    lines: list[Line] = []
    left_out, place = 0, 0
    while place < len(rest):
        gone = list(itertools.takewhile(lambda line: line.startswith("-"), rest[place:]))
        come = list(itertools.takewhile(lambda line: line.startswith("+"), rest[place + len(gone) :]))
        for left, right in itertools.zip_longest(gone, come):
            lines.append(Line(_statement(left), _statement(right)))
        place += len(gone) + len(come)
        if not gone and not come:
            counted = rest[place].removeprefix("... ").partition(" ")[0]
            left_out = int(counted) if counted.isdigit() else left_out
            place += 1
    return SideBySide(lines, left_out, head)


def _statement(line: str | None) -> Side | None:
    return None if line is None else Side(line[1:], changed=True)


def _side(run: Run | None, changed: bool) -> Side | None:
    return None if run is None else Side(run.text, run.hot, changed)


def _equal(pairs: list[tuple[Run, Run]], context: int, first: bool, last: bool) -> Iterator[Line]:
    """Equal rows, all but those next to a difference counted only."""
    head = [] if first else pairs[:context]
    tail = [] if last else pairs[max(len(head), len(pairs) - context) :]
    skipped = len(pairs) - len(head) - len(tail)
    for a, b in head:
        yield Line(_side(a, False), _side(b, False))
    if skipped > 0:
        yield Line(None, None, skipped)
    for a, b in tail:
        yield Line(_side(a, False), _side(b, False))


def _hot_addresses(listing: Sequence[Instruction], arch: str) -> set[int]:
    hot = find_hot_loop(listing, arch)
    if hot is None:
        return set()
    return {i.address for loop in find_loops(listing) if loop.start == hot.start for i in loop.instructions}
