"""Chains of additions that pass a carry: add.cc, addc, sub.cc, subc, mad.cc and madc."""

from __future__ import annotations

from typing import Any

import numpy as np

from .alu import Alu, Array
from .integer import mul_high
from .types import TYPES


def lookup(parts: list[str]) -> Alu | None:
    """The function of a carry instruction: its last input and its second output, if any, are the carry flag."""
    type_ = TYPES.get(parts[-1])
    name, writes = parts[0], "cc" in parts
    reads = name in ("addc", "subc", "madc")
    if type_ is None or type_.size < 4 or not (reads or (writes and name in ("add", "sub", "mad"))):
        return None
    view, signed = f"u{type_.size}", type_.kind == "s"
    high = "hi" in parts

    def summands(x: Array, y: Array, rest: tuple[Array, ...]) -> tuple[Any, Any, Any]:
        """What is added to what, and the carry that comes in."""
        carry = rest[-1] if reads else np.zeros((1, 1), np.bool_)
        if not name.startswith("mad"):
            return x, y, carry
        if high and signed:
            product = mul_high(x.view(type_.dtype), y.view(type_.dtype)).view(x.dtype)
        else:
            product = mul_high(x, y) if high else x * y
        return product, rest[0], carry

    def run(x: Array, y: Array, *rest: Array) -> Any:
        a, b, carry = summands(x, y, rest)
        unit = carry.astype(x.dtype)
        if name.startswith("sub"):
            first = a - b
            result = first - unit
            flag = (a < b) | (first < unit)
        else:
            first = a + b
            result = first + unit
            flag = (first < a) | (result < first)
        return (result, flag) if writes else result

    arity = 3 if name.startswith("mad") else 2
    return Alu((view,) * arity + (("?",) if reads else ()), (view,) + (("?",) if writes else ()), run)
