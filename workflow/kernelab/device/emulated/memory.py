"""Address spaces: allocations with guard gaps, bounds, and a written bit for every byte.

Device addresses are sparse: every allocation (global memory) and every array (shared memory) has a region of
addresses of its own, far larger than itself. An index that runs off one array therefore never lands in
another, and bounds are judged for each array.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .errors import EmulationError

GLOBAL_SHIFT = 34  # 16 GiB of addresses for each allocation
SHARED_SHIFT = 20  # 1 MiB for each shared array, more than any GPU has
GLOBAL_BASE = 1 << 44
SHARED_WINDOW = 1 << 60  # generic addresses of shared memory
LOCAL_WINDOW = 1 << 61  # and of local memory
PARAMETER_WINDOW = 3 << 60  # addresses of kernel parameters, for tensor maps
POISON = 0xFF  # never-written bytes: NaN in every float format

_WORD = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16), 4: np.dtype(np.uint32), 8: np.dtype(np.uint64)}
WRITTEN = {size: int.from_bytes(b"\1" * size, "little") for size in _WORD}


@dataclass(slots=True)
class Region:
    """One array: its name, its first byte inside the region's addresses, size, and place in storage."""

    name: str
    start: int
    size: int
    storage: int
    writable: bool = True
    full: bool = False  # every byte has been written
    reads_checked: bool = True  # reading a never-written byte is a hazard


class Space:
    """Bytes of one address space, with a flag per byte that says whether it was ever written.

    `stride` is the number of storage bytes for each block (shared) or thread (local); 0 for global memory.
    """

    def __init__(self, name: str, shift: int, base: int = 0, stride: int = 0) -> None:
        self.name = name
        self.shift = shift
        self.base = base
        self.stride = stride
        self.regions: list[Region] = []
        self._tables: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]] | None = None
        self.resize(0)

    def resize(self, size: int) -> None:
        """Make room for `size` bytes, keeping what is there."""
        size = -(-size // 16) * 16
        old_data, old_flags = getattr(self, "data", None), getattr(self, "flags", None)
        self.data: NDArray[np.uint8] = np.empty(size, np.uint8)
        self.flags: NDArray[np.uint8] = np.zeros(size, np.uint8)
        if old_data is not None and old_flags is not None:
            keep = min(size, old_data.size)
            self.data[:keep] = old_data[:keep]
            self.flags[:keep] = old_flags[:keep]
            self.data[keep:] = POISON
        else:
            self.data[:] = POISON
        self.words = {n: self.data.view(dtype) for n, dtype in _WORD.items()}
        self.written = {n: self.flags.view(dtype) for n, dtype in _WORD.items()}

    def add_region(self, region: Region) -> int:
        """Register a region; returns its first address."""
        self.regions.append(region)
        self._tables = None
        return self.base + ((len(self.regions) - 1) << self.shift) + region.start

    @property
    def tables(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Start, end and storage offset of every region, with an empty one last for bad addresses."""
        if self._tables is None:
            rows = [(r.start, r.start + r.size, r.storage) for r in self.regions] + [(0, 0, 0)]
            start, end, storage = (np.array(column, np.int64) for column in zip(*rows, strict=True))
            self._tables = (start, end, storage - start)
        return self._tables

    @property
    def all_writable(self) -> bool:
        return all(region.writable for region in self.regions)

    def locate(
        self, addresses: NDArray[np.int64], size: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """Storage byte offset, region number and whether in bounds, for accesses of `size` bytes."""
        start, end, offset = self.tables
        relative = addresses - self.base
        region = relative >> self.shift
        bad = (region < 0) | (region >= len(self.regions))
        if bad.any():
            region = np.where(bad, len(self.regions), region)
        within = relative - (region << self.shift)
        valid = (within >= start[region]) & (within + size <= end[region])
        return within + offset[region], region, valid

    def describe(self, address: int) -> tuple[str, int]:
        """The array nearest to an address, and the byte offset from its start (negative or past its end)."""
        relative = address - self.base
        number = relative >> self.shift
        if 0 <= number < len(self.regions):
            region = self.regions[number]
            offset = relative - (number << self.shift) - region.start
            following = number + 1
            if offset > (1 << self.shift) // 2 and following < len(self.regions):
                after = self.regions[following]
                return after.name, relative - (following << self.shift) - after.start
            return region.name, offset
        if number == -1 and self.regions:
            return self.regions[0].name, relative - self.regions[0].start
        return "", address


class GlobalMemory(Space):
    """Device memory shared by the launches of one kernel: named arrays in, named arrays out."""

    def __init__(self) -> None:
        super().__init__("global", GLOBAL_SHIFT, GLOBAL_BASE)
        self._used = 0
        self._arrays: dict[str, tuple[int, np.dtype, tuple[int, ...]]] = {}

    def allocate(
        self,
        name: str,
        array: NDArray,
        *,
        initialised: bool = True,
        writable: bool = True,
        reads_checked: bool = True,
    ) -> int:
        """Copy `array` into device memory and return its device address.

        With `initialised=False` the bytes are poisoned (NaN) and count as never written; reading them is a hazard
        unless `reads_checked` is False, for a kernel that is known to read and discard them.
        """
        if name in self._arrays:
            raise EmulationError(f"device array '{name}' is allocated twice")
        array = np.ascontiguousarray(array)
        storage = self._used
        self._used += -(-array.nbytes // 256) * 256
        if self._used > self.data.size:
            self.resize(max(self._used, 2 * self.data.size))
        number = len(self.regions)
        address = self.add_region(
            Region(name, 0, array.nbytes, storage, writable, initialised, reads_checked)
        )
        self._arrays[name] = (number, array.dtype, array.shape)
        if initialised:
            self.write(name, array)
        return address

    @property
    def names(self) -> list[str]:
        return list(self._arrays)

    def patch(self, name: str, offset: int, data: bytes) -> None:
        """Overwrite some bytes of an array."""
        start = self.regions[self._arrays[name][0]].storage + offset
        self.data[start : start + len(data)] = np.frombuffer(data, np.uint8)

    def address(self, name: str) -> int:
        return self.base + (self._arrays[name][0] << self.shift)

    def read(self, name: str) -> NDArray:
        """A copy of a device array, with the dtype and shape that it was allocated with."""
        number, dtype, shape = self._arrays[name]
        region = self.regions[number]
        return self.data[region.storage : region.storage + region.size].view(dtype).reshape(shape).copy()

    def never_written(self, name: str) -> NDArray[np.bool_]:
        """For each element of an array: whether any of its bytes was never written."""
        number, dtype, shape = self._arrays[name]
        region = self.regions[number]
        flags = self.flags[region.storage : region.storage + region.size]
        return (flags.reshape(-1, dtype.itemsize) == 0).any(axis=1).reshape(shape)

    def write(self, name: str, array: NDArray) -> None:
        """Overwrite a device array from the host; all of it counts as written."""
        number, dtype, shape = self._arrays[name]
        region = self.regions[number]
        values = np.ascontiguousarray(np.broadcast_to(array, shape), dtype)
        self.data[region.storage : region.storage + region.size] = values.reshape(-1).view(np.uint8)
        self.flags[region.storage : region.storage + region.size] = 1
        region.full = True
