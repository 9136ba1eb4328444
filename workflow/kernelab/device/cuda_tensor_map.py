"""TMA descriptors: cuTensorMapEncodeTiled (CUDA Driver API, tensor map object management), which CuPy does not wrap."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence

from kernelab.device.cuda_faults import KernelFault

BYTES = 128
ALIGNMENT = 64
_FLOAT32 = 7
_SWIZZLE = {0: 0, 32: 1, 64: 2, 128: 3}
_L2_PROMOTION = {0: 0, 64: 1, 128: 2, 256: 3}
_ITEM = 4


def encode_tensor_map(
    pointer: int,
    shape: Sequence[int],
    box: Sequence[int],
    *,
    strides: Sequence[int] | None = None,
    swizzle: int = 0,
    l2_promotion: int = 256,
) -> bytes:
    """The descriptor of a tiled float32 tensor, out-of-bounds elements read as zero.

    Args:
        pointer: device address, a multiple of 16.
        shape: elements, outermost dimension first (the driver wants the reverse).
        box: elements of one tile, in the same order.
        strides: bytes of every dimension but the innermost, multiples of 16; C order where None.
        swizzle: 0, 32, 64 or 128 bytes.
        l2_promotion: 0, 64, 128 or 256 bytes.

    Raises:
        KernelFault: launch_error: the driver refuses the descriptor, or is too old to make one.
        ValueError: shape and box differ in rank, or an option is none of the listed.
    """
    rank = len(shape)
    if rank != len(box) or not 1 <= rank <= 5:
        raise ValueError(
            f"a tensor map needs a shape and a box of the same rank, 1 to 5 (found: {rank} and {len(box)})"
        )
    if swizzle not in _SWIZZLE or l2_promotion not in _L2_PROMOTION:
        raise ValueError(f"swizzle is one of {list(_SWIZZLE)} and l2_promotion one of {list(_L2_PROMOTION)}")
    if strides is None:
        strides = [_ITEM * math.prod(shape[axis + 1 :]) for axis in range(rank - 1)]
    if len(strides) != rank - 1:
        raise ValueError(f"a tensor map of rank {rank} needs {rank - 1} strides (found: {len(strides)})")
    try:
        encode = ctypes.CDLL("libcuda.so.1").cuTensorMapEncodeTiled
    except (OSError, AttributeError):
        raise KernelFault("launch_error", "this driver makes no TMA descriptors; it needs CUDA 12") from None
    room = ctypes.create_string_buffer(BYTES + ALIGNMENT)
    address = -(-ctypes.addressof(room) // ALIGNMENT) * ALIGNMENT
    status = encode(
        ctypes.c_void_p(address),
        _FLOAT32,
        ctypes.c_uint32(rank),
        ctypes.c_void_p(pointer),
        (ctypes.c_uint64 * rank)(*reversed(shape)),
        (ctypes.c_uint64 * max(1, rank - 1))(*reversed(strides)),
        (ctypes.c_uint32 * rank)(*reversed(box)),
        (ctypes.c_uint32 * rank)(*([1] * rank)),
        0,  # no interleave
        _SWIZZLE[swizzle],
        _L2_PROMOTION[l2_promotion],
        0,  # out of bounds reads zero
    )
    if status != 0:
        raise KernelFault(
            "launch_error",
            f"the driver refuses a TMA descriptor of shape {tuple(shape)}, box {tuple(box)}, strides {tuple(strides)}, "
            f"swizzle {swizzle} at address {pointer:#x} (CUDA error {status})",
        )
    return ctypes.string_at(address, BYTES)
