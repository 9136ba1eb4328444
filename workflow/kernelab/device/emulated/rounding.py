"""Rounding that hardware does once and NumPy would do twice: exact fused multiply-add, directed modes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .alu import Array

_HALFWAY_MASK = np.int64(0x1FFFFFFF)  # the 29 bits of a float64 that a float32 drops
_HALFWAY = np.int64(0x10000000)
_SPLITTER = 134217729.0  # 2^27 + 1, Veltkamp's constant for float64


CANONICAL_NAN = np.array(0x7FFFFFFF, np.uint32).view(np.float32)[
    ()
]  # of every f32 instruction that gives NaN


def canonical(x: Array) -> Array:
    """float32 results with every NaN made the hardware's one."""
    nan = np.isnan(x)
    if nan.any():
        return np.where(nan, CANONICAL_NAN, x)
    return x


def two_sum(a: Array, b: Array) -> Array:
    """Knuth's TwoSum: the rounded sum and its exact error."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def two_product(a: Array, b: Array) -> Array:
    """Dekker's product for float64: the rounded product and its error, exact without overflow."""
    p = a * b
    x, y = a * _SPLITTER, b * _SPLITTER
    ah, bh = x - (x - a), y - (y - b)
    al, bl = a - ah, b - bh
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def to_odd(value: Array, error: Array) -> Array:
    """Round-to-odd: a float64 sum moved to an odd last bit where it is inexact.

    Rounding such a value once more, to a format at least two bits narrower, gives the correctly rounded
    result (Boldo and Melquiond, 2008).
    """
    bits = value.view(np.int64) if value.flags.c_contiguous else np.ascontiguousarray(value).view(np.int64)
    inexact = (error != 0) & np.isfinite(value) & (bits & 1 == 0)
    towards = np.where(error > 0, np.inf, -np.inf)
    return np.where(inexact, np.nextafter(value, towards), value)


def fused_multiply_add(x: Array, y: Array, z: Array) -> Array:
    """float32 x * y + z with one rounding. The product is exact in float64; the sum is repaired where it matters."""
    total = np.multiply(x, y, dtype=np.float64)
    np.add(total, z, out=total)
    repair_halfway(total, x, y, z)
    return canonical(total.astype(np.float32))


def repair_halfway(total: Array, x: Array, y: Array, z: Array) -> None:
    """Correct, in place, the float64 sums that a second rounding to float32 would break.

    These are the sums whose dropped bits are exactly one half: about one in 2^29 for random data.
    """
    suspicious = total.view(np.int64) & _HALFWAY_MASK == _HALFWAY
    if not suspicious.any():
        return
    x, y, z = (np.broadcast_to(v, total.shape)[suspicious].astype(np.float64) for v in (x, y, z))
    total[suspicious] = to_odd(*two_sum(x * y, z))


def fused_multiply_add_64(x: Array, y: Array, z: Array) -> Array:
    """float64 x * y + z with one rounding (Boldo and Melquiond, 2008), where nothing over- or underflows."""
    product, low = two_product(x, y)
    head, head_rest = two_sum(z, low)
    total, total_rest = two_sum(product, head)
    exact = total + to_odd(*two_sum(head_rest, total_rest))
    return np.where(np.isfinite(exact), exact, x * y + z)


def direct(rounded: Array, target: Array, error: Array, mode: str) -> Array:
    """Move a result rounded to nearest so that it is rounded in `mode` (rz, rm or rp).

    `target` + `error` is the exact value, `rounded` its nearest value in a narrower or equal format.
    """
    difference = rounded.astype(np.float64) - target
    above = (difference > 0) | ((difference == 0) & (error < 0))
    below = (difference < 0) | ((difference == 0) & (error > 0))
    kind = rounded.dtype.type
    down = np.nextafter(rounded, kind(-np.inf))
    up = np.nextafter(rounded, kind(np.inf))
    negative = target < 0
    if mode == "rm":
        return np.where(above, down, rounded)
    if mode == "rp":
        return np.where(below, up, rounded)
    return np.where(above & ~negative, down, np.where(below & negative, up, rounded))


def directed_f32(function: Callable, mode: str) -> Callable:
    """A float32 add, sub, mul or fma in a directed mode, from its exact float64 value and error."""

    def run(*operands: Array) -> Array:
        with np.errstate(all="ignore"):
            value, error = function(*(v.astype(np.float64) for v in operands))
            nearest = to_odd(value, error).astype(np.float32)
            return np.where(np.isfinite(value), direct(nearest, value, error, mode), nearest)

    return run


def exact_add(x: Array, y: Array) -> Array:
    return two_sum(x, y)


def exact_sub(x: Array, y: Array) -> Array:
    return two_sum(x, -y)


def exact_mul(x: Array, y: Array) -> Array:
    """The product of two float32 values held in float64 is exact."""
    product = x * y
    return product, np.zeros_like(product)


def exact_fma(x: Array, y: Array, z: Array) -> Array:
    return two_sum(x * y, z)
