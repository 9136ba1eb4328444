"""Decoding of ldmatrix."""

from __future__ import annotations

from collections.abc import Callable

from . import matrix, warp
from .access import Site
from .decode_control import collective
from .decode_memory import address
from .decoded import Context, Decoded, Rows
from .errors import UnsupportedInstruction
from .memory import SHARED_WINDOW
from .operands import Immediate
from .parser import Instruction
from .types import FILE_32

_EVERY_LANE = Immediate(0xFFFFFFFF)
_FORM = ["sync", "aligned", "m8n8"]


def _ldmatrix(context: Context, instruction: Instruction, parts: list[str]) -> Decoded:
    """ldmatrix of 8 x 8 elements of 16 bits, one, two or four at a time."""
    matrices = {"x1": 1, "x2": 2, "x4": 4}.get(parts[4] if len(parts) > 4 else "")
    rest = parts[5:-1]
    transposed = rest[:1] == ["trans"]
    space = rest[1:] if transposed else rest
    known = parts[1:4] == _FORM and parts[-1] == "b16" and space in ([], ["shared"], ["shared::cta"])
    if matrices is None or not known:
        raise UnsupportedInstruction(
            instruction.opcode, instruction.line, "only matrices of 8 x 8 elements of 16 bits"
        )
    names = context.vector(instruction.operands[0])
    if len(names) != matrices:
        raise UnsupportedInstruction(instruction.opcode, instruction.line, "a vector of another length")
    dests = [context.register(name, instruction, FILE_32) for name in names]
    base, offset, view = address(context, instruction.operands[1], instruction)

    def build(rows: Rows) -> warp.Apply:
        window = 0 if space else SHARED_WINDOW
        site = Site([instruction], "shared", "load", 8, 2, window)
        site.parted = True
        site.bind([base], [offset], rows.row.__getitem__, view)
        return matrix.load_matrices(site, matrices, transposed, [rows.writer([d], "u4") for d in dests])

    return collective(instruction, dests, (base,), _EVERY_LANE, build)


HANDLERS: dict[str, Callable[[Context, Instruction, list[str]], Decoded]] = {"ldmatrix": _ldmatrix}
