"""Operands: registers by row of a register file, immediates, and values known at launch."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .alu import VIEW_DTYPES

Reader = Callable[[Any, Any], np.ndarray]
Writer = Callable[[Any, Any, np.ndarray], None]


@dataclass(frozen=True, slots=True)
class Immediate:
    """A literal: an integer, or a float given by its bits (`bits` 32 or 64) or as a decimal (`bits` 0)."""

    value: int | float
    bits: int = 0

    def number(self, view: str) -> Any:
        """The value as a NumPy scalar of a register view."""
        dtype = VIEW_DTYPES[view]
        if dtype.kind == "b":
            return np.bool_(self.value)
        unsigned = np.dtype(f"u{dtype.itemsize}")
        if self.bits == 0 and isinstance(self.value, int) and dtype.kind != "f":
            return np.array(self.value & (1 << 8 * dtype.itemsize) - 1, unsigned).view(dtype)[()]
        if self.bits == 0 and isinstance(self.value, int):
            return np.array(self.value, dtype)[()]
        number = self.as_float()
        if dtype.kind == "f":
            return (
                np.array(number, np.float64).astype(dtype)[()]
                if self.bits != 32 or dtype.itemsize != 4
                else (np.array(int(self.value), np.uint32).view(np.float32)[()])
            )
        packed = (
            int(self.value)
            if self.bits
            else int.from_bytes(struct.pack("<f" if dtype.itemsize == 4 else "<d", number), "little")
        )
        return np.array(packed & (1 << 8 * dtype.itemsize) - 1, unsigned).view(dtype)[()]

    def as_float(self) -> float:
        if self.bits == 32:
            return float(np.array(int(self.value), np.uint32).view(np.float32))
        if self.bits == 64:
            return float(np.array(int(self.value), np.uint64).view(np.float64))
        return float(self.value)


@dataclass(frozen=True, slots=True)
class LaunchValue:
    """A parameter's bytes (`kind` "param") or the address of a module variable ("symbol"), plus an offset."""

    kind: str
    name: str
    offset: int


Source = int | Immediate | LaunchValue

_INTEGER = re.compile(r"[-+]?(0[xX][0-9A-Fa-f]+|0[bB][01]+|\d+)U?$")
_DECIMAL = re.compile(r"[-+]?(\d+\.\d*|\.\d+|\d+)([eE][-+]?\d+)?$")


def parse_immediate(text: str) -> Immediate | None:
    """A literal operand, or None."""
    if text[:2] in ("0f", "0F") and len(text) == 10:
        return Immediate(int(text[2:], 16), 32)
    if text[:2] in ("0d", "0D") and len(text) == 18:
        return Immediate(int(text[2:], 16), 64)
    if _INTEGER.match(text):
        digits = text.rstrip("U")
        octal = re.match(r"([-+]?)0([0-7]+)$", digits)
        return Immediate(int(octal.group(1) + octal.group(2), 8) if octal else int(digits, 0))
    if _DECIMAL.match(text):
        return Immediate(float(text))
    if text == "WARP_SZ":
        return Immediate(32)
    return None


def _run(rows: Sequence[int]) -> slice | None:
    """The rows as a slice, when they are consecutive."""
    first = rows[0]
    if all(row == first + i for i, row in enumerate(rows)):
        return slice(first, first + len(rows))
    return None


def register_reader(rows: Sequence[int], view: str) -> Reader:
    """Reads rows of a register file: shape (rows, lanes)."""
    run = _run(rows)
    if run is not None:

        def read_slice(m: Any, lanes: Any) -> np.ndarray:
            return m.views[view][run] if lanes is None else m.views[view][run, lanes]

        return read_slice
    index = np.array(rows, np.intp)
    column = index[:, None]

    def read_rows(m: Any, lanes: Any) -> np.ndarray:
        return m.views[view].take(index, 0) if lanes is None else m.views[view][column, lanes]

    return read_rows


def register_writer(rows: Sequence[int], view: str) -> Writer:
    """Writes rows of a register file from an array that broadcasts to (rows, lanes)."""
    run = _run(rows)
    if run is not None:

        def write_slice(m: Any, lanes: Any, value: np.ndarray) -> None:
            if lanes is None:
                m.views[view][run] = value
            else:
                m.views[view][run, lanes] = value

        return write_slice
    index = np.array(rows, np.intp)
    column = index[:, None]

    def write_rows(m: Any, lanes: Any, value: np.ndarray) -> None:
        if lanes is None:
            m.views[view][index] = value
        else:
            m.views[view][column, lanes] = value

    return write_rows


def constant_reader(values: Sequence[Immediate], view: str) -> Reader:
    """Immediates as a column that broadcasts over the lanes."""
    column = np.array([value.number(view) for value in values], VIEW_DTYPES[view])[:, None]
    if len(values) > 1 and (column == column[0]).all():
        column = column[:1]
    return lambda m, lanes: column


def launch_reader(values: Sequence[LaunchValue], view: str) -> Reader:
    """Parameters and addresses as a column that broadcasts over the lanes."""
    wanted = tuple(values)
    dtype = VIEW_DTYPES[view]

    def read(m: Any, lanes: Any) -> np.ndarray:
        return np.array([m.run.launch_value(value, dtype) for value in wanted], dtype)[:, None]

    return read
