"""stmatrix: the lanes of a warp store matrices together."""

from __future__ import annotations

from typing import Any

import numpy as np

from .access import Site
from .loadstore import check_in_flight, mark_written
from .matrix import Fragments, part_warps
from .operands import Reader
from .warp import Apply


def store_matrices(site: Site, fragments: Fragments, readers: list[Reader]) -> Apply:
    """One register of each matrix (`readers`) to rows at the givers' addresses (`site`).

    A warp that comes without all of its lanes stores nothing.
    """
    instruction = site.instructions[0]
    written_by_lanes = fragments.site(instruction, "store")

    def apply(m: Any, lanes: Any) -> None:
        everyone, _ = part_warps(m, instruction, lanes)
        if not len(everyone):
            return
        givers = fragments.givers(everyone)
        touched = site.touch(m, givers)
        check_in_flight(m, site, touched, givers)
        share = fragments.shares(site, touched)
        m.run.races.access(m, written_by_lanes, share, everyone)
        mark_written(m, site, touched)
        shape = (1, len(everyone))
        data = np.concatenate([np.broadcast_to(read(m, everyone), shape) for read in readers])
        if fragments.transposed:
            data = np.stack([data & 0xFFFF, data >> 16], axis=1).reshape(share.index.shape)
        target, keep = share.index, share.valid
        if m.run.reverse:
            target, data = target[::-1, ::-1], data[::-1, ::-1]
            keep = None if keep is None else keep[::-1, ::-1]
        if keep is not None:
            target, data = target[keep], data[keep]
        words = m.space("shared").words[fragments.element]
        words[target] = data.astype(words.dtype)
        m.run.progress += 1

    return apply
