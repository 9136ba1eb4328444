"""PTX scalar types and the register files that hold them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Register files, by the width of the registers that they hold. Predicates have a file of their own.
FILE_16, FILE_32, FILE_64, FILE_PRED = 0, 1, 2, 3
FILE_DTYPES = (np.dtype(np.uint16), np.dtype(np.uint32), np.dtype(np.uint64), np.dtype(np.bool_))


@dataclass(frozen=True, slots=True)
class ScalarType:
    """A PTX fundamental type: its size in bytes, its kind (u, s, f, b or p) and its NumPy dtype."""

    name: str
    size: int
    kind: str
    dtype: np.dtype
    file: int

    @property
    def bits(self) -> int:
        return self.size * 8


def _scalar(name: str, size: int, kind: str, dtype: type, file: int) -> ScalarType:
    return ScalarType(name, size, kind, np.dtype(dtype), file)


TYPES: dict[str, ScalarType] = {
    t.name: t
    for t in (
        _scalar("pred", 1, "p", np.bool_, FILE_PRED),
        _scalar("b8", 1, "b", np.uint8, FILE_16),
        _scalar("u8", 1, "u", np.uint8, FILE_16),
        _scalar("s8", 1, "s", np.int8, FILE_16),
        _scalar("b16", 2, "b", np.uint16, FILE_16),
        _scalar("u16", 2, "u", np.uint16, FILE_16),
        _scalar("s16", 2, "s", np.int16, FILE_16),
        _scalar("f16", 2, "f", np.float16, FILE_16),
        _scalar("bf16", 2, "x", np.uint16, FILE_16),
        _scalar("b32", 4, "b", np.uint32, FILE_32),
        _scalar("u32", 4, "u", np.uint32, FILE_32),
        _scalar("s32", 4, "s", np.int32, FILE_32),
        _scalar("f32", 4, "f", np.float32, FILE_32),
        _scalar("f16x2", 4, "x", np.uint32, FILE_32),
        _scalar("bf16x2", 4, "x", np.uint32, FILE_32),
        _scalar("b64", 8, "b", np.uint64, FILE_64),
        _scalar("u64", 8, "u", np.uint64, FILE_64),
        _scalar("s64", 8, "s", np.int64, FILE_64),
        _scalar("f64", 8, "f", np.float64, FILE_64),
    )
}
