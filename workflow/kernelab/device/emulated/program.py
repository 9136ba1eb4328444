"""A compiled entry: segments of steps, each closed by control flow, and where registers live."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .decode import decode
from .decoded import WRITE, Context, Decoded, Layout, Rows, Step
from .errors import EmulationError
from .grouping import Allocator, arrange, group, lasting_registers
from .inline import inlined
from .operands import Immediate, Reader
from .parser import Module, Variable

# Opcodes whose presence means that plain barrier intervals do not decide which accesses are ordered.
_FINE_ORDER = ("atom", "red", "membar", "fence", "mbarrier")


@dataclass(slots=True)
class Segment:
    """Straight-line steps, then `end` (None falls through). `targets` are segment numbers."""

    number: int
    steps: list[Step]
    end: Decoded | None
    targets: list[int]
    count: int
    mix: dict[str, int]
    guard: Reader | None
    guard_negated: bool
    index: Reader | None
    polls: bool  # reads memory that others may change while it waits
    stores: bool


@dataclass(slots=True)
class Program:
    """All that is known of an entry before a launch."""

    name: str
    segments: list[Segment]
    layout: Layout
    parameters: dict[str, tuple[int, Variable]]  # byte offset and declaration
    parameter_bytes: int
    row_counts: list[int]
    special: dict[str, int]  # special register -> row of the 32-bit file
    granule: int  # bytes of the smallest access
    fine_order: bool  # races need vector clocks, not barrier intervals
    instructions: int
    opcodes: Counter[str]


def compile_entry(module: Module, name: str) -> Program:
    """Decode, group and place the registers of an entry; cached in the module."""
    known = module.compiled.get(name)
    if isinstance(known, Program):
        return known
    if name not in module.functions or not module.functions[name].is_entry:
        raise EmulationError(f"no entry '{name}' in this PTX; it has {', '.join(module.entries)}")
    function = inlined(module, module.functions[name])
    context, decoded = decode(module, function)
    starts = _starts(decoded, function.labels)
    pieces = _pieces(decoded, starts)
    rows = Rows(context.files)
    segments = _allocate(pieces, context, rows)
    numbers = {start: i for i, start in enumerate(starts)}
    labels = {label: numbers[place] for label, place in function.labels.items() if place in numbers}
    opcodes = Counter(d.instruction.opcode for d in decoded)
    offsets, total = _parameter_offsets(function.parameters)
    program = Program(
        name,
        [
            _segment(i, piece, grouped, rows, labels)
            for i, (piece, grouped) in enumerate(zip(pieces, segments, strict=True))
        ],
        context.layout,
        offsets,
        total,
        [max(1, len(u)) for u in _row_counts(rows)],
        {s: rows.row[r] for s, r in context.special.items()},
        _granule(decoded),
        _needs_clocks(decoded),
        len(decoded),
        opcodes,
    )
    module.compiled[name] = program
    return program


def _starts(decoded: Sequence[Decoded], labels: dict[str, int]) -> list[int]:
    starts = {0, len(decoded), *labels.values()}
    starts.update(i + 1 for i, d in enumerate(decoded) if d.ends)
    return sorted(starts)


def _pieces(decoded: Sequence[Decoded], starts: list[int]) -> list[tuple[list[Decoded], Decoded | None]]:
    pieces = []
    for start, stop in zip(starts, [*starts[1:], len(decoded)], strict=True):
        body = list(decoded[start:stop])
        end = body.pop() if body and body[-1].ends else None
        pieces.append((body, end))
    return pieces


def _allocate(
    pieces: list[tuple[list[Decoded], Decoded | None]], context: Context, rows: Rows
) -> list[list[list[Decoded]]]:
    grouped = [group(body) for body, _ in pieces]
    allocator = Allocator(rows)
    allocator.permanent(list(context.special.values()))
    order = lasting_registers(pieces, len(rows.files))
    lasting = {*order, *context.special.values()}
    for groups in grouped:
        for members in groups:
            arrange(members, rows)
            for z in range(len(members[0].dests)):
                allocator.permanent([m.dests[z] for m in members if m.dests[z] in lasting])
    allocator.permanent(order)
    for groups, (_, end) in zip(grouped, pieces, strict=True):
        allocator.segment(groups, end, lasting)
    return grouped


def _row_counts(rows: Rows) -> list[range]:
    highest = [0] * 4
    for file, row in zip(rows.files, rows.row, strict=True):
        highest[file] = max(highest[file], row + 1)
    return [range(h) for h in highest]


def _segment(
    number: int,
    piece: tuple[list[Decoded], Decoded | None],
    groups: list[list[Decoded]],
    rows: Rows,
    labels: dict[str, int],
) -> Segment:
    body, end = piece
    steps = []
    for members in groups:
        make = members[0].make
        assert make is not None
        step = make(members, rows)
        guard = members[0].guard
        steps.append(step if guard is None else _guarded(step, rows.reader([guard[0]], "?"), guard[1]))
    targets: list[int] = []
    guard_reader, negated, index = None, False, None
    if end is not None:
        if end.make is not None:
            end.make([end], rows)
        if end.ends == "branch":
            targets = [labels[end.data]]
        elif end.ends == "switch":
            targets = [labels[name] for name in end.data]
            index = rows.reader([end.sources[0]], "u4")
        if end.guard is not None:
            guard_reader, negated = rows.reader([end.guard[0]], "?"), end.guard[1]
    members = [*body, *([end] if end is not None else [])]
    mix = Counter(d.instruction.opcode for d in members)
    return Segment(
        number,
        steps,
        end,
        targets,
        len(members),
        dict(mix),
        guard_reader,
        negated,
        index,
        any(_polls(d) for d in members),
        any(d.order == WRITE for d in body),
    )


def _guarded(step: Step, read: Reader, negated: bool) -> Step:
    """Run a step for the lanes whose guard predicate holds."""

    def run(m: Any, lanes: Any) -> None:
        taken = read(m, lanes)[0]
        if negated:
            taken = ~taken
        if taken.all():
            step(m, lanes)
        elif taken.any():
            step(m, np.flatnonzero(taken) if lanes is None else lanes[taken])

    return run


def _polls(decoded: Decoded) -> bool:
    opcode = decoded.instruction.opcode
    return opcode.startswith(("ld.", "atom", "mbarrier.test", "mbarrier.try")) and (
        not opcode.startswith("ld.") or any(p in opcode for p in ("volatile", "relaxed", "acquire"))
    )


def _needs_clocks(decoded: Sequence[Decoded]) -> bool:
    for d in decoded:
        opcode = d.instruction.opcode
        if opcode.startswith(_FINE_ORDER) or opcode == "bar.warp.sync":
            return True
        if opcode.startswith(("ld.", "st.")) and any(
            p in opcode for p in ("volatile", "relaxed", "acquire", "release")
        ):
            return True
        if d.ends == "barrier" and not d.data.plain:
            number = d.sources[0]
            if d.data.has_count or not d.data.waits or not isinstance(number, Immediate) or number.value != 0:
                return True
    return False


def _granule(decoded: Sequence[Decoded]) -> int:
    """Bytes of the smallest shared or global access: the unit of race detection."""
    smallest = 4
    for d in decoded:
        if d.key[0] in ("ld", "st") and d.space != "local":
            smallest = min(smallest, d.key[3] if d.key[0] == "ld" else d.key[2])
        elif d.instruction.opcode.startswith(("atom", "red.")) and d.instruction.opcode.endswith(
            ("16", "f16")
        ):
            smallest = min(smallest, 2)
        elif d.instruction.opcode.startswith("stmatrix") and ".trans" in d.instruction.opcode:
            smallest = min(smallest, 2)  # two lanes store the halves of a word
    return smallest


def _parameter_offsets(parameters: Sequence[Variable]) -> tuple[dict[str, tuple[int, Variable]], int]:
    offsets, used = {}, 0
    for parameter in parameters:
        used = -(-used // parameter.align) * parameter.align
        offsets[parameter.name] = (used, parameter)
        used += parameter.size
    return offsets, used
