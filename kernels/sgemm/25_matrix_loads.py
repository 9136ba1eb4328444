"""Tensor maps of the kernel beside this file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def prepare_descriptors(
    problem: Mapping[str, Any], arrays: Mapping[str, Any], workspaces: Mapping[str, Any], device: Any
) -> dict[str, bytes]:
    """Maps of B with the half tiles of a stage of the ring, and of A: itself, or AT where rows of A cannot be copied."""
    m, n, k = problem["m"], problem["n"], problem["k"]
    if n % 4:
        return {}  # rows of B are not multiples of 16 bytes: the guarded kernel runs, without maps
    bm, bk = problem["BM"], problem["BK"]
    if k % 4 == 0:
        a = device.tensor_map(arrays["A"], (bm, bk))
    else:
        a = device.tensor_map(workspaces["AT"], (bk, bm), shape=(k, m), strides=(16 * ((m + 3) // 4),))
    return {"map_a": a, "map_b": device.tensor_map(arrays["B"], (bk, problem["BN"] // 2))}
