"""What a kernel's source says, apart from comments and layout.

The digest of a build must not move when a comment does, and must move when anything that the compiler sees
does. So each file is cut into preprocessing tokens (comments and white space dropped; string and character
literals, raw strings and line continuations respected), and the tokens of the source and of every quoted
include are hashed.

A file that can see its own layout is hashed byte for byte instead: one that uses `__LINE__`, or defines a
macro that turns its argument into a string (`#x`). Line information in the cubin and the PTX does move with
comments, and is left stale until the next build: nothing that is measured or compared reads it.

This runs at every parse of the Snakefile; a file is read again only when its modification time or size
changes.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelab.errors import UserError

_COMMENT = r"/\*(?s:.*?)\*/|//(?:\\\r?\n|[^\n])*"
_RAW_STRING = r'(?:u8|[uUL])?R"(?P<raw{0}>[^()\\\s]{{0,16}})\((?s:.*?)\)(?P=raw{0})"'
_STRING = r'"(?:\\\r?\n|\\.|[^"\\\n])*"'
_CHARACTER = r"'(?:\\\r?\n|\\.|[^'\\\n])+'"
_DIRECTIVE = rf"^[ \t]*\#(?:{_RAW_STRING.format(1)}|{_STRING}|{_CHARACTER}|{_COMMENT}|\\\r?\n|[^\n])*"
_OPERATOR = r"<<=|>>=|<=>|->\*|\.\.\.|::|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||\#\#|[-+*/%&|^]=|\.\*"

_JOIN = r"(?<=\S)\\\r?\n(?=\S)"  # may join two halves of a token: kept, so that it never equals a space

# A newline is a blank of its own: the spaces behind it may open an indented directive.
_OTHERS = "|".join(
    [
        rf"(?P<blank>[^\S\n]+|\n|{_COMMENT}|(?!{_JOIN})\\\r?\n)",
        _RAW_STRING.format(2),
        r"[A-Za-z_]\w*",
        r"\.?\d(?:[eEpP][+-]|'?\w|\.)*",
        _STRING,
        _CHARACTER,
        _JOIN,
        _OPERATOR,
        r"(?s:.)",
    ]
)
_TOKEN = re.compile(rf"(?P<directive>{_DIRECTIVE})|{_OTHERS}", re.MULTILINE)
_TOKEN_IN_DIRECTIVE = re.compile(_OTHERS)  # a `#` that opens a continued line is no directive
_HASH = re.compile(r"\s*#")
_GAP = rf"(?:\s|\\\r?\n|{_COMMENT})"
_FUNCTION_MACRO = re.compile(rf"{_GAP}*define{_GAP}+\w+\(")


@dataclass(frozen=True)
class _File:
    digest: str
    includes: tuple[str, ...]


_cache: dict[str, tuple[tuple[int, int], _File]] = {}


def source_closure(source: Path, include_dirs: Sequence[Path] = ()) -> tuple[Path, ...]:
    """The source and every file that it includes in quotes, directly or not, each once, in order of first
    use.

    An include is looked for beside the file that names it, then in `include_dirs`. `#if` is not evaluated, so
    an include counts even where this build skips it.

    Raises:
        UserError: the source or an included file does not exist.
    """
    found: dict[str, None] = {}
    pending = [os.path.normpath(source)]
    while pending:
        path = pending.pop()
        if path in found:
            continue
        found[path] = None
        pending += reversed([_resolve(path, name, include_dirs) for name in _read(path).includes])
    return tuple(Path(path) for path in found)


def source_digest(source: Path, include_dirs: Sequence[Path] = ()) -> str:
    """SHA-256 over the tokens of the source and of all that it includes; comments and layout do not count.

    Raises:
        UserError: the source or an included file does not exist.
    """
    total = hashlib.sha256()
    for path in source_closure(source, include_dirs):
        total.update(_read(str(path)).digest.encode())
    return total.hexdigest()


def text_sha256(source: Path, include_dirs: Sequence[Path] = ()) -> str:
    """SHA-256 over the source and all that it includes as they are, comments and layout too: line numbers depend on them.

    Raises:
        UserError: the source or an included file does not exist.
    """
    total = hashlib.sha256()
    for path in source_closure(source, include_dirs):
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def text_digest(text: str) -> str:
    """SHA-256 over the tokens of one file's text, or over the text itself where it can see its own layout."""
    return _digest(text, tokens(text))


def tokens(text: str) -> list[str]:
    """The preprocessing tokens of `text`. A directive is opened by `#directive` and closed by a newline
    token."""
    return _tokens(text, _TOKEN)


def _tokens(text: str, pattern: re.Pattern[str]) -> list[str]:
    found: list[str] = []
    for match in pattern.finditer(text):
        kind = match.lastgroup
        if kind == "blank":
            continue
        if kind == "directive":
            body = _HASH.sub("", match[0], count=1)
            # `#define F(x)` and `#define F (x)` differ in a space alone
            opening = "#directive(" if _FUNCTION_MACRO.match(body) else "#directive"
            found += [opening, *_tokens(body, _TOKEN_IN_DIRECTIVE), "\n"]
        else:
            found.append(match[0])
    return found


def _digest(text: str, found: list[str]) -> str:
    # a lone `#` makes a string of a macro's argument (or opens a directive behind a comment)
    if "__LINE__" in found or "#" in found:
        return hashlib.sha256(b"bytes\0" + text.encode(errors="surrogateescape")).hexdigest()
    return hashlib.sha256("\0".join(found).encode(errors="surrogateescape")).hexdigest()


def _includes(found: list[str]) -> tuple[str, ...]:
    starts = [i for i, token in enumerate(found) if token == "#directive"]
    return tuple(
        found[i + 2].strip('"') for i in starts if found[i + 1] == "include" and found[i + 2].startswith('"')
    )


def _read(path: str) -> _File:
    try:
        status = os.stat(path)
        known = _cache.get(path)
        if known and known[0] == (status.st_mtime_ns, status.st_size):
            return known[1]
        text = Path(path).read_bytes().decode(errors="surrogateescape")
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error
    found = tokens(text)
    file = _File(_digest(text, found), _includes(found))
    _cache[path] = ((status.st_mtime_ns, status.st_size), file)
    return file


def _resolve(includer: str, name: str, include_dirs: Sequence[Path]) -> str:
    for folder in [Path(includer).parent, *include_dirs]:
        path = os.path.normpath(os.path.join(folder, name))
        if os.path.isfile(path):
            return path
    raise UserError(f'{includer}: #include "{name}": no such file beside it: add the file or mend the name')
