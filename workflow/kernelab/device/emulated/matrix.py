"""ldmatrix: the lanes of a warp load matrices of 8 rows of 16 bytes together; PTX ISA, "ldmatrix"."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .access import Site, Touched
from .loadstore import check_in_flight, check_written
from .operands import Writer
from .parser import Instruction
from .warp import Apply, Warps

_LANE = np.arange(32)
_NOTHING = np.array([[0xFFFFFFFF]], np.uint32)  # what a load that faults gives


def load_matrices(site: Site, matrices: int, transposed: bool, writers: list[Writer]) -> Apply:
    """Lane 8*j + r gives the address of row r of matrix j (`site`); every lane gets two elements of each matrix.

    A lane's word is number lane % 4 of row lane / 4; transposed, it is the elements in column lane / 4 of rows
    2*(lane % 4) and the next. For the race detector a lane reads what it gets, whichever lane gave the address.
    """
    element = 2 if transposed else 4
    pieces = 2 if transposed else 1  # that make up a lane's word
    instruction = site.instructions[0]
    read_by_lanes = Site([instruction] * (matrices * pieces), "shared", "load", element, 1)
    row = 2 * (_LANE % 4) + np.arange(2)[:, None] if transposed else _LANE[None] // 4
    offset = 2 * (_LANE // 4) if transposed else 4 * (_LANE % 4)

    def shares(touched: Touched) -> Touched:
        """The rows of whole warps, as the pieces that lanes get: shape (matrices * pieces, lanes)."""

        def spread(of_rows: NDArray) -> NDArray:
            by_matrix = of_rows.reshape(-1, matrices, 8)[:, :, row]
            return by_matrix.transpose(1, 2, 0, 3).reshape(matrices * pieces, -1)

        start = spread(touched.index[0] * site.element)
        index = (start + np.tile(offset, start.shape[1] // 32)) // element
        region = np.repeat(touched.pattern.region, len(index))
        valid = None if touched.valid is None else spread(touched.valid[0])
        return Touched(replace(touched.pattern, index=index, region=region), index, None, valid)

    def apply(m: Any, lanes: Any) -> None:
        warps = Warps.of(m, lanes)
        whole = np.all(warps.active, axis=1)[warps.row]
        if not whole.all():
            _report_partial(m, instruction, warps, whole)
            for write in writers:
                write(m, warps.lanes[~whole], _NOTHING)
            if not whole.any():
                return
        everyone = warps.lanes[whole]
        givers = everyone[everyone & 31 < 8 * matrices]
        touched = site.touch(m, givers)
        check_in_flight(m, site, touched, givers)
        check_written(m, site, touched, givers)
        share = shares(touched)
        m.run.races.access(m, read_by_lanes, share, everyone)
        data = m.space("shared").words[element].take(share.index, mode="clip").astype(np.uint32)
        if transposed:
            data = data[0::2] | data[1::2] << np.uint32(16)
        if share.valid is not None:
            data[~share.valid.reshape(matrices, pieces, -1).all(1)] = _NOTHING[0, 0]
        for write, words in zip(writers, data, strict=True):
            write(m, everyone, words[None])

    return apply


def _report_partial(m: Any, instruction: Instruction, warps: Warps, whole: NDArray[np.bool_]) -> None:
    here = warps.lanes[~whole]
    same = int((here >> 5 == here[0] >> 5).sum())
    m.run.report(
        "invalid_mask",
        instruction,
        m,
        (int(here[0]),),
        f"{same} lanes of a warp execute an instruction that all 32 must execute together",
        None,
        None,
        len(here),
    )
