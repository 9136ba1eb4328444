"""Device functions that the compiler left as calls are pasted into the entry, each call a copy of its own."""

from __future__ import annotations

import re

from .errors import EmulationError, UnsupportedInstruction
from .parser import Function, Instruction, Module, split_operands

_NAME = re.compile(r"[%$\w@]+")
_DEPTH = 16
BUILT_IN = frozenset({"vprintf", "__assertfail", "__assert_fail", "malloc", "free"})


def inlined(module: Module, entry: Function) -> Function:
    """The entry with all its calls pasted in. Raises UnsupportedInstruction for recursion and indirect calls."""
    if not any(i.opcode.startswith("call") for i in entry.instructions):
        return entry
    flat = Function(
        entry.name,
        True,
        entry.parameters,
        [],
        list(entry.variables),
        dict(entry.registers),
        [],
        {},
        dict(entry.branch_targets),
        entry.maxntid,
        entry.reqntid,
    )
    _paste(module, entry, flat, {}, [], "")
    return flat


def _rename(text: str, names: dict[str, str]) -> str:
    return _NAME.sub(lambda m: names.get(m.group(), m.group()), text) if names else text


def _paste(
    module: Module, function: Function, flat: Function, names: dict[str, str], stack: list[str], after: str
) -> None:
    marks: dict[int, list[str]] = {}
    for label, place in function.labels.items():
        marks.setdefault(place, []).append(names.get(label, label))
    for place, instruction in enumerate(function.instructions):
        for label in marks.get(place, ()):
            flat.labels[label] = len(flat.instructions)
        guard = instruction.guard
        if guard is not None:
            guard = (names.get(guard[0], guard[0]), guard[1])
        operands = [_rename(operand, names) for operand in instruction.operands]
        if instruction.opcode.split(".")[0] == "ret" and after:
            flat.instructions.append(Instruction("bra", [after], guard, instruction.line, instruction.source))
        elif instruction.opcode.startswith("call"):
            _call(module, instruction, operands, guard, flat, stack)
        else:
            flat.instructions.append(
                Instruction(instruction.opcode, operands, guard, instruction.line, instruction.source)
            )
    for label in marks.get(len(function.instructions), ()):
        flat.labels[label] = len(flat.instructions)


def _group(operand: str) -> list[str] | None:
    return split_operands(operand[1:-1].strip()) if operand.startswith("(") else None


def _call(
    module: Module,
    call: Instruction,
    operands: list[str],
    guard: tuple[str, bool] | None,
    flat: Function,
    stack: list[str],
) -> None:
    groups = [_group(operand) for operand in operands]
    position = 1 if groups and groups[0] is not None else 0
    name = operands[position]
    results = groups[0] if position else []
    arguments = groups[position + 1] if len(groups) > position + 1 else []
    if name in BUILT_IN:
        flat.instructions.append(Instruction(f"call.{name}", results or [], guard, call.line, call.source))
        return
    callee = module.functions.get(name)
    if callee is None:
        raise UnsupportedInstruction("call", call.line, f"'{name}' is not a function of this module")
    if len(stack) >= _DEPTH or name in stack:
        raise UnsupportedInstruction("call", call.line, f"'{name}' calls itself")
    copy = f"call{len(flat.instructions)}"
    names = {register: f"{register}@{copy}" for register in callee.registers}
    names.update({label: f"{label}@{copy}" for label in callee.labels})
    names.update(zip([p.name for p in callee.parameters], arguments or [], strict=True))
    names.update(zip([p.name for p in callee.returns], results or [], strict=True))
    if guard is not None:
        raise EmulationError(f"PTX line {call.line}: a predicated call is not supported; branch around it")
    for register, kind in callee.registers.items():
        flat.registers[names[register]] = kind
    flat.variables.extend(v for v in callee.variables if v not in flat.variables)
    after = f"after@{copy}"
    _paste(module, callee, flat, names, [*stack, name], after)
    flat.labels[after] = len(flat.instructions)
