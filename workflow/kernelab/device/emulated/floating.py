"""f32 and f64 arithmetic and special functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from . import rounding
from .alu import Alu, Array, view_of
from .compare import flushed
from .types import TYPES

_EXACT: dict[str, Callable] = {
    "add": rounding.exact_add,
    "sub": rounding.exact_sub,
    "mul": rounding.exact_mul,
    "fma": rounding.exact_fma,
    "mad": rounding.exact_fma,
}
_NEAREST: dict[str, Callable] = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
_ARITY = {"add": 2, "sub": 2, "mul": 2, "fma": 3, "mad": 3, "div": 2, "min": 2, "max": 2, "copysign": 2}


def _ieee_min(x: Array, y: Array) -> Array:
    """fmin: the number where one operand is NaN; -0 counts below +0."""
    result = np.fmin(x, y)
    return np.where(x == y, np.where(np.signbit(x), x, y), result)


def _ieee_max(x: Array, y: Array) -> Array:
    result = np.fmax(x, y)
    return np.where(x == y, np.where(np.signbit(x), y, x), result)


def _in_double(function: Callable) -> Callable:
    """A special function evaluated in float64 and rounded once: closer than the hardware's approximation."""
    return lambda x: function(x.astype(np.float64)).astype(x.dtype)


def _sine(function: Callable) -> Callable:
    def run(x: Array) -> Array:
        wide = x.astype(np.float64)
        return np.where(np.isinf(wide), np.nan, function(np.where(np.isinf(wide), 0.0, wide))).astype(x.dtype)

    return run


_UNARY: dict[str, Callable] = {
    "rcp": _in_double(lambda x: 1.0 / x),
    "sqrt": np.sqrt,
    "rsqrt": _in_double(lambda x: 1.0 / np.sqrt(x)),
    "ex2": _in_double(np.exp2),
    "lg2": _in_double(np.log2),
    "sin": _sine(np.sin),
    "cos": _sine(np.cos),
    "tanh": _in_double(np.tanh),
    "abs": np.abs,
    "neg": np.negative,
}


def lookup(parts: list[str]) -> Alu | None:
    """The function of an f32 or f64 opcode; None when it is not one."""
    type_ = TYPES.get(parts[-1])
    if type_ is None or type_.name not in ("f32", "f64"):
        return None
    name, single = parts[0], type_.name == "f32"
    mode = next((m for m in ("rz", "rm", "rp") if m in parts), None)
    function: Callable | None
    if name in ("fma", "mad"):
        function = rounding.fused_multiply_add if single else rounding.fused_multiply_add_64
        if name == "mad" and mode is None and "rn" not in parts and not single:
            return None
    elif name in _NEAREST:
        function = _NEAREST[name]
    elif name == "div":
        function = np.divide
    elif name in ("min", "max"):
        function = _minimum(parts)
    elif name == "copysign":
        function = lambda x, y: np.copysign(y, x)  # noqa: E731  (PTX takes the sign from the first operand)
    else:
        function = _UNARY.get(name)
    if function is None:
        return None
    if mode is not None:
        if not single or name not in _EXACT:
            return _directed_other(parts, name, mode, view_of(type_))
        function = rounding.directed_f32(_EXACT[name], mode)
    function = _decorated(function, parts, single)
    view = view_of(type_)
    return Alu((view,) * _ARITY.get(name, 1), (view,), function)


def _directed_other(parts: list[str], name: str, mode: str, view: str) -> Alu | None:
    """Directed rcp, sqrt and div: the float64 quotient tells which way the nearest value was rounded."""
    exact: dict[str, Callable] = {
        "rcp": lambda x: 1.0 / x,
        "sqrt": np.sqrt,
        "div": np.divide,
    }
    if name not in exact or view != "f4":
        return None
    function = exact[name]

    def run(*operands: Array) -> Array:
        value = function(*(v.astype(np.float64) for v in operands))
        nearest = value.astype(np.float32)
        return np.where(
            np.isfinite(value), rounding.direct(nearest, value, np.zeros_like(value), mode), nearest
        )

    return Alu((view,) * _ARITY.get(name, 1), (view,), _decorated(run, parts, True))


def _minimum(parts: list[str]) -> Callable:
    function = _ieee_min if parts[0] == "min" else _ieee_max
    if "NaN" in parts:
        plain = function
        function = lambda x, y: np.where(np.isnan(x) | np.isnan(y), x.dtype.type(np.nan), plain(x, y))  # noqa: E731
    if "xorsign" in parts:
        inner = function
        return lambda x, y: np.copysign(
            inner(np.abs(x), np.abs(y)), np.where(np.signbit(x) ^ np.signbit(y), -1, 1)
        )
    return function


def _decorated(function: Callable, parts: list[str], single: bool) -> Callable:
    """Apply .ftz to operands and result and .sat to the result."""
    result = function
    if "ftz" in parts and single:
        plain = result
        result = lambda *operands: flushed(plain(*(flushed(v) for v in operands)))  # noqa: E731
    if single and parts[0] not in ("abs", "neg", "copysign", "fma", "mad"):
        rounded = result
        result = lambda *operands: rounding.canonical(rounded(*operands))  # noqa: E731
    if "sat" in parts:
        inner = result
        result = lambda *operands: np.nan_to_num(np.clip(inner(*operands), 0, 1))  # noqa: E731
    return result
