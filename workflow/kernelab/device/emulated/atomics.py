"""atom and red: read-modify-write, one lane after another where lanes meet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .access import Site
from .alu import VIEW_DTYPES, Array, view_of
from .half import bf16_to_f32, f32_to_bf16, halves, packed
from .loadstore import Step, check_written, mark_written
from .operands import Reader, Writer
from .types import TYPES, ScalarType


@dataclass(frozen=True, slots=True)
class Operation:
    """An atomic function: old value and operands to new value, over arrays of the view's dtype."""

    type: ScalarType
    view: str
    function: Callable


def _increment(old: Array, limit: Array) -> Array:
    return np.where(old >= limit, np.uint32(0), old + np.uint32(1))


def _decrement(old: Array, limit: Array) -> Array:
    return np.where((old == 0) | (old > limit), limit, old - np.uint32(1))


def _half_add(dtype: Any) -> Callable:
    def add(old: Array, value: Array) -> Array:
        if dtype is np.float16:
            return packed((halves(old).astype(np.float32) + halves(value)).astype(np.float16))
        pair = bf16_to_f32(halves(old, np.uint16)) + bf16_to_f32(halves(value, np.uint16))
        return packed(f32_to_bf16(pair))

    return add


_FUNCTIONS: dict[str, Callable] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": lambda old, value: value,
    "inc": _increment,
    "dec": _decrement,
    "cas": lambda old, expected, value: np.where(old == expected, value, old),
}


def find(parts: Sequence[str]) -> Operation | None:
    """The operation of an atom or red opcode; None when it is not known."""
    type_ = TYPES.get(parts[-1])
    name = next((p for p in parts[1:] if p in _FUNCTIONS), None)
    if type_ is None or name is None or "v2" in parts or "v4" in parts:
        return None
    if type_.kind == "x":
        if name != "add" or type_.size != 4:
            return None
        return Operation(type_, "u4", _half_add(np.float16 if type_.name == "f16x2" else np.uint16))
    return Operation(type_, view_of(type_), _FUNCTIONS[name])


def atomic_step(site: Site, operation: Operation, readers: Sequence[Reader], write: Writer | None) -> Step:
    """A step for one atomic instruction. Lanes that share an address take turns, in lane order."""
    dtype = VIEW_DTYPES[operation.view]
    function = operation.function

    def step(m: Any, lanes: Any) -> None:
        touched = site.touch(m, lanes)
        check_written(m, site, touched, lanes)
        m.run.races.access(m, site, touched, lanes)
        touched = site.without_read_only(m, touched, lanes) if site.space == "global" else touched
        mark_written(m, site, touched)
        words = m.space(site.space).words[site.element].view(dtype)
        index = touched.index[0]
        operands = [np.broadcast_to(read(m, lanes), touched.index.shape)[0] for read in readers]
        old = np.zeros(index.shape, dtype)
        order = np.arange(len(index)) if touched.valid is None else np.flatnonzero(touched.valid[0])
        for turn in turns(index, order[::-1] if m.run.reverse else order):
            where = index[turn]
            before = words[where]
            old[turn] = before
            after = function(before, *(operand[turn] for operand in operands))
            words[where] = after
            m.run.progress += int((after != before).any())
        if write is not None:
            write(m, lanes, old[None])

    return step


def turns(index: NDArray[np.int64], order: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Split lanes into rounds in which no two share an address; within an address, `order` is kept."""
    if len(order) == 0:
        return []
    chosen = index[order]
    by_address = np.argsort(chosen, kind="stable")
    ordered = chosen[by_address]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    if len(starts) == len(order):
        return [order]
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    by_rank = np.argsort(rank, kind="stable")
    cuts = np.flatnonzero(np.diff(rank[by_rank])) + 1
    return [order[by_address[part]] for part in np.split(by_rank, cuts)]
