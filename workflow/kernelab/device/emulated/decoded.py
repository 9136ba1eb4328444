"""A decoded instruction, and the context in which names become registers, addresses and values."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .errors import UnsupportedInstruction
from .memory import SHARED_SHIFT, Region
from .operands import (
    Immediate,
    LaunchValue,
    Reader,
    Source,
    Writer,
    constant_reader,
    launch_reader,
    parse_immediate,
    register_reader,
    register_writer,
)
from .parser import Function, Instruction, Module, Variable, split_operands
from .types import FILE_16, FILE_32, FILE_64, FILE_PRED, TYPES

Step = Callable[[Any, Any], None]
SHARED_BASE = 1 << SHARED_SHIFT  # of local arrays as well

# Special registers that are constant for a thread; the machine fills one row each.
_AXES = ("x", "y", "z")
SPECIAL = {
    **{f"%{name}.{axis}": FILE_32 for name in ("tid", "ntid", "ctaid", "nctaid") for axis in _AXES},
    **{
        f"%{name}": FILE_32
        for name in (
            "laneid",
            "warpid",
            "nwarpid",
            "smid",
            "nsmid",
            "gridid",
            "lanemask_eq",
            "lanemask_le",
            "lanemask_lt",
            "lanemask_ge",
            "lanemask_gt",
            "dynamic_smem_size",
            "total_smem_size",
            "cluster_ctarank",
            "cluster_nctarank",
            "is_explicit_cluster",
        )
    },
    **{
        f"%{name}.{axis}": FILE_32
        for name in ("cluster_ctaid", "cluster_nctaid", "clusterid", "nclusterid")
        for axis in _AXES
    },
}
CARRY = "%CC"  # the flag that add.cc and its kin pass on
CLOCKS = ("%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi")

# How an instruction is ordered against the memory operations of its segment.
NONE, READ, WRITE, SYNC = "none", "read", "write", "sync"


@dataclass(slots=True)
class Decoded:
    """One instruction, ready to be grouped with others of the same `key` and made into a step.

    `ends` marks control flow: it closes its segment, and `make` is not used.
    """

    key: tuple
    instruction: Instruction
    dests: tuple[int, ...]
    sources: tuple[Source, ...]
    make: Callable[[Sequence[Decoded], Rows], Step] | None
    guard: tuple[int, bool] | None = None
    space: str = ""
    order: str = NONE
    data: Any = None
    ends: str = ""


class Rows:
    """Where the virtual registers lie in the register files, once they are allocated."""

    def __init__(self, files: list[int]) -> None:
        self.files = files
        self.row = [-1] * len(files)

    def reader(self, sources: Sequence[Source], view: str) -> Reader:
        """A reader of one operand position of a group; all of its sources are of one kind."""
        first = sources[0]
        if isinstance(first, int):
            return register_reader([self.row[s] for s in sources if isinstance(s, int)], view)
        if isinstance(first, Immediate):
            return constant_reader([s for s in sources if isinstance(s, Immediate)], view)
        return launch_reader([s for s in sources if isinstance(s, LaunchValue)], view)

    def writer(self, dests: Sequence[int], view: str) -> Writer:
        return register_writer([self.row[d] for d in dests], view)


def kinds(sources: Sequence[Source]) -> str:
    """One letter for each source: register, immediate or launch value. Groups agree in it."""
    return "".join("r" if isinstance(s, int) else "i" if isinstance(s, Immediate) else "l" for s in sources)


@dataclass(slots=True)
class Layout:
    """Shared and local arrays of one entry: regions in order, total static bytes."""

    shared: list[Region] = field(default_factory=list)
    local: list[Region] = field(default_factory=list)
    shared_bytes: int = 0
    local_bytes: int = 0
    dynamic: int | None = None  # number of the region that dynamic shared memory fills
    addresses: dict[str, int] = field(default_factory=dict)


def lay_out(module: Module, function: Function) -> Layout:
    """Place the arrays that the function uses, in the order of the text."""
    layout = Layout()
    used = {
        name
        for instruction in function.instructions
        for operand in instruction.operands
        for name in re.findall(r"[$%\w]+", operand)
    }
    local_names = {v.name for v in function.variables}
    variables = [v for v in module.variables.values() if v.name not in local_names] + function.variables
    externs = []
    for variable in variables:
        if variable.name not in used:
            continue
        if variable.space == "shared" and variable.size == 0:
            externs.append(variable)
        elif variable.space == "shared":
            layout.shared_bytes = _place(layout, layout.shared, variable, layout.shared_bytes)
        elif variable.space == "local":
            layout.local_bytes = _place(layout, layout.local, variable, layout.local_bytes)
    if externs:
        align = max(v.align for v in externs)
        start = -(-layout.shared_bytes // align) * align
        layout.shared_bytes = start
        layout.dynamic = len(layout.shared)
        address = SHARED_BASE + (layout.dynamic << SHARED_SHIFT) + start
        layout.addresses.update({v.name: address for v in externs})
        layout.shared.append(Region(externs[0].name, start, 0, start))
    return layout


def _place(layout: Layout, regions: list[Region], variable: Variable, used: int) -> int:
    start = -(-used // variable.align) * variable.align
    layout.addresses[variable.name] = SHARED_BASE + (len(regions) << SHARED_SHIFT) + start
    regions.append(Region(variable.name, start, variable.size, start))
    return start + variable.size


_ADDRESS = re.compile(r"\[\s*([%$@\w.]+)\s*(?:\+\s*(-?\w+)|(-\s*\w+))?\s*\]$")


class Context:
    """Names of one function: registers, special registers, symbols and parameters."""

    def __init__(self, module: Module, function: Function) -> None:
        self.module = module
        self.function = function
        self.layout = lay_out(module, function)
        self.files: list[int] = []
        self.special: dict[str, int] = {}
        self._sources: dict[str, Source] = {}
        self._virtual: dict[tuple[str, int], int] = {}
        self.kernel_parameters = {p.name: p for p in function.parameters}
        for name, kind in {CARRY: "pred", **function.registers}.items():
            if kind in TYPES:
                self._sources[name] = len(self.files)
                self.files.append(TYPES[kind].file)

    def new_register(self, file: int) -> int:
        self.files.append(file)
        return len(self.files) - 1

    def source(self, text: str, instruction: Instruction) -> Source:
        """A register, immediate, symbol or special register."""
        known = self._sources.get(text)
        if known is None:
            known = self._sources[text] = self._resolve(text, instruction)
        return known

    def _resolve(self, text: str, instruction: Instruction) -> Source:
        if text in SPECIAL:
            self.special[text] = self.new_register(SPECIAL[text])
            return self.special[text]
        literal = parse_immediate(text)
        if literal is not None:
            return literal
        name, _, plus = text.partition("+")
        offset = int(plus, 0) if plus else 0
        if name in self.layout.addresses:
            return Immediate(self.layout.addresses[name] + offset)
        if name in self.module.variables:
            return LaunchValue("symbol", name, offset)
        if name in self.kernel_parameters:
            return LaunchValue("parameter_address", name, offset)
        raise UnsupportedInstruction(instruction.opcode, instruction.line, f"unknown operand '{text}'")

    def register(self, text: str, instruction: Instruction, file: int | None = None) -> int:
        """A destination register; `_` is a sink of its own."""
        if text == "_":
            return self.new_register(FILE_32 if file is None else file)
        known = self._sources.get(text)
        if not isinstance(known, int):
            raise UnsupportedInstruction(instruction.opcode, instruction.line, f"'{text}' is not a register")
        return known

    def vector(self, text: str) -> list[str]:
        """The members of a brace-enclosed vector operand, or the operand alone."""
        return split_operands(text[1:-1].strip()) if text.startswith("{") else [text]

    def address(self, text: str, instruction: Instruction) -> tuple[Source, int]:
        """The base and byte offset of a memory operand."""
        match = _ADDRESS.match(text)
        if match is None:
            raise UnsupportedInstruction(
                instruction.opcode, instruction.line, f"cannot read address '{text}'"
            )
        name, plus, minus = match.groups()
        offset = int(plus, 0) if plus else int(minus.replace(" ", ""), 0) if minus else 0
        if name in self.kernel_parameters:
            return LaunchValue("param", name, offset), 0
        base = self.source(name, instruction)
        if isinstance(base, Immediate):
            return Immediate(0), int(base.value) + offset
        return base, offset

    def parameter_register(
        self, text: str, instruction: Instruction, file: int, extra: int = 0
    ) -> int | None:
        """The virtual register that stands for a call's parameter at an offset; None for kernel parameters."""
        match = _ADDRESS.match(text)
        if match is None or match.group(1) in self.kernel_parameters:
            return None
        offset = int(match.group(2), 0) if match.group(2) else 0
        key = (match.group(1), offset + extra)
        if key not in self._virtual:
            self._virtual[key] = self.new_register(file)
        register = self._virtual[key]
        if self.files[register] != file:
            raise UnsupportedInstruction(
                instruction.opcode, instruction.line, "a parameter changes its width"
            )
        return register


REGISTER_VIEWS = {FILE_16: "u2", FILE_32: "u4", FILE_64: "u8", FILE_PRED: "?"}


def register_dtype(file: int) -> np.dtype:
    return np.dtype(np.bool_ if file == FILE_PRED else REGISTER_VIEWS[file])
