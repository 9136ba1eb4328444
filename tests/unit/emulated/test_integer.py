"""Integer instructions against Python's unbounded integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from one_instruction import evaluate

LANES = 48
QUICK = settings(max_examples=4, suppress_health_check=[HealthCheck.too_slow])


def wrap(value: int, type_: str) -> int:
    """An integer as the two's complement number that a type holds."""
    bits = int(type_[1:])
    value &= (1 << bits) - 1
    return value - (1 << bits) if type_[0] == "s" and value >> (bits - 1) else value


def numbers(type_: str) -> st.SearchStrategy[int]:
    bits = int(type_[1:])
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if type_[0] == "s" else (0, (1 << bits) - 1)
    edges = sorted(
        {low, high, 0, 1, high // 2, low + 1, high - 1, min(31, high), min(32, high), min(33, high)}
    )
    return st.one_of(st.sampled_from(edges), st.integers(low, high), st.integers(max(low, -70), 70))


def dtype(type_: str) -> type:
    return {
        "s": {16: np.int16, 32: np.int32, 64: np.int64},
        "u": {16: np.uint16, 32: np.uint32, 64: np.uint64},
        "b": {16: np.uint16, 32: np.uint32, 64: np.uint64},
    }[type_[0]][int(type_[1:])]


def divide(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return -q if (a < 0) != (b < 0) else q


def bits_of(value: int, count: int) -> int:
    return value & (1 << count) - 1


def bfe(a: int, pos: int, length: int, type_: str) -> int:
    """PTX ISA's definition of bfe, bit by bit."""
    bits = int(type_[1:])
    pos, length = pos & 255, length & 255
    raw = bits_of(a, bits)
    sign = 0 if type_[0] == "u" or length == 0 else raw >> min(pos + length - 1, bits - 1) & 1
    result = 0
    for i in range(bits):
        bit = raw >> (pos + i) & 1 if i < length and pos + i < bits else sign
        result |= bit << i
    return wrap(result, type_)


def bfi(a: int, b: int, pos: int, length: int, bits: int) -> int:
    pos, length, result = pos & 255, length & 255, bits_of(b, bits)
    for i in range(length):
        if pos + i < bits:
            result = result & ~(1 << pos + i) | (a >> i & 1) << pos + i
    return result


def prmt(a: int, b: int, control: int) -> int:
    pool = [(a | b << 32) >> 8 * i & 255 for i in range(8)]
    result = 0
    for i in range(4):
        select = control >> 4 * i & 15
        byte = pool[select & 7]
        if select & 8:
            byte = 255 if byte & 128 else 0
        result |= byte << 8 * i
    return result


def funnel(low: int, high: int, count: int, left: bool, wraps: bool) -> int:
    n = count & 31 if wraps else min(count, 32)
    pair = high << 32 | low
    return pair << n >> 32 & 0xFFFFFFFF if left else pair >> n & 0xFFFFFFFF


def dot4(a: int, b: int, c: int, signed: tuple[bool, bool]) -> int:
    total = c
    for i in range(4):
        x, y = a >> 8 * i & 255, b >> 8 * i & 255
        total += (x - 256 if signed[0] and x > 127 else x) * (y - 256 if signed[1] and y > 127 else y)
    return total


Case = tuple[str, tuple[str, ...], str, Callable[..., int]]
CASES: list[Case] = []
for t in ("s16", "u16", "s32", "u32", "s64", "u64"):
    CASES += [
        (f"add.{t} %d, %s0, %s1", (t, t), t, lambda a, b: a + b),
        (f"sub.{t} %d, %s0, %s1", (t, t), t, lambda a, b: a - b),
        (f"mul.lo.{t} %d, %s0, %s1", (t, t), t, lambda a, b: a * b),
        (f"mul.hi.{t} %d, %s0, %s1", (t, t), t, lambda a, b, n=int(t[1:]): a * b >> n),
        (f"mad.lo.{t} %d, %s0, %s1, %s2", (t, t, t), t, lambda a, b, c: a * b + c),
        (f"div.{t} %d, %s0, %s1", (t, t), t, lambda a, b: divide(a, b) if b else -1),
        (f"rem.{t} %d, %s0, %s1", (t, t), t, lambda a, b: a - divide(a, b) * b if b else a),
        (f"min.{t} %d, %s0, %s1", (t, t), t, min),
        (f"max.{t} %d, %s0, %s1", (t, t), t, max),
        (f"shr.{t} %d, %s0, %s1", (t, "u32"), t, lambda a, n: a >> min(n, 64)),
        (f"sad.{t} %d, %s0, %s1, %s2", (t, t, t), t, lambda a, b, c: abs(a - b) + c),
    ]
for t, wide in (("s16", "s32"), ("u16", "u32"), ("s32", "s64"), ("u32", "u64")):
    CASES += [
        (f"mul.wide.{t} %d, %s0, %s1", (t, t), wide, lambda a, b: a * b),
        (f"mad.wide.{t} %d, %s0, %s1, %s2", (t, t, wide), wide, lambda a, b, c: a * b + c),
    ]
for t in ("b16", "b32", "b64"):
    bits = int(t[1:])
    CASES += [
        (f"and.{t} %d, %s0, %s1", (t, t), t, lambda a, b: a & b),
        (f"or.{t} %d, %s0, %s1", (t, t), t, lambda a, b: a | b),
        (f"xor.{t} %d, %s0, %s1", (t, t), t, lambda a, b: a ^ b),
        (f"not.{t} %d, %s0", (t,), t, lambda a: ~a),
        (f"cnot.{t} %d, %s0", (t,), t, lambda a: int(a == 0)),
        (f"shl.{t} %d, %s0, %s1", (t, "u32"), t, lambda a, n: a << min(n, 64)),
    ]
for t in ("b32", "b64"):
    bits = int(t[1:])
    CASES += [
        (f"popc.{t} %d, %s0", (t,), "u32", lambda a: a.bit_count()),
        (f"clz.{t} %d, %s0", (t,), "u32", lambda a, n=bits: n - a.bit_length()),
        (f"brev.{t} %d, %s0", (t,), t, lambda a, n=bits: int(f"{a:0{n}b}"[::-1], 2)),
        (
            f"bfi.{t} %d, %s0, %s1, %s2, %s3",
            (t, t, "u32", "u32"),
            t,
            lambda a, b, p, n, w=bits: bfi(a, b, p, n, w),
        ),
    ]
for t in ("s32", "u32", "s64", "u64"):
    CASES += [
        (f"bfe.{t} %d, %s0, %s1, %s2", (t, "u32", "u32"), t, lambda a, p, n, t=t: bfe(a, p, n, t)),
        (f"bfind.{t} %d, %s0", (t,), "u32", lambda a: (a if a >= 0 else ~a).bit_length() - 1),
    ]
CASES += [
    ("abs.s32 %d, %s0", ("s32",), "s32", abs),
    ("neg.s64 %d, %s0", ("s64",), "s64", lambda a: -a),
    ("add.sat.s32 %d, %s0, %s1", ("s32", "s32"), "s32", lambda a, b: max(-(2**31), min(2**31 - 1, a + b))),
    ("prmt.b32 %d, %s0, %s1, %s2", ("b32", "b32", "b32"), "b32", prmt),
    (
        "dp4a.s32.s32 %d, %s0, %s1, %s2",
        ("b32", "b32", "s32"),
        "s32",
        lambda a, b, c: dot4(a, b, c, (True, True)),
    ),
    (
        "dp4a.u32.s32 %d, %s0, %s1, %s2",
        ("b32", "b32", "s32"),
        "s32",
        lambda a, b, c: dot4(a, b, c, (False, True)),
    ),
    ("mul24.lo.u32 %d, %s0, %s1", ("u32", "u32"), "u32", lambda a, b: bits_of(a, 24) * bits_of(b, 24)),
    (
        "mad24.lo.s32 %d, %s0, %s1, %s2",
        ("s32", "s32", "s32"),
        "s32",
        lambda a, b, c: (wrap(a << 8, "s32") >> 8) * (wrap(b << 8, "s32") >> 8) + c,
    ),
    ("slct.s32.s32 %d, %s0, %s1, %s2", ("s32", "s32", "s32"), "s32", lambda a, b, c: a if c >= 0 else b),
    ("lop3.b32 %d, %s0, %s1, %s2, 0xCA", ("b32", "b32", "b32"), "b32", lambda a, b, c: a & b | ~a & c),
    ("lop3.b32 %d, %s0, %s1, %s2, 0x96", ("b32", "b32", "b32"), "b32", lambda a, b, c: a ^ b ^ c),
]
for left in (True, False):
    for wraps in (True, False):
        name = f"shf.{'l' if left else 'r'}.{'wrap' if wraps else 'clamp'}.b32 %d, %s0, %s1, %s2"
        CASES.append(
            (
                name,
                ("b32", "b32", "u32"),
                "b32",
                lambda a, b, n, left=left, wraps=wraps: funnel(a, b, n, left, wraps),
            )
        )
for source in ("s16", "u16", "s32", "u32", "s64", "u64"):
    for target in ("s16", "u16", "s32", "u32", "s64", "u64"):
        if source != target:
            CASES.append((f"cvt.{target}.{source} %d, %s0", (source,), target, lambda a: a))
CASES += [
    ("cvt.sat.u16.s32 %d, %s0", ("s32",), "u16", lambda a: max(0, min(65535, a))),
    ("cvt.sat.s32.s64 %d, %s0", ("s64",), "s32", lambda a: max(-(2**31), min(2**31 - 1, a))),
    ("cvt.s32.s8 %d, %s0", ("s32",), "s32", lambda a: wrap(a, "s8")),
    ("cvt.u32.u8 %d, %s0", ("s32",), "u32", lambda a: a & 255),
]


@pytest.mark.parametrize(
    ("instruction", "types", "result", "reference"), CASES, ids=[c[0].split()[0] for c in CASES]
)
@QUICK
@given(data=st.data())
def test_against_unbounded_integers(instruction, types, result, reference, data):
    columns = [
        data.draw(st.lists(numbers(t.replace("b", "u")), min_size=LANES, max_size=LANES)) for t in types
    ]
    arrays = [np.array(c, dtype(t)) for c, t in zip(columns, types, strict=True)]
    got = evaluate(instruction, arrays, dtype(result)).tolist()
    wanted = [wrap(reference(*row), result) for row in zip(*columns, strict=True)]
    assert got == wanted


COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("type_", ["s16", "u32", "s32", "s64", "u64"])
@QUICK
@given(data=st.data())
def test_comparisons(name, type_, data):
    a, b = (data.draw(st.lists(numbers(type_), min_size=LANES, max_size=LANES)) for _ in range(2))
    a[0] = b[0]
    got = evaluate(
        f"setp.{name}.{type_} %d, %s0, %s1",
        [np.array(v, dtype(type_)) for v in (a, b)],
        np.uint32,
        predicate=True,
    )
    assert got.tolist() == [int(eval(f"{x} {COMPARISONS[name]} {y}")) for x, y in zip(a, b, strict=True)]
