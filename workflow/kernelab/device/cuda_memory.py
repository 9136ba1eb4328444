"""Device arrays between guard bands, with outputs that start as NaN.

Every byte of a guard band, of an output that is not read and of a fresh workspace is 0xFF: as float32 a NaN that no arithmetic
makes. So a kernel that reads past an array drags NaN into its result, one that writes past it is seen in the band,
and an element that was never written still holds exactly these bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelab.operation.compare import POISON, POISON_BYTE, differing_bits
from kernelab.operation.launches import Buffer

# A multiple of every alignment that CUDA knows; a tile of 128 rows of 2,048 floats past the end still lands in it.
GUARD_BYTES = 1 << 20


def fill(cupy: Any, stream: Any, pointer: int, byte: int, nbytes: int) -> None:
    """Set bytes on the card, on the stream."""
    if nbytes:
        cupy.cuda.runtime.memsetAsync(pointer, byte, nbytes, stream.ptr)


def to_host(cupy: Any, stream: Any, pointer: int, host: NDArray[Any]) -> None:
    """Copy from the card into a host array, after everything on the stream; waits."""
    if host.nbytes:
        runtime = cupy.cuda.runtime
        runtime.memcpyAsync(host.ctypes.data, pointer, host.nbytes, runtime.memcpyDeviceToHost, stream.ptr)
        stream.synchronize()


def to_device(cupy: Any, stream: Any, pointer: int, host: NDArray[Any]) -> None:
    """Copy a C-ordered host array to the card, after everything on the stream; waits."""
    if host.nbytes:
        runtime = cupy.cuda.runtime
        runtime.memcpyAsync(pointer, host.ctypes.data, host.nbytes, runtime.memcpyHostToDevice, stream.ptr)
        stream.synchronize()


class GuardedArray:
    """One device array between two guard bands.

    Attributes:
        array: the cupy.ndarray between the bands, C order, aligned to 256 bytes.

    The right band begins at the byte after the array's last.
    """

    def __init__(self, cupy: Any, stream: Any, buffer: Buffer) -> None:
        self._cupy, self._stream = cupy, stream
        dtype = np.dtype(buffer.dtype)
        self.nbytes = buffer.count * dtype.itemsize
        # Memory, not the pool: the pool would put arrays side by side in one chunk.
        memory = cupy.cuda.memory.Memory(2 * GUARD_BYTES + self.nbytes)
        pointer = cupy.cuda.MemoryPointer(memory, GUARD_BYTES)
        self.array = cupy.ndarray(buffer.shape, dtype, memptr=pointer)
        self._pointer = int(pointer.ptr)
        fill(cupy, stream, self._pointer - GUARD_BYTES, POISON_BYTE, 2 * GUARD_BYTES + self.nbytes)
        if buffer.zero:
            fill(cupy, stream, self._pointer, 0, self.nbytes)

    @property
    def bands(self) -> tuple[int, int]:
        """The addresses of the two guard bands, of GUARD_BYTES each; the second is aligned as the array's end is."""
        return self._pointer - GUARD_BYTES, self._pointer + self.nbytes

    def poison(self) -> None:
        """Make every byte of the array 0xFF, on the stream."""
        fill(self._cupy, self._stream, self._pointer, POISON_BYTE, self.nbytes)

    def set(self, host: NDArray[Any]) -> None:
        """Copy a host array of the same shape and dtype in."""
        assert (host.shape, host.dtype) == (self.array.shape, self.array.dtype)
        assert host.flags.c_contiguous
        to_device(self._cupy, self._stream, self._pointer, host)

    def copy_from(self, other: GuardedArray) -> None:
        """Copy another array of the same shape and dtype in, on the stream."""
        runtime = self._cupy.cuda.runtime
        runtime.memcpyAsync(
            self._pointer, other._pointer, self.nbytes, runtime.memcpyDeviceToDevice, self._stream.ptr
        )

    def get(self) -> NDArray[Any]:
        """A host copy."""
        host = np.empty(self.array.shape, self.array.dtype)
        to_host(self._cupy, self._stream, self._pointer, host)
        return host

    def damage(self) -> str:
        """Which bytes outside the array were written, in words; empty when none was."""
        # In words: of a stored NaN, three bytes in four may look untouched.
        before, after = np.empty(GUARD_BYTES // 4, np.uint32), np.empty(GUARD_BYTES // 4, np.uint32)
        to_host(self._cupy, self._stream, self._pointer - GUARD_BYTES, before)
        to_host(self._cupy, self._stream, self._pointer + self.nbytes, after)
        places = []
        if (low := np.flatnonzero(before != POISON)).size:
            places.append(
                f"{low.size} of the 4-byte words before its start, the first at byte {4 * int(low[0]) - GUARD_BYTES}"
            )
        if (high := np.flatnonzero(after != POISON)).size:
            places.append(
                f"{high.size} of the 4-byte words past its end, the first at byte {4 * int(high[0])} from there"
            )
        return " and ".join(places)


class DeviceArrays(Mapping[str, Any]):
    """The operation's arrays on the card, as cupy.ndarray by name, for all arms that run one problem on one data.

    Attributes:
        guarded: the arrays with their guard bands.
        initial: of the outputs that the operation reads, what they held before the first launch.
        given: the host arrays that were uploaded last.
    """

    def __init__(
        self,
        cupy: Any,
        stream: Any,
        buffers: Mapping[str, Buffer],
        outputs: tuple[str, ...],
        inputs: Mapping[str, NDArray[Any]],
    ) -> None:
        self._outputs = outputs
        self.guarded = {name: GuardedArray(cupy, stream, buffer) for name, buffer in buffers.items()}
        self.given: dict[str, NDArray[Any]] = {}
        # Outputs that the operation reads are restored from the card itself, so that a restore can be queued.
        self.initial = {name: GuardedArray(cupy, stream, buffers[name]) for name in outputs if name in inputs}
        self.upload(inputs)

    def __getitem__(self, name: str) -> Any:
        return self.guarded[name].array

    def __iter__(self) -> Iterator[str]:
        return iter(self.guarded)

    def __len__(self) -> int:
        return len(self.guarded)

    def upload(self, inputs: Mapping[str, NDArray[Any]]) -> None:
        """Other inputs of the same shapes, and outputs as at the start."""
        self.given = dict(inputs)
        for name, guarded in self.guarded.items():
            if name not in self._outputs:
                guarded.set(self.given[name])
        for name, guarded in self.initial.items():
            guarded.set(self.given[name])
        self.reset_outputs()

    def reset_outputs(self) -> None:
        """Outputs as before the first launch: poison, or their initial values. Queued, not waited for."""
        for name in self._outputs:
            if name in self.initial:
                self.guarded[name].copy_from(self.initial[name])
            else:
                self.guarded[name].poison()

    def outputs(self) -> dict[str, NDArray[Any]]:
        """Host copies of the outputs, after everything on the stream."""
        return {name: self.guarded[name].get() for name in self._outputs}

    def damaged_guards(self) -> list[str]:
        """One line for each array with writes outside it."""
        return [f"{name}: {damage}" for name, guarded in self.guarded.items() if (damage := guarded.damage())]

    def changed_inputs(self) -> list[str]:
        """One line for each input that no longer holds what was uploaded."""
        changed = []
        for name, guarded in self.guarded.items():
            if name not in self._outputs and (count := differing_bits(guarded.get(), self.given[name])):
                changed.append(f"{name}: {count} elements")
        return changed
