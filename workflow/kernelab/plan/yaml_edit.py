"""Adding an entry to a YAML file's text: every comment, blank line and spelling of the rest stays as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import yaml

from kernelab.errors import UserError
from kernelab.plan import strict_yaml
from kernelab.plan.model import level_text
from kernelab.plan.strict_yaml import KeyPath

Entry = str | Mapping[str, Any]
_PLAIN = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_.+-]*$")


def inserted(text: str, name: str, path: KeyPath, key: str, value: Entry) -> str:
    """The text with `key: value` as the last entry of a mapping.

    Args:
        text: valid YAML (strict_yaml.parse accepts it).
        name: what messages call the file.
        path: the keys that lead to the mapping; all are there.
        value: the text of a level, or a mapping of such entries.

    Raises:
        UserError: the mapping is an alias of another place, or the edit would change more than this entry
            (an anchor that is used elsewhere).
    """
    mapping = _mapping_at(text, name, path)
    newline = "\r\n" if "\r\n" in text else "\n"
    end = mapping.end_mark.index - (1 if mapping.flow_style else 0)
    token = _last_token(text, end)
    behind = token.end_mark.index
    if mapping.flow_style:
        first = isinstance(token, yaml.FlowMappingStartToken)
        comma = "" if first else " " if isinstance(token, yaml.FlowEntryToken) else ", "
        edited = text[:behind] + f"{comma}{key}: {_flow(value)}" + text[behind:]
    else:
        behind = len(text[:behind].rstrip())
        # A comment behind the last entry belongs to it.
        line_end = text.find("\n", behind)
        behind = len(text) if line_end < 0 else line_end - (newline == "\r\n")
        indent = mapping.value[0][0].start_mark.column
        lines = "".join(newline + line for line in _block(key, value, indent))
        edited = text[:behind] + lines + text[behind:]
    if strict_yaml.parse(edited, name).data != _with(strict_yaml.parse(text, name).data, path, key, value):
        where = ".".join(path)
        raise UserError(
            f"{name}: {where}: is used in more than one place (an anchor); write {where} out first"
        )
    return edited


def _mapping_at(text: str, name: str, path: KeyPath) -> yaml.MappingNode:
    # The marks of PyYAML's own parser count characters, whatever the encoding.
    node: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    for depth, part in enumerate(path, start=1):
        key, node = next((k, v) for k, v in node.value if k.value == part)
        if node.start_mark.index < key.start_mark.index:
            raise UserError(
                f"{name}:{key.start_mark.line + 1}: {'.'.join(path[:depth])}: is an alias of another place; "
                "write it out first"
            )
    assert isinstance(node, yaml.MappingNode)
    return node


def _last_token(text: str, end: int) -> yaml.Token:
    """The last token that ends at or before an index and has a width: comments are no tokens, aliases are."""
    last = None
    for token in yaml.scan(text, Loader=yaml.SafeLoader):
        if token.start_mark.index >= end:
            break
        if token.start_mark.index < token.end_mark.index <= end:
            last = token
    assert last is not None
    return last


def _flow(value: Entry) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_flow(inner)}" for key, inner in value.items()) + "}"
    plain = _PLAIN.match(value) and level_text(strict_yaml.scalar(value)) == value
    return value if plain else json.dumps(value, ensure_ascii=False)


def _block(key: str, value: Entry, indent: int) -> list[str]:
    if not isinstance(value, Mapping) or not any(isinstance(inner, Mapping) for inner in value.values()):
        return [f"{' ' * indent}{key}: {_flow(value)}"]
    lines = [f"{' ' * indent}{key}:"]
    for inner_key, inner in value.items():
        lines += _block(inner_key, inner, indent + 2)
    return lines


def _with(data: Any, path: KeyPath, key: str, value: Entry) -> Any:
    if path:
        return {**data, path[0]: _with(data[path[0]], path[1:], key, value)}
    return {**data, key: _read(value)}


def _read(value: Entry) -> Any:
    """An entry as the file's reader sees it."""
    if isinstance(value, Mapping):
        return {key: _read(inner) for key, inner in value.items()}
    scalar = strict_yaml.scalar(value)
    return scalar if level_text(scalar) == value and _PLAIN.match(value) else value
