"""Warp instructions wait until every live lane that their mask names has come."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .program import Segment

Lanes = NDArray[np.int64] | None


def gather(m: Any, segment: Segment, lanes: Lanes) -> tuple[int, Lanes] | None:
    """Run a warp instruction once every live lane of its mask has come."""
    assert segment.end is not None
    collective = segment.end.data[0]
    following = segment.number + 1
    if lanes is None and collective.whole:
        collective.apply(m, None)
        return following, None
    arrived = np.arange(m.lanes) if lanes is None else lanes
    waiting = [
        m.gatherings.pop((segment.number, warp))
        for warp in np.unique(arrived >> 5).tolist()
        if (segment.number, warp) in m.gatherings
    ]
    if waiting:
        arrived = np.sort(np.concatenate([arrived, *waiting]))
    ready_lanes = complete(m, collective, arrived)
    for warp in np.unique(arrived[~ready_lanes] >> 5).tolist():
        m.gatherings[segment.number, warp] = arrived[~ready_lanes & (arrived >> 5 == warp)]
    ready = arrived[ready_lanes]
    if len(ready) == 0:
        return None
    chosen = None if len(ready) == m.lanes else ready
    mask = np.broadcast_to(collective.mask(m, chosen), (1, len(ready)))[0]
    outside = mask >> (ready & 31).astype(np.uint32) & 1 == 0
    if outside.any():
        lane = int(ready[np.flatnonzero(outside)[0]])
        m.run.report(
            "invalid_mask",
            segment.end.instruction,
            m,
            (lane,),
            f"lane {lane & 31} executes a warp instruction whose mask leaves it out",
            None,
            None,
            int(outside.sum()),
        )
    collective.apply(m, chosen)
    if m.runnable:
        m.push(following, chosen)
        return None
    return following, chosen


def complete(m: Any, collective: Any, arrived: NDArray[np.int64]) -> NDArray[np.bool_]:
    """For each arrived lane: whether all live lanes named by its warp's masks have arrived."""
    masks = np.broadcast_to(collective.mask(m, arrived), (1, len(arrived)))[0].astype(np.uint64)
    warps, row = np.unique(arrived >> 5, return_inverse=True)
    bits = np.arange(32, dtype=np.uint64)
    live = (m.live.reshape(-1, 32)[warps].astype(np.uint64) << bits).sum(1)
    here = np.zeros(len(warps), np.uint64)
    wanted = np.zeros(len(warps), np.uint64)
    np.bitwise_or.at(here, row, np.uint64(1) << (arrived & 31).astype(np.uint64))
    np.bitwise_or.at(wanted, row, masks)
    return (wanted & live & ~here == 0)[row]
