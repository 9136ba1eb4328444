"""Values of the special registers that are constant for a thread."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def special_register(m: Any, name: str) -> Any:
    """The values of a special register, one for each lane or one for all."""
    base, _, axis = name[1:].partition(".")
    axis_number = "xyz".index(axis) if axis else 0
    grid, block = m.run.grid, m.run.block
    if base == "tid":
        return _coordinate(m.thread_of, block, axis_number)
    if base == "ctaid" or base == "clusterid":
        return _coordinate(m.blocks[m.block_of], grid, axis_number)
    lane = m.thread_of & 31
    one = np.uint64(1)
    bit = one << lane.astype(np.uint64)
    values: dict[str, Any] = {
        "ntid": block[axis_number],
        "nctaid": grid[axis_number],
        "nclusterid": grid[axis_number],
        "laneid": lane,
        "warpid": m.thread_of >> 5,
        "nwarpid": m.padded // 32,
        "smid": m.blocks[m.block_of] % m.run.multiprocessors,
        "nsmid": m.run.multiprocessors,
        "gridid": 0,
        "lanemask_eq": bit,
        "lanemask_lt": bit - one,
        "lanemask_le": (bit << one) - one,
        "lanemask_gt": ~((bit << one) - one),
        "lanemask_ge": ~(bit - one),
        "dynamic_smem_size": m.run.dynamic_shared,
        "total_smem_size": m.program.layout.shared_bytes + m.run.dynamic_shared,
        "cluster_ctaid": 0,
        "cluster_nctaid": 1,
        "cluster_ctarank": 0,
        "cluster_nctarank": 1,
        "is_explicit_cluster": 0,
    }
    value = values[base]
    return np.asarray(value).astype(np.uint64).astype(np.uint32)


def _coordinate(linear: NDArray[np.int64], extent: tuple[int, int, int], axis: int) -> NDArray[np.int64]:
    if axis == 0:
        return linear % extent[0]
    if axis == 1:
        return linear // extent[0] % extent[1]
    return linear // (extent[0] * extent[1])
