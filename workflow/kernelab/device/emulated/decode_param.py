"""Decoding of ld and st: parameters here, other spaces in decode_memory."""

from __future__ import annotations

from . import decode_memory
from .alu import Alu
from .alu_step import alu_step, same_files
from .decoded import REGISTER_VIEWS, Context, Decoded, kinds
from .errors import UnsupportedInstruction
from .operands import LaunchValue, Source
from .parser import Instruction
from .types import TYPES


def load(context: Context, instruction: Instruction, parts: list[str]) -> Decoded:
    if "param" in parts or "param::entry" in parts:
        return _ld_param(context, instruction, parts)
    return decode_memory.load(context, instruction, parts)


def _ld_param(context: Context, instruction: Instruction, parts: list[str]) -> Decoded:
    names = context.vector(instruction.operands[0])
    type_ = TYPES[parts[-1]]
    dests = tuple(context.register(name, instruction, type_.file) for name in names)
    sources: list[Source] = []
    base = (
        context.address(instruction.operands[1], instruction)[0]
        if context.parameter_register(instruction.operands[1], instruction, type_.file) is None
        else None
    )
    for i in range(len(names)):
        if base is None:
            register = context.parameter_register(
                instruction.operands[1], instruction, type_.file, i * type_.size
            )
            assert register is not None
            sources.append(register)
        else:
            assert isinstance(base, LaunchValue)
            sources.append(LaunchValue(f"param:{type_.name}", base.name, base.offset + i * type_.size))
    file = context.files[dests[0]]
    view = REGISTER_VIEWS[file]
    if base is None and file != type_.file:
        raise UnsupportedInstruction(instruction.opcode, instruction.line, "an operand has another width")
    alu = Alu((view,) * len(names), (view,) * len(names), lambda *x: x if len(x) > 1 else x[0])
    return Decoded(
        ("ld.param", file, kinds(sources), len(names)),
        instruction,
        dests,
        tuple(sources),
        lambda batch, rows: alu_step(batch, rows, alu),
    )


def store(context: Context, instruction: Instruction, parts: list[str]) -> Decoded:
    if "param" not in parts and "param::func" not in parts:
        return decode_memory.store(context, instruction, parts)
    type_ = TYPES[parts[-1]]
    names = context.vector(instruction.operands[1])
    dests = []
    for i in range(len(names)):
        register = context.parameter_register(
            instruction.operands[0], instruction, type_.file, i * type_.size
        )
        if register is None:
            raise UnsupportedInstruction(
                instruction.opcode, instruction.line, "kernel parameters are read-only"
            )
        dests.append(register)
    sources = tuple(context.source(name, instruction) for name in names)
    view = REGISTER_VIEWS[type_.file]
    same_files(context, instruction, sources, (view,) * len(sources))
    alu = Alu((view,) * len(names), (view,) * len(names), lambda *x: x if len(x) > 1 else x[0])
    return Decoded(
        ("st.param", type_.file, kinds(sources), len(names)),
        instruction,
        tuple(dests),
        sources,
        lambda batch, rows: alu_step(batch, rows, alu),
    )
