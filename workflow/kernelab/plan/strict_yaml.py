"""Reading YAML strictly: YAML 1.2 plain scalars, no duplicate keys, and the line of every key.

Snakemake's own loader follows YAML 1.1: it turns the keys `on`, `no`, `yes` into booleans, `1e-3` into a
string, `010` into 8, `1:30` into 90, and lets the last of two equal keys win. Here a plain scalar is what the
YAML 1.2 core schema says (https://yaml.org/spec/1.2.2/#103-core-schema), and two equal keys are an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from kernelab.errors import UserError

KeyPath = tuple[str, ...]

_NULL = re.compile(r"^(?:~|null|Null|NULL|)$")
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"^[-+]?[0-9]+$")
_OCTAL = re.compile(r"^0o[0-7]+$")
_HEX = re.compile(r"^0x[0-9a-fA-F]+$")
_FLOAT = re.compile(r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$")
_SPECIAL = {".inf": float("inf"), "+.inf": float("inf"), "-.inf": float("-inf"), ".nan": float("nan")}
MAX_DEPTH = 32
# libyaml's parser where PyYAML was built with it: ten times faster, and every step of the pipeline reads these files.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MAX_KEYS = 200_000


@dataclass(frozen=True)
class Document:
    """A parsed file: its data and, for messages, the line (from 1; 0: it has no lines) of every key.

    under   what it is laid over; `data` is then that of both, and `lines` still those of this file alone
    """

    file: str
    data: Any
    lines: dict[KeyPath, int] = field(default_factory=dict)
    under: Document | None = None

    def where(self, key: KeyPath, causes: Sequence[KeyPath] = ()) -> str:
        """`file:line: a.b.c`, with the line of the deepest part of the key that the file has.

        Args:
            causes: the keys, where the fault is of several; the last file that has one of them is named.
        """
        owner = self.owner(key, causes)
        parts = _upwards(key)
        if owner.under is not None and not key:
            parts = iter(causes)  # only config.yaml's own faults of the whole name no line
        line = next((owner.lines[part] for part in parts if part in owner.lines), 0)
        place = f"{owner.file}:{line}" if line else owner.file
        return f"{place}: {'.'.join(key)}" if key else place

    def owner(self, key: KeyPath, causes: Sequence[KeyPath] = ()) -> Document:
        """Of the files laid over each other, the last that has one of the causes; else the deepest part of the key."""
        layers = [self]
        while layers[-1].under is not None:
            layers.append(layers[-1].under)
        for keys in (causes, *([part] for part in _upwards(key))):
            for layer in layers:
                if any(one in layer.lines for one in keys):
                    return layer
        return layers[-1]


def _upwards(key: KeyPath) -> Iterator[KeyPath]:
    """a.b.c, a.b, a."""
    return (key[:length] for length in range(len(key), 0, -1))


def read(path: Path, shown_as: str | None = None) -> Document:
    """Read one YAML file strictly.

    Raises:
        UserError: the file is missing, is not UTF-8 YAML, or repeats a key.
    """
    name = shown_as or path.as_posix()
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"{name}: no such file; create it or name another") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{name}: cannot be read as UTF-8 text: {error}") from None
    return parse(text, name)


def parse(text: str, name: str) -> Document:
    """Parse YAML text strictly; `name` is what messages call it."""
    lines: dict[KeyPath, int] = {}
    try:
        node = yaml.compose(text, Loader=LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        raise UserError(f"{name}{line}: not valid YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise UserError(f"{name}: not valid YAML: {' '.join(str(error).split())}") from None
    return Document(name, _construct(node, (), name, lines), lines)


def _construct(node: yaml.Node | None, path: KeyPath, name: str, lines: dict[KeyPath, int]) -> Any:
    if node is None:
        return None
    line = node.start_mark.line + 1
    if len(path) > MAX_DEPTH:
        raise UserError(f"{name}:{line}: {'.'.join(path[:3])}...: nested deeper than {MAX_DEPTH} levels")
    if len(lines) > MAX_KEYS:
        raise UserError(
            f"{name}: more than {MAX_KEYS} keys and items (aliases count each time); split the file"
        )
    if node.tag.startswith("!") or node.tag.startswith("tag:yaml.org,2002:python"):
        raise UserError(
            f"{name}:{line}: {'.'.join(path)}: the tag {node.tag} is not allowed; write plain YAML"
        )
    if isinstance(node, yaml.ScalarNode):
        return node.value if node.style in ("'", '"', "|", ">") else scalar(node.value)
    if isinstance(node, yaml.SequenceNode):
        items = []
        for index, item in enumerate(node.value):
            lines.setdefault((*path, str(index)), item.start_mark.line + 1)
            items.append(_construct(item, (*path, str(index)), name, lines))
        return items
    assert isinstance(node, yaml.MappingNode)
    result: dict[Any, Any] = {}
    seen: dict[str, int] = {}
    for key_node, value_node in node.value:
        key_line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            raise UserError(f"{name}:{key_line}: {'.'.join(path) or 'top level'}: a key must be a plain word")
        # Keys stay text, whatever they look like: a level named 1 or true is asked for by its spelling.
        key = key_node.value
        if key in seen:
            raise UserError(
                f"{name}:{key_line}: {'.'.join((*path, key))}: the key stands twice (first on line {seen[key]}); "
                "keep one of the two"
            )
        seen[key] = key_line
        lines[(*path, key)] = key_line
        result[key] = _construct(value_node, (*path, key), name, lines)
    return result


def scalar(text: str) -> Any:
    """A plain scalar by the YAML 1.2 core schema."""
    if _NULL.match(text):
        return None
    if text in _BOOL:
        return _BOOL[text]
    if _INT.match(text):
        return int(text, 10)
    if _OCTAL.match(text):
        return int(text[2:], 8)
    if _HEX.match(text):
        return int(text[2:], 16)
    if _FLOAT.match(text):
        return float(text)
    return _SPECIAL.get(text.lower(), text)
