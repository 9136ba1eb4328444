"""PTX text to a module: entries and functions, their parameters, variables and instructions with lines."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .errors import EmulationError
from .types import TYPES


@dataclass(slots=True)
class Instruction:
    """One instruction as written. `line` is the 1-based PTX line, `source` the file and line of its .loc."""

    opcode: str
    operands: list[str]
    guard: tuple[str, bool] | None
    line: int
    source: tuple[int, int] | None


@dataclass(slots=True)
class Variable:
    """A .shared, .global, .const, .local or .param variable. `size` is in bytes, 0 for `.extern` arrays."""

    name: str
    space: str
    size: int
    align: int
    type: str
    initial: bytes | None = None
    relocations: list[tuple[int, str]] = field(default_factory=list)


@dataclass(slots=True)
class Function:
    """An .entry or a .func with a body."""

    name: str
    is_entry: bool
    parameters: list[Variable]
    returns: list[Variable]
    variables: list[Variable]
    registers: dict[str, str]
    instructions: list[Instruction]
    labels: dict[str, int]
    branch_targets: dict[str, list[str]]
    maxntid: tuple[int, ...] | None = None
    reqntid: tuple[int, ...] | None = None


@dataclass(slots=True)
class Module:
    """A parsed PTX text."""

    functions: dict[str, Function]
    variables: dict[str, Variable]
    files: dict[int, str]
    target: str
    compiled: dict[object, object] = field(default_factory=dict)

    @property
    def entries(self) -> list[str]:
        return [name for name, function in self.functions.items() if function.is_entry]


_LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)[^\n]*")
_LABEL = re.compile(r"([$\w]+)\s*:(?!:)\s*")
_FILE = re.compile(r'\.file\s+(\d+)\s+"((?:[^"\\]|\\.)*)"')
_GUARD = re.compile(r"@(!?)\s*([%$\w]+)\s+")
_REG = re.compile(r"\.reg\s*\.(\w+)\s+(.*)", re.S)
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
_VARIABLE = re.compile(
    r"\.(?P<space>shared|global|const|local|param)\s+(?:\.align\s+(?P<align>\d+)\s+)?"
    r"(?P<vector>\.v[24]\s+)?\.(?P<type>\w+)\s+(?:\.ptr\s+)?(?:\.(?:global|shared|const|local)\s+)?"
    r"(?:\.align\s+\d+\s+)?(?P<name>[$%\w]+)\s*(?P<dims>(?:\[[^\]]*\]\s*)*)(?:=\s*(?P<init>.*))?$",
    re.S,
)


def _without_comments(text: str) -> str:
    """The text with comments blanked, its line breaks kept."""
    return _COMMENT.sub(lambda m: "\n" * m.group().count("\n"), text)


def split_operands(text: str) -> list[str]:
    """Split at the commas that are outside braces, brackets and parentheses."""
    if not text:
        return []
    if "{" not in text and "(" not in text:
        return [piece.strip() for piece in text.split(",")]
    pieces, depth, start = [], 0, 0
    for i, char in enumerate(text):
        if char in "{[(":
            depth += 1
        elif char in "}])":
            depth -= 1
        elif char == "," and depth == 0:
            pieces.append(text[start:i].strip())
            start = i + 1
    pieces.append(text[start:].strip())
    return pieces


def _matching_brace(text: str, start: int) -> int:
    depth = 0
    for match in re.finditer(r"[{}]", text[start:]):
        depth += 1 if match.group() == "{" else -1
        if depth == 0:
            return start + match.start()
    raise EmulationError("the PTX text ends inside a '{' block; was the file cut short?")


def parse_variable(text: str) -> Variable:
    """One variable declaration, without its semicolon and linkage directives."""
    match = _VARIABLE.search(text)
    if match is None or match["type"] not in TYPES:
        raise EmulationError(f"cannot read the PTX declaration '{' '.join(text.split())}'")
    element = TYPES[match["type"]].size
    lanes = int(match["vector"].strip()[2:]) if match["vector"] else 1
    count = lanes
    for dim in re.findall(r"\[([^\]]*)\]", match["dims"]):
        count *= int(dim, 0) if dim.strip() else 0
    variable = Variable(
        match["name"],
        match["space"],
        count * element,
        int(match["align"] or element * lanes),
        match["type"],
    )
    if match["init"] is not None:
        _initialise(variable, match["init"], element)
    return variable


def _initialise(variable: Variable, text: str, element: int) -> None:
    import struct

    values = [v.strip() for v in re.sub(r"[{}]", " ", text).replace(",", " ").split()]
    data = bytearray()
    for value in values:
        if re.match(r"0[fF][0-9A-Fa-f]{8}$", value):
            data += int(value[2:], 16).to_bytes(4, "little")
        elif re.match(r"0[dD][0-9A-Fa-f]{16}$", value):
            data += int(value[2:], 16).to_bytes(8, "little")
        elif re.match(r"[-+]?(0[xX][0-9A-Fa-f]+|\d+)U?$", value):
            data += (int(value.rstrip("U"), 0) & (1 << 8 * element) - 1).to_bytes(element, "little")
        elif re.match(r"[-+]?\d*\.\d+", value):
            data += struct.pack("<f" if element == 4 else "<d", float(value))
        else:
            variable.relocations.append((len(data), value.removeprefix("generic(").rstrip(")")))
            data += bytes(element)
    data += bytes(max(0, variable.size - len(data)))
    variable.initial = bytes(data[: variable.size] if variable.size else data)


def _parameters(text: str) -> list[Variable]:
    return [parse_variable(piece) for piece in split_operands(text.strip()) if ".param" in piece]


class _Body:
    """Reads one function body; registers in nested scopes are renamed apart."""

    def __init__(self, function: Function, first_line: int) -> None:
        self.function = function
        self.line = first_line
        self.source: tuple[int, int] | None = None
        self.scopes: list[dict[str, str]] = [{}]
        self.scope_starts: list[int] = []
        self.scope_count = 0

    def read(self, text: str) -> None:
        for piece in text.split(";"):
            self._statement(piece)

    def _statement(self, piece: str) -> None:
        line = self.line
        self.line += piece.count("\n")
        while True:
            stripped = piece.lstrip()
            line += piece.count("\n", 0, len(piece) - len(stripped))
            piece = stripped
            if not piece:
                return
            if piece[0] == "{":
                self.scopes.append({})
                self.scope_starts.append(len(self.function.instructions))
                self.scope_count += 1
                piece = piece[1:]
            elif piece[0] == "}":
                self._close_scope()
                piece = piece[1:]
            elif match := _LOC.match(piece):
                self.source = (int(match.group(1)), int(match.group(2)))
                piece = piece[match.end() :]
            elif match := _LABEL.match(piece):
                self.function.labels[self._scoped_label(match.group(1))] = len(self.function.instructions)
                rest = piece[match.end() :]
                if rest.startswith(".branchtargets"):
                    targets = split_operands(rest[len(".branchtargets") :].strip())
                    self.function.branch_targets[match.group(1)] = targets
                    return
                if rest.startswith((".callprototype", ".calltargets")):
                    return
                line += piece.count("\n", 0, match.end())
                piece = rest
            else:
                break
        if piece[0] == ".":
            self._directive(piece)
        else:
            self._instruction(piece, line)

    def _close_scope(self) -> None:
        """Leave a scope; branches in it that came before their label get the label's renamed form."""
        names = self.scopes.pop()
        for instruction in self.function.instructions[self.scope_starts.pop() :]:
            if instruction.opcode.startswith("bra"):
                instruction.operands = [names.get(o, o) for o in instruction.operands]

    def _scoped_label(self, name: str) -> str:
        if len(self.scopes) == 1:
            return name
        renamed = f"{name}$${self.scope_count}"
        self.scopes[-1][name] = renamed
        return renamed

    def _directive(self, piece: str) -> None:
        if match := _REG.match(piece):
            kind, names = match.group(1), match.group(2)
            for name in split_operands(names):
                ranged = re.match(r"(%?[$\w]+)<(\d+)>", name)
                self._declare(name if ranged is None else ranged.group(1), kind, ranged)
        elif piece.startswith(".pragma"):
            return
        elif match := re.match(r"\.(shared|local|global|const|param)\b", piece):
            self.function.variables.append(parse_variable(piece))

    def _declare(self, name: str, kind: str, ranged: re.Match[str] | None) -> None:
        names = [name] if ranged is None else [f"{name}{i}" for i in range(int(ranged.group(2)))]
        registers = self.function.registers
        if len(self.scopes) == 1:
            registers.update(dict.fromkeys(names, kind))
            return
        for each in names:
            renamed = f"{each}$${self.scope_count}"
            self.scopes[-1][each] = renamed
            registers[renamed] = kind

    def _instruction(self, piece: str, line: int) -> None:
        if len(self.scopes) > 1:
            piece = self._rename(piece)
        guard = None
        if piece[0] == "@":
            match = _GUARD.match(piece)
            assert match is not None
            guard = (match.group(2), match.group(1) == "!")
            line += piece.count("\n", 0, match.end())
            piece = piece[match.end() :]
        opcode, _, rest = (
            piece.partition(" ") if "\t" not in piece else piece.replace("\t", " ", 1).partition(" ")
        )
        if "\n" in opcode:
            opcode, _, extra = piece.partition("\n")
            rest = extra
        operands = split_operands(rest.strip())
        if opcode.startswith("call"):
            operands = split_operands(" ".join(piece[len(opcode) :].split()))
        self.function.instructions.append(Instruction(opcode.strip(), operands, guard, line, self.source))

    def _rename(self, piece: str) -> str:
        names: dict[str, str] = {}
        for scope in self.scopes:
            names.update(scope)
        return re.sub(r"[%$\w]+", lambda m: names.get(m.group(), m.group()), piece) if names else piece


def parse_ptx(text: str) -> Module:
    """Parse a PTX text. Raises EmulationError for text that is not PTX."""
    clean = _without_comments(text)
    module = Module({}, {}, {}, "")
    at, end = 0, len(clean)
    blank = re.compile(r"\s*")
    while True:
        at = blank.match(clean, at).end()  # type: ignore[union-attr]
        if at >= end:
            break
        if clean.startswith(".section", at):
            at = _matching_brace(clean, clean.index("{", at)) + 1
        elif clean.startswith((".version", ".target", ".address_size", ".file"), at):
            stop = clean.find("\n", at)
            stop = end if stop < 0 else stop
            words = clean[at:stop].split()
            if words[0] == ".target":
                module.target = words[1].rstrip(",")
            elif match := _FILE.match(clean, at):
                module.files[int(match.group(1))] = match.group(2)
            at = stop
        else:
            at = _top_level(module, clean, at)
    if not module.functions:
        raise EmulationError("no .entry found: this is not a PTX text with a kernel")
    return module


def _top_level(module: Module, text: str, at: int) -> int:
    semicolon, brace = text.find(";", at), text.find("{", at)
    if semicolon < 0 and brace < 0:
        raise EmulationError(f"PTX line {text.count(chr(10), 0, at) + 1}: unfinished statement")
    header = text[at : brace if brace >= 0 and (semicolon < 0 or brace < semicolon) else semicolon]
    if not re.search(r"\.(entry|func)\b", header):
        statement = text[at:semicolon]
        if re.search(r"\.(shared|global|const)\b", statement):
            variable = parse_variable(statement)
            module.variables[variable.name] = variable
        return semicolon + 1
    if 0 <= semicolon < brace or brace < 0:
        return semicolon + 1
    stop = _matching_brace(text, brace)
    function = _function(header)
    body = _Body(function, text.count("\n", 0, brace + 1) + 1)
    body.read(text[brace + 1 : stop])
    module.functions[function.name] = function
    return stop + 1


def _function(header: str) -> Function:
    match = re.search(
        r"\.(?P<kind>entry|func)\s*(?:\((?P<returns>[^)]*)\)\s*)?(?P<name>[$%\w]+)\s*(?:\((?P<params>[^)]*)\))?",
        header,
    )
    if match is None:
        raise EmulationError(f"cannot read the PTX header '{' '.join(header.split())}'")
    function = Function(
        match["name"],
        match["kind"] == "entry",
        _parameters(match["params"] or ""),
        _parameters(match["returns"] or ""),
        [],
        {},
        [],
        {},
        {},
    )
    for directive in ("maxntid", "reqntid"):
        if found := re.search(rf"\.{directive}\s+(\d+(?:\s*,\s*\d+)*)", header):
            setattr(function, directive, tuple(int(v) for v in found.group(1).split(",")))
    return function
