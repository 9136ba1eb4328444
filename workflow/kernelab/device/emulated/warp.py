"""Instructions in which the lanes of a warp take part together: shuffle, vote, match, redux, elect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .alu import view_of
from .operands import Reader, Writer
from .parser import Instruction
from .types import TYPES

Apply = Callable[[Any, Any], None]


@dataclass(slots=True)
class Warps:
    """Lanes laid out as (warps, 32), with which of them take part."""

    row: NDArray[np.int64]
    column: NDArray[np.int64]
    active: NDArray[np.bool_]
    lanes: NDArray[np.int64]

    @classmethod
    def of(cls, m: Any, lanes: NDArray[np.int64] | None) -> Warps:
        chosen = np.arange(m.lanes) if lanes is None else lanes
        numbers, row = np.unique(chosen >> 5, return_inverse=True)
        active = np.zeros((len(numbers), 32), np.bool_)
        active[row, chosen & 31] = True
        return cls(row, chosen & 31, active, chosen)

    def spread(self, values: NDArray) -> NDArray:
        """Values of the lanes as (warps, 32), zero where inactive."""
        flat = np.broadcast_to(values, (1, len(self.lanes)))[0]
        full = np.zeros(self.active.shape, flat.dtype)
        full[self.row, self.column] = flat
        return full

    def gather(self, full: NDArray) -> NDArray:
        return full[self.row, self.column][None]

    def bits(self, flags: NDArray[np.bool_]) -> NDArray[np.uint32]:
        """One 32-bit word for each warp."""
        return (flags.astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum(1).astype(np.uint32)


def shuffle(
    instruction: Instruction,
    mode: str,
    value: Reader,
    lane: Reader,
    clamp: Reader,
    mask: Reader,
    write: Writer,
    predicate: Writer | None,
) -> Apply:
    """shfl.sync: each lane reads another's register; PTX ISA, "shfl.sync"."""

    def apply(m: Any, lanes: Any) -> None:
        w = Warps.of(m, lanes)
        values = w.spread(value(m, lanes))
        offset = w.spread(lane(m, lanes)).astype(np.int64) & 31
        control = w.spread(clamp(m, lanes)).astype(np.int64)
        member = w.spread(mask(m, lanes)).astype(np.int64)
        me = np.broadcast_to(np.arange(32), offset.shape)
        limit, segment = control & 31, control >> 8 & 31
        low = me & segment
        high = low | limit & ~segment & 31
        if mode == "up":
            source = me - offset
            inside = source >= high
        elif mode == "down":
            source = me + offset
            inside = source <= high
        elif mode == "bfly":
            source = me ^ offset
            inside = source <= high
        else:
            source = low | offset & ~segment & 31
            inside = source <= high
        source = np.where(inside, source, me)
        warps = np.arange(len(values))[:, None]
        lost = w.active & (~w.active[warps, source] | (member >> source & 1 == 0))
        if lost.any():
            _report_lost(m, instruction, w, source, lost)
        write(m, lanes, w.gather(values[warps, source]))
        if predicate is not None:
            predicate(m, lanes, w.gather(inside))

    return apply


def _report_lost(m: Any, instruction: Instruction, w: Warps, source: NDArray, lost: NDArray) -> None:
    flags = w.gather(lost)[0]
    first = int(np.flatnonzero(flags)[0])
    lane, wanted = int(w.lanes[first]), int(w.gather(source)[0, first])
    m.run.report(
        "invalid_shuffle",
        instruction,
        m,
        (lane, (lane & ~31) | wanted),
        f"lane {lane & 31} reads lane {wanted}, which does not take part or is outside the mask",
        None,
        None,
        int(flags.sum()),
    )


def vote(mode: str, negated: bool, predicate: Reader, write: Writer) -> Apply:
    """vote.sync all, any, uni (a predicate) and ballot (a word)."""

    def apply(m: Any, lanes: Any) -> None:
        w = Warps.of(m, lanes)
        flags = w.spread(predicate(m, lanes))
        if negated:
            flags = np.logical_and(~flags, w.active)
        if mode == "ballot":
            write(m, lanes, w.bits(flags & w.active)[w.row][None])
            return
        every, some = np.all(flags | ~w.active, axis=1), np.any(flags, axis=1)
        result = every if mode == "all" else some if mode == "any" else every | ~some
        write(m, lanes, result[w.row][None])

    return apply


def match(every: bool, value: Reader, write: Writer, predicate: Writer | None) -> Apply:
    """match.any and match.all."""

    def apply(m: Any, lanes: Any) -> None:
        w = Warps.of(m, lanes)
        values = w.spread(value(m, lanes))
        equal = (values[:, :, None] == values[:, None, :]) & w.active[:, None, :] & w.active[:, :, None]
        words = (equal.astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum(2).astype(np.uint32)
        if not every:
            write(m, lanes, w.gather(words))
            return
        whole = w.bits(w.active)
        agree = ((words == whole[:, None]) | ~w.active).all(1)
        write(m, lanes, np.where(agree, whole, np.uint32(0))[w.row][None])
        if predicate is not None:
            predicate(m, lanes, agree[w.row][None])

    return apply


_REDUCTIONS: dict[str, Any] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def reduction(parts: list[str], value: Reader, write: Writer) -> Apply | None:
    """redux.sync over integers, and min or max over f32."""
    type_ = TYPES[parts[-1]]
    ufunc = _REDUCTIONS.get(parts[2])
    if ufunc is None:
        return None
    dtype = type_.dtype
    assert view_of(type_)[1] == "4"

    def apply(m: Any, lanes: Any) -> None:
        w = Warps.of(m, lanes)
        values = w.spread(value(m, lanes))
        first = w.active.argmax(1)
        filler = (
            np.zeros(len(first), dtype)
            if parts[2] in ("add", "or", "xor")
            else values[np.arange(len(first)), first]
        )
        filled = np.where(w.active, values, filler[:, None])
        write(m, lanes, ufunc.reduce(filled, axis=1, dtype=dtype)[w.row][None])

    return apply


def elect(write: Writer | None, predicate: Writer) -> Apply:
    """elect.sync: the lowest participating lane is the leader."""

    def apply(m: Any, lanes: Any) -> None:
        w = Warps.of(m, lanes)
        leader = w.active.argmax(1)
        if write is not None:
            write(m, lanes, leader.astype(np.uint32)[w.row][None])
        predicate(m, lanes, (w.column == leader[w.row])[None])

    return apply


def active_mask(write: Writer) -> Apply:
    """activemask: the lanes that execute together now."""

    def apply(m: Any, lanes: Any) -> None:
        w = Warps.of(m, lanes)
        write(m, lanes, w.bits(w.active)[w.row][None])

    return apply
