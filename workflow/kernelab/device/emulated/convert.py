"""cvt in all its forms. Registers may be wider than the type that an instruction names."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .alu import Array
from .compare import flushed
from .half import bf16_to_f32, f32_to_bf16, f32_to_f16
from .types import TYPES, ScalarType

_INTEGER_ROUNDING: dict[str, Callable] = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def _narrow(x: Array, type_: ScalarType) -> Array:
    """The low bits of a register, read as `type_`."""
    unsigned = np.dtype(f"u{type_.size}")
    value = x if x.dtype.itemsize == type_.size else x.astype(unsigned)
    return np.ascontiguousarray(value).view(type_.dtype)


def _widen(value: Array, register: np.dtype) -> Array:
    """A value as register bits, sign- or zero-extended by its own type."""
    if value.dtype.kind == "f" or value.dtype.itemsize == register.itemsize:
        return np.ascontiguousarray(value).view(f"u{value.dtype.itemsize}").astype(register, copy=False)
    return value.astype(register)


def float_to_integer(x: Array, type_: ScalarType, rounding: str = "rzi") -> Array:
    """Round, clamp to the range of `type_`; NaN becomes 0 (2^63 for 64-bit types, as the hardware gives)."""
    info = np.iinfo(type_.dtype)
    value = _INTEGER_ROUNDING[rounding](x.astype(np.float64))
    nan = np.isnan(value)
    low, high = float(info.min), float(info.max)
    inside = np.clip(np.where(nan, 0.0, value), low, high)
    over = inside >= high
    result = np.where(over, info.max, np.where(over, 0.0, inside).astype(type_.dtype)).astype(type_.dtype)
    if type_.size == 8:
        special = np.array(1 << 63, np.uint64).view(type_.dtype) if type_.kind == "u" else info.min
        return np.where(nan, type_.dtype.type(special), result)
    return result


def _to_float(value: Array, parts: list[str], target: ScalarType) -> Array:
    mode = next((m for m in ("rz", "rm", "rp") if m in parts), "rn")
    if target.name == "f16":
        return f32_to_f16(value.astype(np.float32) if value.dtype != np.float16 else value, mode)
    if (target.name == "f32" and value.dtype.kind in "iu") or (
        target.name == "f32" and value.dtype == np.float64
    ):
        return _rounded_f32(value, mode)
    if target.name == "f64" and value.dtype.kind in "iu" and mode != "rn" and value.dtype.itemsize == 8:
        return _directed_int(value, np.float64, mode)
    return value.astype(target.dtype)


def _rounded_f32(value: Array, mode: str) -> Array:
    nearest = value.astype(np.float32)
    if mode == "rn":
        return nearest
    if value.dtype.kind in "iu":
        return _directed_int(value, np.float32, mode)
    return _step(
        nearest, nearest.astype(np.float64) > value, nearest.astype(np.float64) < value, value < 0, mode
    )


def _directed_int(value: Array, dtype: Array, mode: str) -> Array:
    nearest = value.astype(dtype)
    wide = nearest.astype(object)
    exact = value.astype(object)
    return _step(nearest, (wide > exact).astype(bool), (wide < exact).astype(bool), value < 0, mode)


def _step(nearest: Array, above: Array, below: Array, negative: Array, mode: str) -> Array:
    kind = nearest.dtype.type
    down, up = np.nextafter(nearest, kind(-np.inf)), np.nextafter(nearest, kind(np.inf))
    if mode == "rm":
        return np.where(above, down, nearest)
    if mode == "rp":
        return np.where(below, up, nearest)
    return np.where(above & ~negative, down, np.where(below & negative, up, nearest))


def conversion(parts: list[str], source_register: np.dtype, target_register: np.dtype) -> Callable | None:
    """A function from register bits to register bits, for `cvt` split at its dots; None when unknown."""
    target, source = TYPES.get(parts[-2]), TYPES.get(parts[-1])
    if target is None or source is None or "x2" in target.name or "x2" in source.name:
        return None
    rounding = next((p for p in parts if p in _INTEGER_ROUNDING), None)
    saturate, ftz = "sat" in parts, "ftz" in parts

    def run(x: Array) -> Array:
        value = _narrow(x, source)
        if source.name == "bf16":
            value = bf16_to_f32(value)
        if ftz and value.dtype == np.float32:
            value = flushed(value)
        if value.dtype.kind == "f" and target.kind in "us":
            result = float_to_integer(value, target, rounding or "rzi")
        elif target.name == "bf16":
            result = f32_to_bf16(value.astype(np.float32), "rz" if "rz" in parts else "rn")
        elif target.kind == "f":
            if rounding is not None:
                value = _INTEGER_ROUNDING[rounding](value)
            result = _to_float(value, parts, target)
            if saturate:
                result = np.nan_to_num(np.clip(result, 0, 1)).astype(target.dtype)
            if "relu" in parts:
                result = np.maximum(result, target.dtype.type(0))
            if ftz and target.name == "f32":
                result = flushed(result)
        elif saturate:
            info = np.iinfo(target.dtype)
            low, high = max(info.min, np.iinfo(source.dtype).min), min(info.max, np.iinfo(source.dtype).max)
            result = np.clip(value, source.dtype.type(low), source.dtype.type(high)).astype(target.dtype)
        else:
            result = value.astype(target.dtype)
        return _widen(result, target_register)

    return run


def packed_conversion(parts: list[str]) -> Callable | None:
    """cvt of two f32 into one f16x2 or bf16x2; the first operand goes to the upper half."""
    mode = "rz" if "rz" in parts else "rn"
    if parts[-1] != "f32" or parts[-2] not in ("f16x2", "bf16x2"):
        return None
    narrow = f32_to_f16 if parts[-2] == "f16x2" else f32_to_bf16

    def run(high: Array, low: Array) -> Array:
        if "relu" in parts:
            high, low = np.maximum(high, np.float32(0)), np.maximum(low, np.float32(0))
        upper = narrow(high, mode).view(np.uint16).astype(np.uint32)
        return upper << np.uint32(16) | narrow(low, mode).view(np.uint16)

    return run
