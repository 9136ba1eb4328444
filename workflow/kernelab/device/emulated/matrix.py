"""Matrices of 8 rows of 16 bytes, spread over the lanes of a warp: what ldmatrix and stmatrix have in common."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .access import Site, Touched
from .parser import Instruction
from .warp import Warps

_LANE = np.arange(32)


class Fragments:
    """What the lanes hold of one, two or four matrices; PTX ISA, "ldmatrix" and "stmatrix".

    Lane 8*j + r gives the address of row r of matrix j; every lane holds two elements of 16 bits of each matrix, in a
    register. They are word lane % 4 of row lane / 4; `transposed`, those in column lane / 4 of rows 2*(lane % 4) and
    the next. `pieces` of `element` bytes make up a register.
    """

    def __init__(self, matrices: int, transposed: bool) -> None:
        self.matrices = matrices
        self.transposed = transposed
        self.element = 2 if transposed else 4
        self.pieces = 2 if transposed else 1
        self._row = 2 * (_LANE % 4) + np.arange(2)[:, None] if transposed else _LANE[None] // 4
        self._offset = 2 * (_LANE // 4) if transposed else 4 * (_LANE % 4)

    def givers(self, lanes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of the lanes whose addresses are used."""
        return lanes[lanes & 31 < 8 * self.matrices]

    def site(self, instruction: Instruction, kind: str) -> Site:
        """What lanes access, for the race detector: their own pieces, whichever lane gave the address of the row."""
        return Site([instruction] * (self.matrices * self.pieces), "shared", kind, self.element, 1)

    def shares(self, site: Site, touched: Touched) -> Touched:
        """The rows of whole warps (`touched` by the givers) as the pieces of all lanes: shape (matrices * pieces, lanes)."""

        def spread(of_rows: NDArray) -> NDArray:
            by_matrix = of_rows.reshape(-1, self.matrices, 8)[:, :, self._row]
            return by_matrix.transpose(1, 2, 0, 3).reshape(self.matrices * self.pieces, -1)

        start = spread(touched.index[0] * site.element)
        index = (start + np.tile(self._offset, start.shape[1] // 32)) // self.element
        region = np.repeat(touched.pattern.region, len(index))
        valid = None if touched.valid is None else spread(touched.valid[0])
        return Touched(replace(touched.pattern, index=index, region=region), index, None, valid)


def part_warps(
    m: Any, instruction: Instruction, lanes: NDArray[np.int64] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The lanes of whole warps, and those of warps that come without some of theirs, which are reported."""
    warps = Warps.of(m, lanes)
    whole = np.all(warps.active, axis=1)[warps.row]
    alone = warps.lanes[~whole]
    if len(alone):
        same = int((alone >> 5 == alone[0] >> 5).sum())
        m.run.report(
            "invalid_mask",
            instruction,
            m,
            (int(alone[0]),),
            f"{same} lanes of a warp execute an instruction that all 32 must execute together",
            None,
            None,
            len(alone),
        )
    return warps.lanes[whole], alone
