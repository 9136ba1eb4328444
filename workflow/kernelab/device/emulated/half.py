"""f16, bf16 and their packed pairs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .alu import Alu, Array
from .compare import _comparison
from .floating import _ieee_max, _ieee_min
from .types import TYPES

_CANONICAL_NAN = np.array(0x7FFF, np.uint16).view(np.float16)[()]


def bf16_to_f32(bits: Array) -> Array:
    """bfloat16 bits (uint16) as float32."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def f32_to_bf16(x: Array, mode: str = "rn") -> Array:
    """float32 to bfloat16 bits, to nearest even or towards zero; NaN becomes the canonical 0x7fff."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    if mode == "rn":
        bits = bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))
    return np.where(np.isnan(x), np.uint16(0x7FFF), (bits >> np.uint32(16)).astype(np.uint16))


def f32_to_f16(x: Array, mode: str = "rn") -> Array:
    """float32 to float16; `rz` truncates."""
    half = x.astype(np.float16)
    if mode == "rz":
        over = np.abs(half.astype(np.float32)) > np.abs(x)
        half = np.where(over, np.nextafter(half, np.float16(0)), half)
    return half


def _wide_fma(x: Array, y: Array, z: Array) -> Array:
    return x * y + z


_BINARY: dict[str, Callable] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "min": _ieee_min,
    "max": _ieee_max,
}
_UNARY: dict[str, Callable] = {
    "neg": np.negative,
    "abs": np.abs,
    "ex2": np.exp2,
    "tanh": np.tanh,
}


def _base(parts: list[str]) -> tuple[Callable, int] | None:
    name = parts[0]
    if name == "fma":
        return _wide_fma, 3
    if name in _BINARY:
        return _BINARY[name], 2
    if name in _UNARY:
        return _UNARY[name], 1
    return None


def _decorated(function: Callable, parts: list[str]) -> Callable:
    if "sat" in parts:
        plain = function
        return lambda *v: np.nan_to_num(np.clip(plain(*v), 0, 1))
    if "relu" in parts:
        inner = function
        return lambda *v: np.maximum(np.nan_to_num(inner(*v), posinf=np.inf), 0)
    return function


def _f16(function: Callable) -> Callable:
    """Evaluate in float64, where half products and sums are exact in all but extreme cases, then round."""

    def run(*v: Array) -> Array:
        result = function(*(x.astype(np.float64) for x in v)).astype(np.float16)
        return np.where(np.isnan(result), _CANONICAL_NAN, result)

    return run


def _bf16(function: Callable) -> Callable:
    return lambda *v: f32_to_bf16(
        function(*(bf16_to_f32(x).astype(np.float64) for x in v)).astype(np.float32)
    )


def halves(x: Array, dtype: type = np.float16) -> Array:
    """Packed pairs, shape (...,) uint32, as (..., 2) of a 16-bit dtype."""
    return np.ascontiguousarray(x).view(dtype).reshape(*x.shape, 2)


def packed(pairs: Array) -> Array:
    """The inverse of `halves`."""
    return np.ascontiguousarray(pairs).view(np.uint32)[..., 0]


def _pairwise(function: Callable, dtype: Array) -> Callable:
    return lambda *v: packed(function(*(halves(x, dtype) for x in v)))


def lookup(parts: list[str]) -> Alu | None:
    """The function of an f16, f16x2, bf16 or bf16x2 opcode; None when it is not one."""
    kind = parts[-1]
    if kind not in ("f16", "f16x2", "bf16", "bf16x2"):
        return None
    base = _base(parts)
    if base is None:
        return None
    function, arity = base
    function = _decorated(function, parts)
    if parts[0] in ("neg", "abs") and kind.startswith("bf16"):
        sign = np.uint16(0x8000)
        scalar = (lambda x: x ^ sign) if parts[0] == "neg" else (lambda x: x & ~sign)
    else:
        scalar = _bf16(function) if kind.startswith("bf16") else _f16(function)
    if kind.endswith("x2"):
        return Alu(("u4",) * arity, ("u4",), _pairwise(scalar, np.uint16 if kind == "bf16x2" else np.float16))
    view = "f2" if kind == "f16" else "u2"
    return Alu((view,) * arity, (view,), scalar)


def setp(parts: list[str]) -> Alu | None:
    """setp on bf16 and on packed pairs (two predicates, for the low and the high half)."""
    type_ = TYPES.get(parts[-1])
    if type_ is None or type_.kind != "x" or len([p for p in parts if p in ("and", "or", "xor")]):
        return None
    compare = _comparison(parts[1], type_)
    if compare is None:
        return None
    if type_.name == "bf16":
        return Alu(("u2", "u2"), ("?",), lambda x, y: compare(bf16_to_f32(x), bf16_to_f32(y)))

    def both(x: Array, y: Array) -> Array:
        dtype = np.float16 if type_.name == "f16x2" else np.uint16
        a, b = halves(x, dtype), halves(y, dtype)
        if dtype is np.uint16:
            a, b = bf16_to_f32(a), bf16_to_f32(b)
        result = compare(a, b)
        return result[..., 0], result[..., 1]

    return Alu(("u4", "u4"), ("?", "?"), both)
