"""Decoding of loads, stores, atomics and asynchronous copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from . import asynchronous, atomics, decode_bulk
from .access import Site
from .decoded import (
    NONE,
    READ,
    REGISTER_VIEWS,
    SYNC,
    WRITE,
    Context,
    Decoded,
    Rows,
    Step,
    kinds,
    register_dtype,
)
from .errors import UnsupportedInstruction
from .loadstore import generic_step, load_step, store_step
from .operands import Source
from .parser import Instruction
from .types import FILE_32, FILE_64, TYPES, ScalarType

_SPACES = ("global", "shared", "local", "const")
_STRONG = ("volatile", "relaxed", "acquire", "release", "mmio")


def space_of(parts: Sequence[str]) -> str:
    """The state space that an opcode names; "generic" when none."""
    for part in parts:
        name = part.split("::")[0]
        if name in _SPACES:
            return "global" if name == "const" else name
    return "generic"


def _vector_length(parts: Sequence[str]) -> int:
    return next((int(p[1:]) for p in parts if p in ("v2", "v4", "v8")), 1)


def _ordering(parts: Sequence[str]) -> str:
    return next((p for p in parts if p in _STRONG), "")


def _base_view(context: Context, base: Source) -> str:
    return REGISTER_VIEWS[context.files[base]] if isinstance(base, int) else "u8"


def address(context: Context, text: str, instruction: Instruction) -> tuple[Source, int, str]:
    """The base, byte offset and register view of a memory operand."""
    base, offset = context.address(text, instruction)
    view = _base_view(context, base)
    if view not in ("u4", "u8"):
        raise UnsupportedInstruction(instruction.opcode, instruction.line, "an address of 16 bits")
    return base, offset, view


def _type(instruction: Instruction, parts: list[str]) -> ScalarType:
    type_ = TYPES.get(parts[-1])
    if type_ is None:
        raise UnsupportedInstruction(instruction.opcode, instruction.line)
    return type_


def load(context: Context, instruction: Instruction, parts: list[str]) -> Decoded:
    """ld and ldu from global, shared, local, const and generic addresses."""
    type_, vector, space = _type(instruction, parts), _vector_length(parts), space_of(parts)
    constant = "nc" in parts or "const" in parts or parts[0] == "ldu"
    ordering = _ordering(parts)
    base, offset, view = address(context, instruction.operands[1], instruction)
    names = context.vector(instruction.operands[0])
    if len(names) != vector:
        raise UnsupportedInstruction(instruction.opcode, instruction.line, "a vector of another length")
    dests = tuple(context.register(name, instruction, type_.file) for name in names)
    file = context.files[dests[0]]
    tracked = space in ("global", "shared") or space == "generic"
    if "const" in parts:
        tracked = False

    def make_in(batch: Sequence[Decoded], rows: Rows, where: str, window: int) -> tuple[Site, Step]:
        site = Site([d.instruction for d in batch], where, "load", type_.size, vector, window, bool(ordering))
        site.counted = site.counted and "const" not in parts
        site.ordering = ordering
        site.bind([d.sources[0] for d in batch], [d.data for d in batch], rows.row.__getitem__, view)
        writers = [rows.writer([d.dests[z] for d in batch], REGISTER_VIEWS[file]) for z in range(vector)]
        return site, load_step(
            site, writers, register_dtype(file), type_.kind == "s", tracked or where == "local"
        )

    def make(batch: Sequence[Decoded], rows: Rows) -> Step:
        if space == "generic":
            reader = rows.reader([batch[0].sources[0]], "u8")
            return generic_step(lambda where, window: make_in(batch, rows, where, window), reader)
        return make_in(batch, rows, space, 0)[1]

    key = (
        "ld",
        space,
        "const" in parts,
        type_.size,
        type_.kind == "s",
        vector,
        file,
        ordering,
        view,
        kinds((base,)),
    )
    return Decoded(
        key + ((instruction.line,) if space == "generic" else ()),
        instruction,
        dests,
        (base,),
        make,
        space=space,
        order=SYNC if ordering else NONE if constant else READ,
        data=offset,
    )


def store(context: Context, instruction: Instruction, parts: list[str]) -> Decoded:
    """st to global, shared, local and generic addresses."""
    type_, vector, space = _type(instruction, parts), _vector_length(parts), space_of(parts)
    ordering = _ordering(parts)
    base, offset, view = address(context, instruction.operands[0], instruction)
    values = tuple(context.source(name, instruction) for name in context.vector(instruction.operands[1]))
    if len(values) != vector:
        raise UnsupportedInstruction(instruction.opcode, instruction.line, "a vector of another length")
    files = tuple(context.files[v] if isinstance(v, int) else type_.file for v in values)

    def make_in(batch: Sequence[Decoded], rows: Rows, where: str, window: int) -> tuple[Site, Step]:
        site = Site(
            [d.instruction for d in batch], where, "store", type_.size, vector, window, bool(ordering)
        )
        site.ordering = ordering
        site.bind([d.sources[0] for d in batch], [d.data for d in batch], rows.row.__getitem__, view)
        readers = [
            rows.reader([d.sources[1 + z] for d in batch], REGISTER_VIEWS[files[z]]) for z in range(vector)
        ]
        return site, store_step(site, readers, where != "local")

    def make(batch: Sequence[Decoded], rows: Rows) -> Step:
        if space == "generic":
            reader = rows.reader([batch[0].sources[0]], "u8")
            return generic_step(lambda where, window: make_in(batch, rows, where, window), reader)
        return make_in(batch, rows, space, 0)[1]

    sources = (base, *values)
    key = ("st", space, type_.size, vector, files, ordering, view, kinds(sources))
    return Decoded(
        key + ((instruction.line,) if space == "generic" else ()),
        instruction,
        (),
        sources,
        make,
        space=space,
        order=SYNC if ordering else WRITE,
        data=offset,
    )


def _atomic(context: Context, instruction: Instruction, parts: list[str]) -> Decoded:
    """atom and red on global, shared and generic addresses."""
    space = space_of(parts)
    operation = atomics.find(parts)
    if operation is None:
        raise UnsupportedInstruction(instruction.opcode, instruction.line)
    operands = list(instruction.operands)
    dest = operands.pop(0) if parts[0] == "atom" else None
    base, offset, view = address(context, operands[0], instruction)
    type_ = operation.type
    values = tuple(context.source(v, instruction) for v in operands[1:])
    dests = () if dest is None else (context.register(dest, instruction, type_.file),)
    ordering = next((p for p in parts if p in ("relaxed", "acquire", "release", "acq_rel")), "relaxed")

    def make_in(batch: Sequence[Decoded], rows: Rows, where: str, window: int) -> tuple[Site, Step]:
        site = Site([instruction], where, "atomic", type_.size, 1, window, True)
        site.ordering = ordering
        site.bind([base], [offset], rows.row.__getitem__, view)
        readers = [rows.reader([v], operation.view) for v in values]
        write = rows.writer(dests, operation.view) if dests else None
        return site, atomics.atomic_step(site, operation, readers, write)

    def make(batch: Sequence[Decoded], rows: Rows) -> Step:
        if space == "generic":
            return generic_step(
                lambda where, window: make_in(batch, rows, where, window), rows.reader([base], "u8")
            )
        return make_in(batch, rows, space, 0)[1]

    return Decoded(
        (instruction.opcode, instruction.line, len(operands)),
        instruction,
        dests,
        (base, *values),
        make,
        space=space,
        order=SYNC,
    )


def _cp(context: Context, instruction: Instruction, parts: list[str]) -> Decoded:
    """cp.async and its commit and wait instructions."""
    if parts[1] == "async" and "bulk" in parts:
        return decode_bulk.bulk_copy(context, instruction, parts)
    if parts[1] != "async" or "mbarrier" in parts:
        raise UnsupportedInstruction(instruction.opcode, instruction.line)
    if parts[2] == "commit_group":
        return Decoded(
            ("cp.commit", instruction.line),
            instruction,
            (),
            (),
            lambda batch, rows: lambda m, lanes: m.asynchronous.commit(lanes),
            order=SYNC,
        )
    if parts[2] in ("wait_group", "wait_all"):
        keep = int(instruction.operands[0], 0) if parts[2] == "wait_group" else None
        return Decoded(
            ("cp.wait", instruction.line),
            instruction,
            (),
            (),
            lambda batch, rows: lambda m, lanes: m.asynchronous.wait(m, lanes, keep),
            order=SYNC,
        )
    return _cp_async(context, instruction)


def _cp_async(context: Context, instruction: Instruction) -> Decoded:
    operands = instruction.operands
    target, target_offset, target_view = address(context, operands[0], instruction)
    source, source_offset, source_view = address(context, operands[1], instruction)
    size = int(operands[2], 0)
    if size not in (4, 8, 16):
        raise UnsupportedInstruction(instruction.opcode, instruction.line, f"a copy of {size} bytes")
    extra: tuple[Source, ...] = ()
    ignore = False
    if len(operands) > 3:
        limit = context.source(operands[3], instruction)
        ignore = isinstance(limit, int) and context.files[limit] not in (FILE_32, FILE_64)
        extra = (limit,)

    def make(batch: Sequence[Decoded], rows: Rows) -> Step:
        element = min(size, 8)
        instructions = [d.instruction for d in batch]
        shared = Site(instructions, "shared", "store", element, size // element)
        shared.asynchronous = True
        shared.bind(
            [d.sources[0] for d in batch], [d.data[0] for d in batch], rows.row.__getitem__, target_view
        )
        remote = Site(instructions, "global", "load", element, size // element)
        remote.bind(
            [d.sources[1] for d in batch], [d.data[1] for d in batch], rows.row.__getitem__, source_view
        )
        limits = rows.reader([d.sources[2] for d in batch], "?" if ignore else "u4") if extra else None
        return asynchronous.copy_step(shared, remote, limits, ignore)

    key = (
        "cp.async",
        size,
        target_view,
        source_view,
        kinds((target, source, *extra)),
        instruction.line if extra else 0,
    )
    return Decoded(
        key,
        instruction,
        (),
        (target, source, *extra),
        make,
        space="cp",
        order=WRITE,
        data=(target_offset, source_offset),
    )


HANDLERS: dict[str, Callable[[Context, Instruction, list[str]], Decoded]] = {
    "atom": _atomic,
    "red": _atomic,
    "cp": _cp,
    "mbarrier": decode_bulk.mbarrier,
}
