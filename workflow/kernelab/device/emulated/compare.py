"""Comparison and selection: setp, set, selp, slct, testp."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .alu import Alu, Array, view_of
from .types import TYPES, ScalarType

_ORDERED: dict[str, Callable] = {
    "eq": np.equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}
_BOOLEAN: dict[str, Callable] = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def _comparison(name: str, type_: ScalarType) -> Callable | None:
    if name in _ORDERED:
        return _ORDERED[name]
    if type_.kind not in "fx":
        return np.not_equal if name == "ne" else None
    if name == "ne":
        return lambda x, y: (x < y) | (x > y)
    if name == "neu":
        return np.not_equal
    if name == "num":
        return lambda x, y: ~(np.isnan(x) | np.isnan(y))
    if name == "nan":
        return lambda x, y: np.isnan(x) | np.isnan(y)
    ordered = _ORDERED.get(name[:-1])
    if ordered is None or not name.endswith("u"):
        return None
    return lambda x, y: ordered(x, y) | np.isnan(x) | np.isnan(y)


def flushed(x: Array) -> Array:
    """Subnormal float32 values as signed zeros (.ftz)."""
    return np.where(np.abs(x) < np.float32(2.0**-126), np.copysign(np.float32(0), x), x)


def _parse(parts: list[str], type_: ScalarType) -> tuple[Callable, Callable | None] | None:
    compare = _comparison(parts[1], type_)
    if compare is None:
        return None
    combine = next((_BOOLEAN[p] for p in parts[2:] if p in _BOOLEAN), None)
    if "ftz" in parts and type_.name == "f32":
        plain = compare
        return (lambda x, y: plain(flushed(x), flushed(y))), combine
    return compare, combine


def setp(parts: list[str], two_results: bool) -> Alu | None:
    """setp: with two results the second is the comparison's negation."""
    type_ = TYPES.get(parts[-1])
    parsed = None if type_ is None or type_.kind == "x" else _parse(parts, type_)
    if type_ is None or parsed is None:
        return None
    compare, combine = parsed
    view = view_of(type_)
    if combine is None:
        if not two_results:
            return Alu((view, view), ("?",), compare)

        def both(x: Array, y: Array) -> Array:
            result = compare(x, y)
            return result, ~result

        return Alu((view, view), ("?", "?"), both)
    if not two_results:
        return Alu((view, view, "?"), ("?",), lambda x, y, c: combine(compare(x, y), c))

    def combined(x: Array, y: Array, c: Array) -> Array:
        result = compare(x, y)
        return combine(result, c), combine(~result, c)

    return Alu((view, view, "?"), ("?", "?"), combined)


def lookup(parts: list[str]) -> Alu | None:
    """set, selp, slct and testp."""
    type_ = TYPES.get(parts[-1])
    if type_ is None:
        return None
    view = view_of(type_)
    if parts[0] == "selp":
        return Alu((view, view, "?"), (view,), lambda x, y, p: np.where(p, x, y))
    if parts[0] == "slct":
        result = TYPES.get(parts[-2])
        if result is None:
            return None
        data = view_of(result)
        return Alu((data, data, view), (data,), lambda x, y, c: np.where(c >= 0, x, y))
    if parts[0] == "testp":
        tests: dict[str, Callable] = {
            "finite": np.isfinite,
            "infinite": np.isinf,
            "notanumber": np.isnan,
            "number": lambda x: ~np.isnan(x),
            "normal": lambda x: np.isfinite(x) & (np.abs(x) >= np.finfo(x.dtype).tiny),
            "subnormal": lambda x: (x != 0) & (np.abs(x) < np.finfo(x.dtype).tiny),
        }
        test = tests.get(parts[1])
        return None if test is None else Alu((view,), ("?",), test)
    if parts[0] == "set":
        result = TYPES.get(parts[-2])
        parsed = _parse([*parts[:-2], parts[-1]], type_)
        if result is None or parsed is None or parsed[1] is not None:
            return None
        compare, data = parsed[0], view_of(result)
        one = result.dtype.type(1) if result.kind == "f" else ~np.dtype(data).type(0)
        zero = np.dtype(data).type(0)
        return Alu((view, view), (data,), lambda x, y: np.where(compare(x, y), one, zero))
    return None
