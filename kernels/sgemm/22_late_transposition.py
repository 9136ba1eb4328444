"""Tensor maps of the kernel beside this file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def prepare_descriptors(
    problem: Mapping[str, Any], arrays: Mapping[str, Any], workspaces: Mapping[str, Any], device: Any
) -> dict[str, bytes]:
    """Maps of AT (K x M, rows padded to 16 bytes) and of B, with the tile and the half tiles of a stage of the ring, and of A."""
    m, n, k = problem["m"], problem["n"], problem["k"]
    if n % 4:
        return {}  # rows of B are not multiples of 16 bytes: the guarded kernel runs, without maps
    pitch = 16 * ((m + 3) // 4)
    at = device.tensor_map(workspaces["AT"], (problem["BK"], problem["BM"]), shape=(k, m), strides=(pitch,))
    b = device.tensor_map(arrays["B"], (problem["BK"], problem["BN"] // 2))
    # A's own rows must be multiples of 16 bytes; where they are not, no row is late and the map is never read.
    rows = device.tensor_map(arrays["A"], (32, 32), swizzle=128) if k % 4 == 0 else b
    return {"map_a": at, "map_b": b, "map_rows": rows}
