"""Decoding of mbarrier instructions and of the bulk copies that report to them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from . import bulk, mbarriers
from .decoded import REGISTER_VIEWS, SYNC, Context, Decoded, Rows, Step
from .errors import UnsupportedInstruction
from .operands import Source
from .parser import Instruction
from .types import FILE_64, FILE_PRED


def _view(context: Context, source: Source) -> str:
    return REGISTER_VIEWS[context.files[source]] if isinstance(source, int) else "u8"


def _decoded(
    instruction: Instruction, dests: Sequence[int], sources: Sequence[Source], build: Callable[[Rows], Step]
) -> Decoded:
    return Decoded(
        (instruction.opcode, instruction.line),
        instruction,
        tuple(dests),
        tuple(sources),
        lambda batch, rows: build(rows),
        order=SYNC,
    )


def mbarrier(context: Context, instruction: Instruction, parts: list[str]) -> Decoded:
    """init, inval, arrive, expect_tx, test_wait and try_wait."""
    kind, operands = parts[1], list(instruction.operands)
    if kind == "inval":
        return _decoded(instruction, (), (), lambda rows: lambda m, lanes: None)
    if kind == "init":
        base, offset = context.address(operands[0], instruction)
        count = context.source(operands[1], instruction)
        return _decoded(
            instruction,
            (),
            (base, count),
            lambda rows: mbarriers.init_step(
                instruction, rows.reader([base], _view(context, base)), offset, rows.reader([count], "u4")
            ),
        )
    if kind in ("test_wait", "try_wait"):
        dest = context.register(operands[0], instruction, FILE_PRED)
        base, offset = context.address(operands[1], instruction)
        phase = context.source(operands[2], instruction)
        return _decoded(
            instruction,
            (dest,),
            (base, phase),
            lambda rows: mbarriers.wait_step(
                instruction,
                rows.reader([base], _view(context, base)),
                offset,
                rows.reader([phase], _view(context, phase)),
                rows.writer([dest], "?"),
            ),
        )
    if kind not in ("arrive", "expect_tx") or "noComplete" in parts:
        raise UnsupportedInstruction(instruction.opcode, instruction.line)
    dests: list[int] = []
    if not operands[0].startswith("["):
        dests = [context.register(operands.pop(0), instruction, FILE_64)]
    base, offset = context.address(operands[0], instruction)
    number = [context.source(text, instruction) for text in operands[1:2]]
    expects = "expect_tx" in parts

    def build(rows: Rows) -> Step:
        value = rows.reader(number, "u4") if number else None
        return mbarriers.arrive_step(
            instruction,
            rows.reader([base], _view(context, base)),
            offset,
            None if expects else value,
            value if expects else None,
            kind == "arrive",
            rows.writer(dests, "u8") if dests else None,
        )

    return _decoded(instruction, dests, (base, *number), build)


def bulk_copy(context: Context, instruction: Instruction, parts: list[str]) -> Decoded:
    """cp.async.bulk and cp.async.bulk.tensor, from global to shared memory."""
    if "prefetch" in parts:
        return _decoded(instruction, (), (), lambda rows: lambda m, lanes: None)
    spaces = [p.split("::")[0] for p in parts if p.split("::")[0] in ("shared", "global")]
    if spaces != ["shared", "global"] or "multicast::cluster" in parts or "im2col" in parts:
        raise UnsupportedInstruction(
            instruction.opcode, instruction.line, "only global to shared memory, one block"
        )
    operands = instruction.operands
    target, target_offset = context.address(operands[0], instruction)
    if "tensor" in parts:
        match = re.match(r"\[\s*([^,\s]+)\s*,\s*\{([^}]*)\}\s*\]$", operands[1])
        if match is None:
            raise UnsupportedInstruction(instruction.opcode, instruction.line, f"cannot read '{operands[1]}'")
        origin, origin_offset = context.address(f"[{match.group(1)}]", instruction)
        corner = [context.source(text.strip(), instruction) for text in match.group(2).split(",")]
        barrier, barrier_offset = context.address(operands[2], instruction)
        return _decoded(
            instruction,
            (),
            (target, origin, *corner, barrier),
            lambda rows: bulk.tensor_step(
                instruction,
                rows.reader([target], _view(context, target)),
                target_offset,
                rows.reader([origin], _view(context, origin)),
                origin_offset,
                [rows.reader([c], "u4") for c in corner],
                rows.reader([barrier], _view(context, barrier)),
                barrier_offset,
            ),
        )
    source, source_offset = context.address(operands[1], instruction)
    size = context.source(operands[2], instruction)
    barrier, barrier_offset = context.address(operands[3], instruction)
    return _decoded(
        instruction,
        (),
        (target, source, size, barrier),
        lambda rows: bulk.bulk_step(
            instruction,
            rows.reader([target], _view(context, target)),
            target_offset,
            rows.reader([source], _view(context, source)),
            source_offset,
            rows.reader([size], "u4"),
            rows.reader([barrier], _view(context, barrier)),
            barrier_offset,
        ),
    )
