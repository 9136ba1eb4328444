"""ldmatrix: the lanes of a warp load matrices together."""

from __future__ import annotations

from typing import Any

import numpy as np

from .access import Site
from .loadstore import check_in_flight, check_written
from .matrix import Fragments, part_warps
from .operands import Writer
from .warp import Apply

_NOTHING = np.array([[0xFFFFFFFF]], np.uint32)  # what a load that faults gives


def load_matrices(site: Site, fragments: Fragments, writers: list[Writer]) -> Apply:
    """Rows at the givers' addresses (`site`) to one register of each matrix (`writers`)."""
    instruction = site.instructions[0]
    read_by_lanes = fragments.site(instruction, "load")

    def apply(m: Any, lanes: Any) -> None:
        everyone, alone = part_warps(m, instruction, lanes)
        if len(alone):
            for write in writers:
                write(m, alone, _NOTHING)
        if not len(everyone):
            return
        givers = fragments.givers(everyone)
        touched = site.touch(m, givers)
        check_in_flight(m, site, touched, givers)
        check_written(m, site, touched, givers)
        share = fragments.shares(site, touched)
        m.run.races.access(m, read_by_lanes, share, everyone)
        words = m.space("shared").words[fragments.element]
        data = words.take(share.index, mode="clip").astype(np.uint32)
        if fragments.transposed:
            data = data[0::2] | data[1::2] << np.uint32(16)
        if share.valid is not None:
            pieces = share.valid.reshape(fragments.matrices, fragments.pieces, -1)
            data[~pieces.all(1)] = _NOTHING[0, 0]
        for write, registers in zip(writers, data, strict=True):
            write(m, everyone, registers[None])

    return apply
