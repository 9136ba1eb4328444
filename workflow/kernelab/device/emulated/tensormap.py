"""Tensor maps: what a TMA copy is told about its matrix. The bytes are the emulated device's own, not the driver's."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .errors import EmulationError

_MAGIC = b"kernelab tensor "
_LAYOUT = "<16sQ5Q5Q5H4B"  # name, address, sizes, strides, box, then rank, element, swizzle, spare


@dataclass(frozen=True, slots=True)
class TensorMap:
    """A matrix of up to five dimensions, fastest first: sizes and box in elements, strides in bytes.

    `swizzle` is 0, 32, 64 or 128: within so many bytes of a row, 16-byte pieces are exchanged by the row's number.
    """

    address: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    element: int = 4
    swizzle: int = 0

    @property
    def bytes_in_box(self) -> int:
        return int(np.prod(self.box)) * self.element

    def encode(self) -> bytes:
        """128 bytes for a kernel's parameter."""

        def five(values: Sequence[int]) -> list[int]:
            return [*values, *[0] * (5 - len(values))]

        raw = struct.pack(
            _LAYOUT,
            _MAGIC,
            self.address,
            *five(self.sizes),
            *five(self.strides),
            *five(self.box),
            len(self.sizes),
            self.element,
            self.swizzle,
            0,
        )
        return raw.ljust(128, b"\0")

    @classmethod
    def decode(cls, raw: bytes) -> TensorMap | None:
        """The map that 128 bytes hold; None when they hold none of ours."""
        if len(raw) < struct.calcsize(_LAYOUT) or raw[:16] != _MAGIC:
            return None
        values = struct.unpack_from(_LAYOUT, raw)[1:]
        rank, element, swizzle = values[16:19]
        return cls(
            values[0], values[1 : 1 + rank], values[6 : 6 + rank], values[11 : 11 + rank], element, swizzle
        )

    def fetch(self, corner: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Global addresses of the elements of a box in the order of shared memory, and which lie in the matrix."""
        address = np.full(1, self.address, np.int64)
        inside = np.ones(1, np.bool_)
        for start, size, stride, box in zip(corner, self.sizes, self.strides, self.box, strict=True):
            at = start + np.arange(box)
            address = (
                (address[None, :] + (at * stride)[:, None]).reshape(-1)
                if len(address) == 1
                else ((at * stride)[:, None] + address[None, :]).reshape(-1)
            )
            inside = ((at >= 0) & (at < size))[:, None] & inside[None, :]
            inside = inside.reshape(-1)
        return address, inside

    def places(self) -> NDArray[np.int64]:
        """Byte offset of each element of a box from the copy's shared address (which is a multiple of 128)."""
        offset = np.arange(int(np.prod(self.box)), dtype=np.int64) * self.element
        if self.swizzle:
            pieces = self.swizzle // 16 - 1
            offset ^= (offset >> 7 & pieces) << 4
        return offset


def tensor_map(
    address: int,
    shape: Sequence[int],
    box: Sequence[int],
    *,
    strides: Sequence[int] | None = None,
    element: int = 4,
    swizzle: int = 0,
) -> bytes:
    """The kernel argument for a tensor at a device address, as cuTensorMapEncodeTiled's is on hardware: 128 bytes.

    `shape` and `box` are in elements, outermost first; `strides` in bytes, of every dimension but the innermost, rows
    without gaps where None. Raises EmulationError for what the driver refuses.
    """
    rank = len(shape)
    if strides is None:
        strides = [element * int(np.prod(shape[axis + 1 :])) for axis in range(rank - 1)]
    if not 1 <= rank == len(box) <= 5 or len(strides) != rank - 1 or swizzle not in (0, 32, 64, 128):
        raise EmulationError(
            f"no tensor map has shape {tuple(shape)}, box {tuple(box)} and swizzle {swizzle}"
        )
    if address % 16 or any(stride % 16 for stride in strides) or max(box) > 256 or box[-1] * element % 16:
        raise EmulationError(
            f"a tensor map needs an address, strides and box rows of 16-byte multiples and a box of 256 at most "
            f"(found: {address:#x}, {tuple(strides)}, {tuple(box)})"
        )
    return TensorMap(
        address, tuple(reversed(shape)), (element, *reversed(strides)), tuple(reversed(box)), element, swizzle
    ).encode()
