"""The step that an arithmetic group becomes: read, compute, write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .alu import VIEW_FILES, Alu
from .decoded import Context, Decoded, Rows, Step
from .errors import UnsupportedInstruction
from .operands import Source
from .parser import Instruction


def same_files(
    context: Context, instruction: Instruction, operands: Sequence[Source], views: Sequence[str]
) -> None:
    """Raises UnsupportedInstruction where a register is of another width than the instruction."""
    for operand, view in zip(operands, views, strict=False):
        if isinstance(operand, int) and context.files[operand] != VIEW_FILES[view]:
            raise UnsupportedInstruction(instruction.opcode, instruction.line, "an operand has another width")


def alu_step(batch: Sequence[Decoded], rows: Rows, alu: Alu) -> Step:
    """A step over all members of a group, which agree in the kinds of their operands."""
    readers = [rows.reader([d.sources[i] for d in batch], view) for i, view in enumerate(alu.inputs)]
    writers = [rows.writer([d.dests[i] for d in batch], alu.outputs[i]) for i in range(len(batch[0].dests))]
    function = alu.function
    if len(writers) > 1:

        def several(m: Any, lanes: Any) -> None:
            for write, value in zip(writers, function(*(r(m, lanes) for r in readers)), strict=True):
                write(m, lanes, value)

        return several
    write = writers[0]
    if len(readers) == 1:
        first = readers[0]
        return lambda m, lanes: write(m, lanes, function(first(m, lanes)))
    if len(readers) == 2:
        first, second = readers
        return lambda m, lanes: write(m, lanes, function(first(m, lanes), second(m, lanes)))
    return lambda m, lanes: write(m, lanes, function(*(r(m, lanes) for r in readers)))
