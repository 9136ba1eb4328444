"""Tensor maps of the kernel beside this file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def prepare_descriptors(
    problem: Mapping[str, Any], arrays: Mapping[str, Any], workspaces: Mapping[str, Any], device: Any
) -> dict[str, bytes]:
    """Maps of AT (K x M, rows padded to 16 bytes) and of B, with the tiles that a stage of the ring holds."""
    m, n, k = problem["m"], problem["n"], problem["k"]
    if n % 4:
        return {}  # rows of B are not multiples of 16 bytes: the guarded kernel runs, without maps
    pitch = 16 * ((m + 3) // 4)
    at = device.tensor_map(workspaces["AT"], (problem["BK"], problem["BM"]), shape=(k, m), strides=(pitch,))
    return {"map_a": at, "map_b": device.tensor_map(arrays["B"], (problem["BK"], problem["BN"]))}
