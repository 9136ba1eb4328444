"""Integer, bitwise and predicate-logic instructions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .alu import Alu, Array, view_of
from .types import TYPES, ScalarType

_UNSIGNED: dict[int, Any] = {2: np.uint16, 4: np.uint32, 8: np.uint64}


def lookup(parts: list[str]) -> Alu | None:
    """The function of an integer opcode, split at its dots; None when it is not one."""
    type_ = TYPES.get(parts[-1])
    build = _FAMILIES.get(parts[0])
    if type_ is None or build is None or type_.kind not in "usbp":
        return None
    return build(parts, type_)


def _same(type_: ScalarType, arity: int, function: Callable) -> Alu:
    view = view_of(type_)
    return Alu((view,) * arity, (view,), function)


def _saturating(function: Callable) -> Callable:
    def clipped(x: Array, y: Array) -> Array:
        return np.clip(function(x.astype(np.int64), y), -(2**31), 2**31 - 1).astype(np.int32)

    return clipped


def _add_sub(parts: list[str], type_: ScalarType) -> Alu | None:
    function = {"add": np.add, "sub": np.subtract}[parts[0]]
    if "sat" in parts:
        return _same(type_, 2, _saturating(function)) if type_.name == "s32" else None
    return None if len(parts) != 2 else _same(type_, 2, function)


def mul_high(x: Array, y: Array) -> Array:
    """The upper half of a full product, for any integer dtype."""
    size = x.dtype.itemsize
    if size < 8:
        wide = np.int64 if x.dtype.kind == "i" else np.uint64
        return (x.astype(wide) * y.astype(wide) >> wide(8 * size)).astype(x.dtype)
    a, b = x.astype(np.uint64), y.astype(np.uint64)
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, b0, b1 = a & low, a >> shift, b & low, b >> shift
    middle = a1 * b0 + (a0 * b0 >> shift)
    other = a0 * b1 + (middle & low)
    high = a1 * b1 + (middle >> shift) + (other >> shift)
    if x.dtype.kind == "i":
        high = high - np.where(x < 0, b, np.uint64(0)) - np.where(y < 0, a, np.uint64(0))
    return high.astype(x.dtype)


def _mul(parts: list[str], type_: ScalarType) -> Alu | None:
    view = view_of(type_)
    if "wide" in parts:
        wide = view[0] + str(2 * type_.size)
        dtype = np.dtype(wide)
        return Alu((view,) * 2, (wide,), lambda x, y: np.multiply(x, y, dtype=dtype))
    if "hi" in parts:
        return _same(type_, 2, mul_high)
    return _same(type_, 2, np.multiply)


def _mad(parts: list[str], type_: ScalarType) -> Alu | None:
    view = view_of(type_)
    if "wide" in parts:
        wide = view[0] + str(2 * type_.size)
        dtype = np.dtype(wide)
        return Alu((view, view, wide), (wide,), lambda x, y, z: np.multiply(x, y, dtype=dtype) + z)
    if "hi" in parts:
        return None if "sat" in parts else _same(type_, 3, lambda x, y, z: mul_high(x, y) + z)
    return _same(type_, 3, lambda x, y, z: x * y + z)


def _mul24(parts: list[str], type_: ScalarType) -> Alu:
    wide = np.int64 if type_.kind == "s" else np.uint64
    shift = wide(16 if "hi" in parts else 0)

    def low24(x: Array) -> Array:
        x = x.astype(wide) << wide(40)
        return x >> wide(40)

    def product(x: Array, y: Array) -> Array:
        return (low24(x) * low24(y) >> shift).astype(type_.dtype)

    if parts[0] == "mul24":
        return _same(type_, 2, product)
    return _same(type_, 3, lambda x, y, z: product(x, y) + z)


def truncated_divide(x: Array, y: Array) -> Array:
    """C's quotient, rounded towards zero; all ones where the divisor is zero, as the hardware gives."""
    zero = y == 0
    if x.dtype.kind == "u":
        q = x // np.where(zero, x.dtype.type(1), y)
    else:
        unsigned = _UNSIGNED[x.dtype.itemsize]
        a = np.where(x < 0, -x, x).astype(unsigned)
        b = np.where(y < 0, -y, y).astype(unsigned)
        magnitude = (a // np.where(zero, unsigned(1), b)).astype(x.dtype)
        q = np.where((x < 0) != (y < 0), -magnitude, magnitude)
    return np.where(zero, ~x.dtype.type(0), q)


def _div_rem(parts: list[str], type_: ScalarType) -> Alu:
    if parts[0] == "div":
        return _same(type_, 2, truncated_divide)
    return _same(type_, 2, lambda x, y: np.where(y == 0, x, x - truncated_divide(x, y) * y))


def _unary(function: Callable) -> Callable:
    return lambda parts, type_: _same(type_, 1, function)


def _min_max(parts: list[str], type_: ScalarType) -> Alu | None:
    function = np.minimum if parts[0] == "min" else np.maximum
    if "relu" in parts:
        return _same(type_, 2, lambda x, y: np.maximum(function(x, y), x.dtype.type(0)))
    return _same(type_, 2, function) if len(parts) == 2 and type_.size > 1 else None


def _shift(parts: list[str], type_: ScalarType) -> Alu | None:
    bits, dtype, left = type_.bits, type_.dtype.type, parts[0] == "shl"

    def shift(x: Array, count: Array) -> Array:
        amount = np.minimum(count, np.uint32(bits - 1)).astype(dtype)
        value = x << amount if left else x >> amount
        if left or x.dtype.kind == "u":
            return np.where(count >= bits, dtype(0), value)
        return value

    return Alu((view_of(type_), "u4"), (view_of(type_),), shift)


def _funnel(parts: list[str], type_: ScalarType) -> Alu | None:
    left, wrap = parts[1] == "l", parts[2] == "wrap"

    def shift(low: Array, high: Array, count: Array) -> Array:
        n = (count & np.uint32(31) if wrap else np.minimum(count, np.uint32(32))).astype(np.uint64)
        pair = high.astype(np.uint64) << np.uint64(32) | low
        return (pair << n >> np.uint64(32) if left else pair >> n).astype(np.uint32)

    return Alu(("u4",) * 3, ("u4",), shift)


def lop3(table: int) -> Alu:
    """Any function of three bits, by its truth table."""

    def run(x: Array, y: Array, z: Array) -> Array:
        result = np.zeros(np.broadcast_shapes(x.shape, y.shape, z.shape), np.uint32)
        for i in range(8):
            if table >> i & 1:
                result |= (x if i & 4 else ~x) & (y if i & 2 else ~y) & (z if i & 1 else ~z)
        return result

    return Alu(("u4",) * 3, ("u4",), run)


def leading_zeros(x: Array) -> Array:
    """Number of zero bits above the highest one bit."""
    bits = 8 * x.dtype.itemsize
    count = np.zeros(x.shape, np.uint32)
    value = x.copy()
    step = bits // 2
    while step:
        empty = value >> x.dtype.type(bits - step) == 0
        count += np.where(empty, np.uint32(step), np.uint32(0))
        value = np.where(empty, value << x.dtype.type(step), value)
        step //= 2
    return np.where(x == 0, np.uint32(bits), count).astype(np.uint32)


def reverse_bits(x: Array) -> Array:
    """The bits in the opposite order."""
    as_bytes = np.ascontiguousarray(x).view(np.uint8).reshape(*x.shape, -1)[..., ::-1]
    table = np.packbits(np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)[:, ::-1], axis=1)[:, 0]
    return np.ascontiguousarray(table[as_bytes]).view(x.dtype)[..., 0]


def _count(function: Callable) -> Callable:
    return lambda parts, type_: Alu(("u" + str(type_.size),), ("u4",), function)


def _bfind(parts: list[str], type_: ScalarType) -> Alu:
    bits, shift_amount = type_.bits, "shiftamt" in parts

    def find(x: Array) -> Array:
        value = np.where(x < 0, ~x, x).astype(_UNSIGNED[type_.size]) if type_.kind == "s" else x
        position = np.uint32(bits - 1) - leading_zeros(value)
        if shift_amount:
            position = np.where(value == 0, position, np.uint32(bits - 1) - position)
        return np.where(value == 0, np.uint32(0xFFFFFFFF), position)

    return Alu((view_of(type_),), ("u4",), find)


def _bfe(parts: list[str], type_: ScalarType) -> Alu:
    bits, unsigned = type_.bits, _UNSIGNED[type_.size]

    def extract(x: Array, position: Array, length: Array) -> Array:
        pos, size = position & np.uint32(255), length & np.uint32(255)
        raw = x.astype(unsigned)
        moved = np.where(pos >= bits, unsigned(0), raw >> np.minimum(pos, bits - 1).astype(unsigned))
        kept = np.minimum(size, bits).astype(unsigned)
        mask = np.where(
            kept >= bits,
            ~unsigned(0),
            (unsigned(1) << np.minimum(kept, bits - 1).astype(unsigned)) - unsigned(1),
        )
        if type_.kind == "s":
            last = np.minimum(pos.astype(np.int64) + size - 1, bits - 1)
            sign = (raw >> np.maximum(last, 0).astype(unsigned) & unsigned(1)).astype(bool) & (size > 0)
            outside = np.maximum(np.minimum(np.int64(bits) - pos, size), 0).astype(unsigned)
            real = np.where(
                outside >= bits,
                ~unsigned(0),
                (unsigned(1) << np.minimum(outside, bits - 1).astype(unsigned)) - unsigned(1),
            )
            return np.where(sign, moved & mask | ~real, moved & mask).astype(unsigned).view(type_.dtype)
        return moved & mask

    return Alu((view_of(type_), "u4", "u4"), (view_of(type_),), extract)


def _bfi(parts: list[str], type_: ScalarType) -> Alu:
    bits, unsigned = type_.bits, _UNSIGNED[type_.size]

    def insert(x: Array, y: Array, position: Array, length: Array) -> Array:
        pos = np.minimum(position & np.uint32(255), bits)
        size = np.minimum(length & np.uint32(255), bits - pos)
        ones = np.where(
            size >= bits,
            ~unsigned(0),
            (unsigned(1) << np.minimum(size, bits - 1).astype(unsigned)) - unsigned(1),
        )
        at = np.minimum(pos, bits - 1).astype(unsigned)
        mask = np.where(pos >= bits, unsigned(0), ones << at)
        return y & ~mask | x << at & mask

    return Alu((view_of(type_),) * 2 + ("u4", "u4"), (view_of(type_),), insert)


def _bytes_of(x: Array) -> Array:
    return [(x >> np.uint32(8 * i) & np.uint32(255)) for i in range(4)]


def permute_bytes(x: Array, y: Array, selector: Array) -> Array:
    """prmt in its default mode: four bytes chosen from eight, with sign replication."""
    pool = np.stack([*np.broadcast_arrays(*_bytes_of(x), *_bytes_of(y), selector)[:8]])
    result = np.zeros(pool.shape[1:], np.uint32)
    selector = np.broadcast_to(selector, result.shape)
    for i in range(4):
        nibble = selector >> np.uint32(4 * i) & np.uint32(15)
        byte = np.take_along_axis(pool, (nibble & np.uint32(7)).astype(np.intp)[None], axis=0)[0]
        sign = np.where(byte & np.uint32(128), np.uint32(255), np.uint32(0))
        result |= np.where(nibble & np.uint32(8), sign, byte) << np.uint32(8 * i)
    return result


_PRMT_MODES = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}


def _prmt(parts: list[str], type_: ScalarType) -> Alu:
    mode = _PRMT_MODES.get(parts[-1] if parts[-1] in _PRMT_MODES else parts[1])
    if mode is None:
        return Alu(("u4",) * 3, ("u4",), permute_bytes)
    table = np.array(mode, np.uint32)
    return Alu(("u4",) * 3, ("u4",), lambda x, y, s: permute_bytes(x, y, table[s & np.uint32(3)]))


def _dot(parts: list[str], type_: ScalarType) -> Alu:
    def lanes(x: Array, signed: bool, width: int) -> Array:
        kind = (np.int8 if signed else np.uint8) if width == 8 else (np.int16 if signed else np.uint16)
        return np.ascontiguousarray(x).view(kind).reshape(*x.shape, -1).astype(np.int64)

    a_signed, b_signed = parts[-2][0] == "s", parts[-1][0] == "s"
    if parts[0] == "dp4a":

        def dot(x: Array, y: Array, z: Array) -> Array:
            return ((lanes(x, a_signed, 8) * lanes(y, b_signed, 8)).sum(-1) + z).astype(np.uint32)
    else:
        half = slice(2, 4) if "hi" in parts else slice(0, 2)

        def dot(x: Array, y: Array, z: Array) -> Array:
            return ((lanes(x, a_signed, 16) * lanes(y, b_signed, 8)[..., half]).sum(-1) + z).astype(np.uint32)

    return Alu(("u4", "u4", "u4"), ("u4",), dot)


def _sad(parts: list[str], type_: ScalarType) -> Alu:
    return _same(type_, 3, lambda x, y, z: z + np.where(x > y, x - y, y - x).astype(z.dtype))


def _mask(parts: list[str], type_: ScalarType) -> Alu:
    def mask(position: Array, length: Array) -> Array:
        pos, size = np.minimum(position, 32).astype(np.uint64), np.minimum(length, 32).astype(np.uint64)
        if parts[1] == "wrap":
            pos, size = (
                (position & np.uint32(31)).astype(np.uint64),
                (length & np.uint32(31)).astype(np.uint64),
            )
        return (((np.uint64(1) << size) - np.uint64(1)) << pos).astype(np.uint32)

    return Alu(("u4", "u4"), ("u4",), mask)


def _logic(function: Callable) -> Callable:
    return lambda parts, type_: _same(type_, 2, function)


_FAMILIES: dict[str, Callable[[list[str], ScalarType], Alu | None]] = {
    "add": _add_sub,
    "sub": _add_sub,
    "mul": _mul,
    "mad": _mad,
    "mul24": _mul24,
    "mad24": _mul24,
    "div": _div_rem,
    "rem": _div_rem,
    "min": _min_max,
    "max": _min_max,
    "shl": _shift,
    "shr": _shift,
    "shf": _funnel,
    "bfind": _bfind,
    "bfe": _bfe,
    "bfi": _bfi,
    "prmt": _prmt,
    "dp4a": _dot,
    "dp2a": _dot,
    "sad": _sad,
    "bmsk": _mask,
    "abs": _unary(np.abs),
    "neg": _unary(np.negative),
    "brev": _unary(reverse_bits),
    "not": lambda parts, type_: _same(type_, 1, np.logical_not if type_.kind == "p" else np.invert),
    "cnot": _unary(lambda x: (x == 0).astype(x.dtype)),
    "and": _logic(np.bitwise_and),
    "or": _logic(np.bitwise_or),
    "xor": _logic(np.bitwise_xor),
    "popc": _count(lambda x: np.bitwise_count(x).astype(np.uint32)),
    "clz": _count(leading_zeros),
}
