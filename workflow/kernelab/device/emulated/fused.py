"""The step that GEMM kernels spend their time in: a group of independent fma.rn.f32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .decoded import Decoded, Rows, Step
from .operands import Source
from .rounding import _HALFWAY, _HALFWAY_MASK, CANONICAL_NAN, canonical, fused_multiply_add, repair_halfway

_CHUNK = 1 << 16  # elements worked on at a time: float64 scratch that stays in the second-level cache


class _Operand:
    """One operand position of the group: consecutive rows, scattered rows, or constants."""

    def __init__(self, sources: Sequence[Source], rows: Rows) -> None:
        self.read = rows.reader(sources, "f4")
        self.rows = np.array([rows.row[s] for s in sources if isinstance(s, int)], np.intp)
        self.registers = len(self.rows) == len(sources)
        self.consecutive = self.registers and bool((np.diff(self.rows) == 1).all())

    def chunk(self, m: Any, start: int, stop: int, scratch: NDArray) -> NDArray:
        """Rows start to stop for all lanes, gathered into scratch when they are scattered."""
        if self.consecutive:
            first = self.rows[0]
            return m.views["f4"][first + start : first + stop]
        if self.registers:
            return np.take(m.views["f4"], self.rows[start:stop], axis=0, out=scratch, mode="clip")
        column = self.read(m, None)
        return column if len(column) == 1 else column[start:stop]


def make_fma(batch: Sequence[Decoded], rows: Rows) -> Step:
    """Exactly rounded x * y + z over all rows of the group."""
    operands = [_Operand([d.sources[i] for d in batch], rows) for i in range(3)]
    write = rows.writer([d.dests[0] for d in batch], "f4")
    target = np.array([rows.row[d.dests[0]] for d in batch], np.intp)
    consecutive = bool((np.diff(target) == 1).all())
    count = len(batch)

    def step(m: Any, lanes: Any) -> None:
        if lanes is not None:
            write(m, lanes, fused_multiply_add(*(o.read(m, lanes) for o in operands)))
            return
        width = m.lanes
        height = max(1, min(count, _CHUNK // width))
        wide, whole, narrow, signs = m.scratch(height)
        registers = m.views["f4"]
        for start in range(0, count, height):
            stop = min(count, start + height)
            size = stop - start
            total, bits, flags = wide[:size], whole[:size], signs[:size]
            x, y, z = (o.chunk(m, start, stop, narrow[i, :size]) for i, o in enumerate(operands))
            np.multiply(x, y, out=total, dtype=np.float64)
            np.add(total, z, out=total)
            np.bitwise_and(total.view(np.int64), _HALFWAY_MASK, out=bits)
            if (bits == _HALFWAY).any():
                repair_halfway(total, x, y, z)
            if consecutive:
                result = registers[target[0] + start : target[0] + stop]
                result[...] = total
                np.isnan(result, out=flags)
                if flags.any():
                    result[flags] = CANONICAL_NAN
            else:
                registers[target[start:stop]] = canonical(total.astype(np.float32))

    return step
