"""Instructions to groupable operations: arithmetic, moves and conversions; the other families are dispatched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import (
    carry,
    compare,
    convert,
    decode_control,
    decode_matrix,
    decode_memory,
    decode_param,
    floating,
    fused,
    half,
    integer,
)
from .alu import VIEW_FILES, Alu, Array
from .alu_step import alu_step, same_files
from .decoded import CARRY, CLOCKS, REGISTER_VIEWS, SYNC, Context, Decoded, Rows, Step, kinds, register_dtype
from .errors import UnsupportedInstruction
from .operands import Source
from .parser import Function, Instruction, Module
from .types import FILE_32, FILE_64, TYPES


def decode(module: Module, function: Function) -> tuple[Context, list[Decoded]]:
    """Decode every instruction of an inlined entry."""
    context = Context(module, function)
    return context, [decode_one(context, instruction) for instruction in function.instructions]


def decode_one(context: Context, instruction: Instruction) -> Decoded:
    parts = instruction.opcode.split(".")
    handler = _HANDLERS.get(parts[0], _arithmetic)
    decoded = handler(context, instruction, parts)
    if instruction.guard is not None and decoded.guard is None:
        name, negated = instruction.guard
        decoded.guard = (context.register(name, instruction), negated)
    return decoded


_known: dict[str, Alu | None] = {}


def _find(opcode: str, parts: list[str]) -> Alu | None:
    if opcode not in _known:
        _known[opcode] = (
            floating.lookup(parts) or half.lookup(parts) or compare.lookup(parts) or integer.lookup(parts)
        )
    return _known[opcode]


def _carried(context: Context, instruction: Instruction, alu: Alu) -> Decoded:
    """An instruction of a carry chain: the flag is one more operand."""
    dest, *sources = instruction.operands
    plain = Instruction(
        instruction.opcode,
        [
            dest + ("|" + CARRY if len(alu.outputs) > 1 else ""),
            *sources,
            *([CARRY] if alu.inputs[-1] == "?" else []),
        ],
        None,
        instruction.line,
        instruction.source,
    )
    return _operation(context, plain, alu)


def _arithmetic(context: Context, instruction: Instruction, parts: list[str]) -> Decoded:
    if parts[0][-1] == "c" or "cc" in parts:
        chain = carry.lookup(parts)
        if chain is not None:
            return _carried(context, instruction, chain)
    alu = _find(instruction.opcode, parts)
    if alu is None:
        raise UnsupportedInstruction(instruction.opcode, instruction.line)
    if instruction.opcode == "fma.rn.f32":
        return _operation(context, instruction, alu, fused.make_fma)
    return _operation(context, instruction, alu)


def _operation(
    context: Context, instruction: Instruction, alu: Alu, make: Callable | None = None, tag: object = None
) -> Decoded:
    dest_text, *source_texts = instruction.operands
    if len(source_texts) != len(alu.inputs):
        raise UnsupportedInstruction(instruction.opcode, instruction.line, "unexpected number of operands")
    dests = tuple(
        context.register(name, instruction, VIEW_FILES[view])
        for name, view in zip(dest_text.split("|"), alu.outputs, strict=False)
    )
    sources = tuple(context.source(text, instruction) for text in source_texts)
    same_files(context, instruction, sources, alu.inputs)
    same_files(context, instruction, dests, alu.outputs)
    return Decoded(
        (instruction.opcode, kinds(sources), len(dests), tag),
        instruction,
        dests,
        sources,
        make or (lambda batch, rows: alu_step(batch, rows, alu)),
    )


def _identity(view: str) -> Alu:
    return Alu((view,), (view,), lambda x: x)


def _mov(context: Context, instruction: Instruction, parts: list[str]) -> Decoded:
    dest, source = instruction.operands
    if source in CLOCKS:
        return _clock(context, instruction, source)
    if dest.startswith("{") or source.startswith("{"):
        return _pack(context, instruction)
    target = context.register(dest, instruction)
    return _copy(context, instruction, target, context.source(source, instruction))


def _copy(context: Context, instruction: Instruction, target: int, source: Source) -> Decoded:
    file = context.files[target]
    if isinstance(source, int) and context.files[source] != file:
        raise UnsupportedInstruction(instruction.opcode, instruction.line, "an operand has another width")
    view = REGISTER_VIEWS[file]
    alu = _identity(view)
    return Decoded(
        ("mov", file, kinds((source,))),
        instruction,
        (target,),
        (source,),
        lambda batch, rows: alu_step(batch, rows, alu),
    )


def _clock(context: Context, instruction: Instruction, name: str) -> Decoded:
    """Clocks advance with the instructions that the thread's cohort has executed: deterministic, not time."""
    target = context.register(instruction.operands[0], instruction)
    file = context.files[target]

    def make(batch: Sequence[Decoded], rows: Rows) -> Step:
        write = rows.writer([d.dests[0] for d in batch], REGISTER_VIEWS[file])
        high = name.endswith("_hi")

        def step(m: Any, lanes: Any) -> None:
            value = (m.ticks() >> 32 if high else m.ticks()) & (0xFFFFFFFF if file == FILE_32 else 2**64 - 1)
            write(m, lanes, np.array([[value]], register_dtype(file)))

        return step

    return Decoded(("clock", name, instruction.line), instruction, (target,), (), make, order=SYNC)


def _pack(context: Context, instruction: Instruction) -> Decoded:
    """mov between a wide register and a vector of narrow ones, the lowest bits first."""
    dest, source = instruction.operands
    if dest.startswith("{"):
        names = context.vector(dest)
        wide = context.source(source, instruction)
        total = TYPES[instruction.opcode.split(".")[1]].size
        file = {2: 0, 4: FILE_32, 8: FILE_64}[total]
        narrow_file = next(
            (context.files[context.register(n, instruction)] for n in names if n != "_"), FILE_32
        )
        dests = tuple(context.register(n, instruction, narrow_file) for n in names)
        view, narrow = REGISTER_VIEWS[file], REGISTER_VIEWS[narrow_file]
        bits = 8 * total // len(names)

        def split(x: Array) -> Array:
            return tuple((x >> x.dtype.type(bits * i)).astype(narrow) for i in range(len(names)))

        alu = Alu((view,), (narrow,) * len(names), split)
        return Decoded(
            (instruction.opcode, "split", narrow_file, kinds((wide,)), len(names)),
            instruction,
            dests,
            (wide,),
            lambda batch, rows: alu_step(batch, rows, alu),
        )
    names = context.vector(source)
    sources = tuple(context.source(n, instruction) for n in names)
    target = context.register(dest, instruction)
    view = REGISTER_VIEWS[context.files[target]]
    dtype = np.dtype(view)
    bits = 8 * dtype.itemsize // len(names)
    narrow = {8: "u2", 16: "u2", 32: "u4"}[bits]
    narrows = tuple(REGISTER_VIEWS[context.files[s]] if isinstance(s, int) else narrow for s in sources)

    def join(*pieces: Array) -> Array:
        result = pieces[0].astype(dtype)
        for i, piece in enumerate(pieces[1:], 1):
            result = result | piece.astype(dtype) << dtype.type(bits * i)
        return result

    alu = Alu(narrows, (view,), join)
    return Decoded(
        (instruction.opcode, "join", narrows, kinds(sources)),
        instruction,
        (target,),
        sources,
        lambda batch, rows: alu_step(batch, rows, alu),
    )


def _cvt(context: Context, instruction: Instruction, parts: list[str]) -> Decoded:
    if len(instruction.operands) == 3:
        function = convert.packed_conversion(parts)
        if function is None:
            raise UnsupportedInstruction(instruction.opcode, instruction.line)
        return _operation(context, instruction, Alu(("f4", "f4"), ("u4",), function))
    dest, source_text = instruction.operands
    target = context.register(dest, instruction)
    source = context.source(source_text, instruction)
    target_file = context.files[target]
    source_file = context.files[source] if isinstance(source, int) else TYPES[parts[-1]].file
    function = convert.conversion(parts, register_dtype(source_file), register_dtype(target_file))
    if function is None:
        raise UnsupportedInstruction(instruction.opcode, instruction.line)
    alu = Alu((REGISTER_VIEWS[source_file],), (REGISTER_VIEWS[target_file],), function)
    return Decoded(
        (instruction.opcode, source_file, target_file, kinds((source,))),
        instruction,
        (target,),
        (source,),
        lambda batch, rows: alu_step(batch, rows, alu),
    )


def _setp(context: Context, instruction: Instruction, parts: list[str]) -> Decoded:
    operands = list(instruction.operands)
    two = "|" in operands[0] or parts[-1].endswith("x2")
    packed = half.setp(parts)
    alu = packed if packed is not None else compare.setp(parts, two)
    if alu is None:
        raise UnsupportedInstruction(instruction.opcode, instruction.line)
    if len(operands) == 4 and operands[3].startswith("!"):
        plain = alu.function
        alu = Alu(alu.inputs, alu.outputs, lambda x, y, c: plain(x, y, ~c))
        cleaned = Instruction(
            instruction.opcode,
            [*operands[:3], operands[3][1:].strip()],
            instruction.guard,
            instruction.line,
            instruction.source,
        )
        return _operation(context, cleaned, alu, tag="negated")
    return _operation(context, instruction, alu, tag=two)


def _lop3(context: Context, instruction: Instruction, parts: list[str]) -> Decoded:
    if len(parts) != 2:
        raise UnsupportedInstruction(instruction.opcode, instruction.line)
    table = int(instruction.operands[-1], 0)
    plain = Instruction(
        instruction.opcode, instruction.operands[:-1], None, instruction.line, instruction.source
    )
    return _operation(context, plain, integer.lop3(table), tag=table)


def _cvta(context: Context, instruction: Instruction, parts: list[str]) -> Decoded:
    """Generic addresses of shared and local memory lie in windows of their own; global ones are unchanged."""
    from .memory import LOCAL_WINDOW, SHARED_WINDOW

    space = (
        "shared" if any(p.startswith("shared") for p in parts) else "local" if "local" in parts else "global"
    )
    window = 0 if "param" in parts else {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}.get(space, 0)
    target = context.register(instruction.operands[0], instruction)
    source = context.source(instruction.operands[1], instruction)
    if window == 0 and (not isinstance(source, int) or context.files[source] == context.files[target]):
        return _copy(context, instruction, target, source)
    view = REGISTER_VIEWS[context.files[target]]
    read = REGISTER_VIEWS[context.files[source]] if isinstance(source, int) else view
    offset = np.uint64(window)
    sign = np.subtract if "to" in parts else np.add
    alu = Alu((read,), (view,), lambda x: sign(x.astype(np.uint64), offset).astype(view))
    return Decoded(
        (instruction.opcode, read, view, kinds((source,))),
        instruction,
        (target,),
        (source,),
        lambda batch, rows: alu_step(batch, rows, alu),
    )


def _isspacep(context: Context, instruction: Instruction, parts: list[str]) -> Decoded:
    from .memory import LOCAL_WINDOW, SHARED_WINDOW

    space = parts[1].split("::")[0]
    low = {"global": 0, "shared": SHARED_WINDOW, "local": LOCAL_WINDOW}.get(space)
    if low is None:
        alu = Alu(("u8",), ("?",), lambda x: np.zeros(x.shape, np.bool_))
    else:
        high = {"global": SHARED_WINDOW, "shared": LOCAL_WINDOW, "local": 2**64 - 1}[space]
        alu = Alu(("u8",), ("?",), lambda x: (x >= np.uint64(low)) & (x < np.uint64(high)))
    return _operation(context, instruction, alu)


def _nothing(context: Context, instruction: Instruction, parts: list[str]) -> Decoded:
    """Hints that change no value: prefetch, nanosleep, pmevent and the like."""
    return Decoded(("nothing",), instruction, (), (), lambda batch, rows: lambda m, lanes: None)


_HANDLERS: dict[str, Callable[[Context, Instruction, list[str]], Decoded]] = {
    "mov": _mov,
    "cvt": _cvt,
    "setp": _setp,
    "lop3": _lop3,
    "cvta": _cvta,
    "isspacep": _isspacep,
    "ld": decode_param.load,
    "ldu": decode_param.load,
    "st": decode_param.store,
    "prefetch": _nothing,
    "prefetchu": _nothing,
    "nanosleep": _nothing,
    "pmevent": _nothing,
    "applypriority": _nothing,
    "setmaxnreg": _nothing,
    "griddepcontrol": _nothing,
    **decode_memory.HANDLERS,
    **decode_control.HANDLERS,
    **decode_matrix.HANDLERS,
}
