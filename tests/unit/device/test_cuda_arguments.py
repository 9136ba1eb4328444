"""Packing arguments and encoding descriptors: what can be known of them without a card."""

from __future__ import annotations

import ctypes
import re
import struct
import weakref

import numpy as np
import pytest

from kernelab.device.cuda_faults import KernelFault
from kernelab.device.cuda_launch import LibraryArm, _stored
from kernelab.device.cuda_tensor_map import encode_tensor_map
from kernelab.device.identify import list_gpus

cupy = pytest.importorskip("cupy")


def raw(argument: object) -> bytes:
    stored = _stored(argument)
    return ctypes.string_at(ctypes.addressof(stored), ctypes.sizeof(stored))


def test_scalars_are_their_own_bytes() -> None:
    assert raw(np.int32(-2)) == struct.pack("<i", -2)
    assert raw(np.float32(1.5)) == struct.pack("<f", 1.5)
    assert raw(np.uint64(1 << 40)) == struct.pack("<Q", 1 << 40)


def test_arrays_are_their_pointers() -> None:
    memory = cupy.cuda.memory.UnownedMemory(0x7F00_0000_0000, 4096, None, 0)
    array = cupy.ndarray((3, 4), np.float32, memptr=cupy.cuda.MemoryPointer(memory, 256))
    assert raw(array) == struct.pack("<Q", 0x7F00_0000_0100)


def test_bytes_go_by_value_even_with_zeros_inside() -> None:
    assert raw(b"a\0b" * 40) == b"a\0b" * 40


def test_a_library_keeps_the_arrays_that_its_launch_points_to() -> None:
    class Arrays(dict):  # type: ignore[type-arg]
        pass

    arrays = Arrays(A=1)
    alive = weakref.ref(arrays)
    arm = LibraryArm(None, lambda problem, given: lambda: None, {}, arrays)  # type: ignore[arg-type]
    del arrays
    assert alive() is not None
    del arm


def test_a_ctypes_object_is_read_anew() -> None:
    epoch = ctypes.c_uint32(0xFFFFFFFF)
    stored = _stored(epoch)
    epoch.value += 1
    assert ctypes.string_at(ctypes.addressof(stored), 4) == b"\0\0\0\0"


@pytest.mark.parametrize(
    ("shape", "box", "options", "reason"),
    [
        ((4, 4), (4,), {}, "of the same rank, 1 to 5 (found: 2 and 1)"),
        ((), (), {}, "of the same rank, 1 to 5"),
        ((4, 4), (4, 4), {"swizzle": 16}, "swizzle is one of [0, 32, 64, 128]"),
        ((4, 4), (4, 4), {"strides": (16, 4)}, "needs 1 strides (found: 2)"),
    ],
)
def test_descriptors_that_cannot_be(
    shape: tuple[int, ...], box: tuple[int, ...], options: dict[str, int], reason: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        encode_tensor_map(0x1000, shape, box, **options)  # type: ignore[arg-type]


@pytest.mark.skipif(bool(list_gpus()), reason="a driver is here; tests/gpu makes descriptors")
def test_without_a_driver_a_descriptor_is_a_launch_error() -> None:
    with pytest.raises(KernelFault, match="needs CUDA 12") as fault:
        encode_tensor_map(0x1000, (64, 64), (8, 8))
    assert fault.value.status == "launch_error"
