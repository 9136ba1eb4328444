"""Decoding of branches, exits, barriers, fences and warp-wide instructions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import warp
from .decoded import NONE, SYNC, Context, Decoded, Rows, Step
from .errors import UnsupportedInstruction
from .operands import Immediate, Reader, Source
from .parser import Instruction
from .types import FILE_32, FILE_PRED, TYPES


@dataclass(slots=True)
class Barrier:
    """A barrier instruction: its readers are filled in when registers are allocated.

    `waits` is False for arrive; `reduce` is None, "popc", "and" or "or"; `aligned` barriers need whole warps.
    """

    waits: bool
    aligned: bool
    reduce: str | None
    negated: bool
    has_count: bool
    number: Reader | None = None
    count: Reader | None = None
    predicate: Reader | None = None
    write: Callable | None = None
    plain: bool = False  # __syncthreads(): barrier 0, every thread


@dataclass(slots=True)
class Collective:
    """A warp-wide instruction: the mask of lanes that must take part, and what they do."""

    mask: Reader
    apply: warp.Apply
    whole: bool  # the mask is the immediate of all lanes


def _bra(context: Context, instruction: Instruction, parts: list[str]) -> Decoded:
    return Decoded(("bra",), instruction, (), (), None, data=instruction.operands[0], ends="branch")


def _brx(context: Context, instruction: Instruction, parts: list[str]) -> Decoded:
    index = context.source(instruction.operands[0], instruction)
    targets = context.function.branch_targets.get(instruction.operands[1])
    if targets is None:
        raise UnsupportedInstruction(instruction.opcode, instruction.line, "its .branchtargets are missing")
    return Decoded(("brx",), instruction, (), (index,), None, data=targets, ends="switch")


def _exit(context: Context, instruction: Instruction, parts: list[str]) -> Decoded:
    return Decoded(("exit",), instruction, (), (), None, ends="exit")


def _trap(context: Context, instruction: Instruction, parts: list[str]) -> Decoded:
    return Decoded(("trap",), instruction, (), (), None, ends="trap")


def _call(context: Context, instruction: Instruction, parts: list[str]) -> Decoded:
    """Calls that survive inlining: printf (its text is not shown) and failed asserts."""
    if parts[1].startswith("__assert"):
        return _trap(context, instruction, parts)
    if parts[1] != "vprintf":
        raise UnsupportedInstruction("call", instruction.line, f"'{parts[1]}' allocates device memory")
    dests = tuple(
        register
        for name in instruction.operands
        if (register := context.parameter_register(f"[{name}]", instruction, FILE_32)) is not None
    )

    def make(batch: Sequence[Decoded], rows: Rows) -> Step:
        writers, zero = [rows.writer([d], "u4") for d in dests], np.zeros((1, 1), np.uint32)

        def step(m: Any, lanes: Any) -> None:
            m.run.hazards.advise("printf output is not shown")
            for write in writers:
                write(m, lanes, zero)

        return step

    return Decoded(("vprintf", instruction.line), instruction, dests, (), make, order=SYNC)


def _bar(context: Context, instruction: Instruction, parts: list[str]) -> Decoded:
    names = [p for p in parts[1:] if p != "cta"]
    if names[0] == "warp":
        return _bar_warp(context, instruction)
    if names[0] in ("cluster",) or names[0] not in ("sync", "arrive", "red"):
        raise UnsupportedInstruction(instruction.opcode, instruction.line)
    aligned = parts[0] == "bar" or "aligned" in names
    reduce = next((n for n in names if n in ("popc", "and", "or")), None) if names[0] == "red" else None
    operands = list(instruction.operands)
    dests: tuple[int, ...] = ()
    negated = False
    predicate: list[Source] = []
    if reduce is not None:
        dests = (context.register(operands.pop(0), instruction, FILE_32 if reduce == "popc" else FILE_PRED),)
        text = operands.pop()
        negated = text.startswith("!")
        predicate = [context.source(text.lstrip("! "), instruction)]
    sources = [context.source(text, instruction) for text in operands]
    info = Barrier(names[0] != "arrive", aligned, reduce, negated, len(sources) > 1)
    info.plain = (
        names[0] == "sync"
        and len(sources) == 1
        and isinstance(sources[0], Immediate)
        and sources[0].value == 0
    )

    def make(batch: Sequence[Decoded], rows: Rows) -> Step:
        info.number = rows.reader([sources[0]], "u4")
        info.count = rows.reader([sources[1]], "u4") if info.has_count else None
        info.predicate = rows.reader(predicate, "?") if predicate else None
        info.write = rows.writer(dests, "u4" if reduce == "popc" else "?") if dests else None
        return lambda m, lanes: None

    return Decoded(("bar",), instruction, dests, (*sources, *predicate), make, data=info, ends="barrier")


def collective(
    instruction: Instruction,
    dests: Sequence[int],
    sources: Sequence[Source],
    mask: Source,
    build: Callable[[Rows], warp.Apply],
) -> Decoded:
    """A warp-wide instruction; `build` makes what the lanes of the mask do once they have all come."""
    whole = isinstance(mask, Immediate) and int(mask.value) & 0xFFFFFFFF == 0xFFFFFFFF
    holder: list[Collective] = []

    def make(batch: Sequence[Decoded], rows: Rows) -> Step:
        holder.clear()
        holder.append(Collective(rows.reader([mask], "u4"), build(rows), whole))
        return lambda m, lanes: None

    return Decoded(
        (instruction.opcode,),
        instruction,
        tuple(dests),
        (*sources, mask),
        make,
        data=holder,
        ends="collective",
    )


def _bar_warp(context: Context, instruction: Instruction) -> Decoded:
    mask = context.source(instruction.operands[0], instruction)

    def build(rows: Rows) -> warp.Apply:
        read = rows.reader([mask], "u4")
        return lambda m, lanes: m.run.races.warp_sync(m, lanes, read(m, lanes))

    return collective(instruction, (), (), mask, build)


def _shfl(context: Context, instruction: Instruction, parts: list[str]) -> Decoded:
    if parts[1] != "sync":
        raise UnsupportedInstruction(
            instruction.opcode, instruction.line, "only the .sync form exists on sm_70 and later"
        )
    first, *rest = instruction.operands[0].split("|")
    dest = context.register(first, instruction, FILE_32)
    predicate = context.register(rest[0], instruction, FILE_PRED) if rest else None
    value, lane, clamp, mask = (context.source(text, instruction) for text in instruction.operands[1:5])

    def build(rows: Rows) -> warp.Apply:
        return warp.shuffle(
            instruction,
            parts[2],
            rows.reader([value], "u4"),
            rows.reader([lane], "u4"),
            rows.reader([clamp], "u4"),
            rows.reader([mask], "u4"),
            rows.writer([dest], "u4"),
            None if predicate is None else rows.writer([predicate], "?"),
        )

    dests = (dest,) if predicate is None else (dest, predicate)
    return collective(instruction, dests, (value, lane, clamp), mask, build)


def _vote(context: Context, instruction: Instruction, parts: list[str]) -> Decoded:
    if parts[1] != "sync" or parts[2] not in ("all", "any", "uni", "ballot"):
        raise UnsupportedInstruction(instruction.opcode, instruction.line)
    ballot = parts[2] == "ballot"
    dest = context.register(instruction.operands[0], instruction, FILE_32 if ballot else FILE_PRED)
    text = instruction.operands[1]
    predicate = context.source(text.lstrip("! "), instruction)
    mask = context.source(instruction.operands[2], instruction)
    return collective(
        instruction,
        (dest,),
        (predicate,),
        mask,
        lambda rows: warp.vote(
            parts[2],
            text.startswith("!"),
            rows.reader([predicate], "?"),
            rows.writer([dest], "u4" if ballot else "?"),
        ),
    )


def _match(context: Context, instruction: Instruction, parts: list[str]) -> Decoded:
    every = parts[1] == "all"
    first, *rest = instruction.operands[0].split("|")
    dest = context.register(first, instruction, FILE_32)
    predicate = context.register(rest[0], instruction, FILE_PRED) if rest else None
    value = context.source(instruction.operands[1], instruction)
    mask = context.source(instruction.operands[2], instruction)
    view = "u" + str(TYPES[parts[-1]].size)
    dests = (dest,) if predicate is None else (dest, predicate)
    return collective(
        instruction,
        dests,
        (value,),
        mask,
        lambda rows: warp.match(
            every,
            rows.reader([value], view),
            rows.writer([dest], "u4"),
            None if predicate is None else rows.writer([predicate], "?"),
        ),
    )


def _redux(context: Context, instruction: Instruction, parts: list[str]) -> Decoded:
    dest = context.register(instruction.operands[0], instruction, FILE_32)
    value = context.source(instruction.operands[1], instruction)
    mask = context.source(instruction.operands[2], instruction)
    view = {"s32": "i4", "f32": "f4"}.get(parts[-1], "u4")

    def build(rows: Rows) -> warp.Apply:
        apply = warp.reduction(parts, rows.reader([value], view), rows.writer([dest], view))
        if apply is None:
            raise UnsupportedInstruction(instruction.opcode, instruction.line)
        return apply

    return collective(instruction, (dest,), (value,), mask, build)


def _elect(context: Context, instruction: Instruction, parts: list[str]) -> Decoded:
    first, second = instruction.operands[0].split("|")
    dest = context.register(first, instruction, FILE_32)
    predicate = context.register(second, instruction, FILE_PRED)
    mask = context.source(instruction.operands[1], instruction)
    return collective(
        instruction,
        (dest, predicate),
        (),
        mask,
        lambda rows: warp.elect(rows.writer([dest], "u4"), rows.writer([predicate], "?")),
    )


def _activemask(context: Context, instruction: Instruction, parts: list[str]) -> Decoded:
    dest = context.register(instruction.operands[0], instruction)
    return Decoded(
        ("activemask", instruction.line),
        instruction,
        (dest,),
        (),
        lambda batch, rows: warp.active_mask(rows.writer([dest], "u4")),
    )


def _fence(context: Context, instruction: Instruction, parts: list[str]) -> Decoded:
    """Fences order memory for the race detector; proxy and initialisation fences change nothing here."""
    if "proxy" in parts or "mbarrier_init" in parts:
        return Decoded(
            ("proxy fence", instruction.line),
            instruction,
            (),
            (),
            lambda batch, rows: lambda m, lanes: None,
            order=SYNC,
        )
    return Decoded(
        ("fence", instruction.line),
        instruction,
        (),
        (),
        lambda batch, rows: lambda m, lanes: m.run.races.fence(m, lanes),
        order=SYNC,
    )


def _nothing_to_do(context: Context, instruction: Instruction, parts: list[str]) -> Decoded:
    return Decoded(("nothing",), instruction, (), (), lambda batch, rows: lambda m, lanes: None, order=NONE)


HANDLERS: dict[str, Callable[[Context, Instruction, list[str]], Decoded]] = {
    "bra": _bra,
    "brx": _brx,
    "ret": _exit,
    "exit": _exit,
    "trap": _trap,
    "brkpt": _nothing_to_do,
    "call": _call,
    "bar": _bar,
    "barrier": _bar,
    "shfl": _shfl,
    "vote": _vote,
    "match": _match,
    "redux": _redux,
    "elect": _elect,
    "activemask": _activemask,
    "membar": _fence,
    "fence": _fence,
}
