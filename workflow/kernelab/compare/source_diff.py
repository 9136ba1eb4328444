"""The token diff of two kernels, as the compiler sees them: includes in place, conditions decided, parameters set.

Comments, layout and branches that a build does not take are no difference. Macros that take arguments are left
as they are called, with their definition; every other macro of the build is replaced by its value.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kernelab.build.source import tokens
from kernelab.plan.expression import ExpressionError, parse

_WORD = re.compile(r"[A-Za-z_]\w*$")
_C_TO_PYTHON = {"&&": "and", "||": "or", "!": "not", "/": "//"}


@dataclass
class _State:
    """What is defined so far, and which files with #pragma once were read."""

    macros: dict[str, list[str]]
    once: set[Path] = field(default_factory=set)


def preprocessed(source: Path, defines: Mapping[str, str]) -> list[str]:
    """The statements of a source and of all that it includes in quotes, one text each.

    Args:
        source: a .cu file.
        defines: macro values, as `-D` gives them.

    Raises:
        OSError: a file is missing.
    """
    state = _State({name: [value] for name, value in defines.items()})
    return list(_statements(_expanded(source, state)))


def token_diff(base: list[str], arm: list[str], most: int = 60) -> str:
    """The statements that differ, `-` from the base and `+` from the arm, and a first line that counts tokens.

    Args:
        base, arm: from `preprocessed`.
        most: lines shown; the rest is counted.
    """
    lines = [
        line
        for line in difflib.unified_diff(base, arm, lineterm="", n=0)
        if line[:1] in "+-" and line[:3] not in ("+++", "---")
    ]
    if not lines:
        return "the preprocessed sources are equal"
    gone = sum(len(line.split()) for line in lines if line[0] == "-")
    come = sum(len(line.split()) for line in lines if line[0] == "+")
    head = f"{gone} tokens go, {come} come"
    shown = [line if len(line) <= 160 else f"{line[:157]}..." for line in lines[:most]]
    rest = [f"... {len(lines) - most} more statements"] if len(lines) > most else []
    return "\n".join([head, *shown, *rest])


def _expanded(path: Path, state: _State) -> Iterator[str]:
    """Tokens of a file after conditions, includes and macros."""
    found = tokens(path.read_bytes().decode(errors="surrogateescape"))
    taken: list[tuple[bool, bool]] = []  # of each open #if: whether this branch is taken, whether any was
    place = 0
    while place < len(found):
        token = found[place]
        if not token.startswith("#directive"):
            place += 1
            if all(now for now, _ in taken):
                yield from _replaced(token, state, frozenset())
            continue
        end = found.index("\n", place)
        body = found[place + 1 : end]
        place = end + 1
        if not body:
            continue
        name, rest = body[0], body[1:]
        active = all(now for now, _ in taken)
        if name in ("if", "ifdef", "ifndef"):
            holds = active and _holds(name, rest, state)
            taken.append((holds, holds or not active))
        elif name in ("elif", "else"):
            outside = all(now for now, _ in taken[:-1])
            _, done = taken.pop()
            holds = outside and not done and (name == "else" or _holds("if", rest, state))
            taken.append((holds, done or holds))
        elif name == "endif":
            taken.pop()
        elif active:
            yield from _obeyed(name, rest, path, state, token == "#directive(")


def _obeyed(name: str, rest: list[str], path: Path, state: _State, takes_arguments: bool) -> Iterator[str]:
    """What a directive that is no condition leaves in the text."""
    if name == "include" and rest and rest[0].startswith('"'):
        target = (path.parent / rest[0].strip('"')).resolve()
        if target not in state.once:
            yield from _expanded(target, state)
    elif name == "pragma" and rest == ["once"]:
        state.once.add(path.resolve())
    elif name == "define" and rest and not takes_arguments:
        state.macros[rest[0]] = rest[1:]
    elif name == "undef" and rest:
        state.macros.pop(rest[0], None)
    else:
        yield f"#{name}"
        for token in rest:
            yield from _replaced(token, state, frozenset(rest[:1]) if name == "define" else frozenset())
        yield "\n"


def _replaced(token: str, state: _State, within: frozenset[str]) -> Iterator[str]:
    if token in within or token not in state.macros:
        yield token
        return
    for part in state.macros[token]:
        yield from _replaced(part, state, within | {token})


def _holds(kind: str, rest: list[str], state: _State) -> bool:
    if kind in ("ifdef", "ifndef"):
        return (rest[0] in state.macros) == (kind == "ifdef")
    words: list[str] = []
    place = 0
    while place < len(rest):
        if rest[place] == "defined":
            names = [word for word in rest[place + 1 : place + 4] if _WORD.match(word)]
            words.append("1" if names and names[0] in state.macros else "0")
            place += 4 if rest[place + 1 : place + 2] == ["("] else 2
            continue
        words += [
            _C_TO_PYTHON.get(part, "0" if _WORD.match(part) else part)  # an unknown word counts as 0 in C
            for part in _replaced(rest[place], state, frozenset())
        ]
        place += 1
    try:
        return bool(parse(" ".join(words))({}))
    except ExpressionError:
        return True  # a condition of the compiler's own (an architecture, say): its branch is shown


def _statements(found: Iterator[str]) -> Iterator[str]:
    """Tokens as lines that end with a statement, a brace or a directive; parentheses are not broken."""
    line: list[str] = []
    depth = 0
    for token in found:
        if token == "\n":
            if line:
                yield _line(line)
            line = []
            continue
        line.append(token)
        depth += (token in "([") - (token in ")]") if len(token) == 1 else 0
        if token in ("{", "}") or (token == ";" and depth == 0):
            yield _line(line)
            line, depth = [], 0
    if line:
        yield _line(line)


def _line(found: list[str]) -> str:
    return " ".join(found)
