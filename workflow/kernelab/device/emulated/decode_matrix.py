"""Decoding of ldmatrix and stmatrix."""

from __future__ import annotations

from collections.abc import Callable

from . import warp
from .access import Site
from .decode_control import collective
from .decode_memory import address
from .decoded import Context, Decoded, Rows
from .errors import UnsupportedInstruction
from .matrix import Fragments
from .matrix_load import load_matrices
from .matrix_store import store_matrices
from .memory import SHARED_WINDOW
from .operands import Immediate, Source
from .parser import Instruction
from .types import FILE_32

_EVERY_LANE = Immediate(0xFFFFFFFF)
_FORM = ["sync", "aligned", "m8n8"]


def _form(instruction: Instruction, parts: list[str]) -> tuple[Fragments, int]:
    """What the lanes hold, and the window of the addresses: 0 where the opcode names shared memory."""
    matrices = {"x1": 1, "x2": 2, "x4": 4}.get(parts[4] if len(parts) > 4 else "")
    rest = parts[5:-1]
    transposed = rest[:1] == ["trans"]
    space = rest[1:] if transposed else rest
    known = parts[1:4] == _FORM and parts[-1] == "b16" and space in ([], ["shared"], ["shared::cta"])
    if matrices is None or not known:
        raise UnsupportedInstruction(
            instruction.opcode, instruction.line, "only matrices of 8 x 8 elements of 16 bits"
        )
    return Fragments(matrices, transposed), 0 if space else SHARED_WINDOW


def _registers(context: Context, instruction: Instruction, text: str, fragments: Fragments) -> list[str]:
    names = context.vector(text)
    if len(names) != fragments.matrices:
        raise UnsupportedInstruction(instruction.opcode, instruction.line, "a vector of another length")
    return names


def _site(rows: Rows, instruction: Instruction, kind: str, window: int, at: tuple[Source, int, str]) -> Site:
    """Accesses of 16 bytes by the lanes that give addresses; each matrix is served by itself."""
    base, offset, view = at
    site = Site([instruction], "shared", kind, 8, 2, window)
    site.parted = True
    site.bind([base], [offset], rows.row.__getitem__, view)
    return site


def _ldmatrix(context: Context, instruction: Instruction, parts: list[str]) -> Decoded:
    """ldmatrix of 8 x 8 elements of 16 bits, one, two or four at a time."""
    fragments, window = _form(instruction, parts)
    names = _registers(context, instruction, instruction.operands[0], fragments)
    dests = [context.register(name, instruction, FILE_32) for name in names]
    at = address(context, instruction.operands[1], instruction)

    def build(rows: Rows) -> warp.Apply:
        site = _site(rows, instruction, "load", window, at)
        return load_matrices(site, fragments, [rows.writer([d], "u4") for d in dests])

    return collective(instruction, dests, at[:1], _EVERY_LANE, build)


def _stmatrix(context: Context, instruction: Instruction, parts: list[str]) -> Decoded:
    """stmatrix of 8 x 8 elements of 16 bits, one, two or four at a time."""
    fragments, window = _form(instruction, parts)
    at = address(context, instruction.operands[0], instruction)
    names = _registers(context, instruction, instruction.operands[1], fragments)
    values = [context.source(name, instruction) for name in names]

    def build(rows: Rows) -> warp.Apply:
        site = _site(rows, instruction, "store", window, at)
        return store_matrices(site, fragments, [rows.reader([value], "u4") for value in values])

    return collective(instruction, (), (at[0], *values), _EVERY_LANE, build)


HANDLERS: dict[str, Callable[[Context, Instruction, list[str]], Decoded]] = {
    "ldmatrix": _ldmatrix,
    "stmatrix": _stmatrix,
}
