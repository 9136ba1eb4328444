"""What every model of a user's file shares: strict, frozen, and one clear line for each fault."""

from __future__ import annotations

import difflib
import re
from math import isfinite
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from kernelab.errors import UserError
from kernelab.plan.expression import ExpressionError, parse
from kernelab.plan.strict_yaml import Document, KeyPath

NAME = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,79}$")
IDENTIFIER = re.compile(r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")
_LINE = re.compile(r":\d+$")


class Strict(BaseModel):
    """A frozen section of a file; an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _name(value: str) -> str:
    # Names become path components, so nothing that a path or a shell could read otherwise.
    if not NAME.match(value) or ".." in value:
        raise ValueError(
            "a name is letters, digits, '_', '.', '+' or '-', 80 at most, and starts with a letter or digit"
        )
    return value


def _identifier(value: str) -> str:
    if not IDENTIFIER.match(value):
        raise ValueError("must be an identifier (letters, digits and '_', not starting with a digit)")
    return value


def _scalar(value: Any) -> Any:
    # Said here once: the union below would say it once for each of its members.
    if not isinstance(value, bool | int | float | str) or (isinstance(value, float) and not isfinite(value)):
        raise ValueError(f"must be a word, a number, true or false (found: {value!r})")
    return value


def _expression(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("must be a number or an expression")
    try:
        return parse(value).text
    except ExpressionError as error:
        raise ValueError(str(error)) from None


Name = Annotated[str, AfterValidator(_name)]
Identifier = Annotated[str, AfterValidator(_identifier)]
ExpressionText = Annotated[str, BeforeValidator(_expression, json_schema_input_type=int | float | str)]
Int = Annotated[int, Field(strict=True)]
Float = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Bool = Annotated[bool, Field(strict=True)]
Scalar = Annotated[
    Annotated[bool, Field(strict=True)]
    | Annotated[int, Field(strict=True)]
    | Annotated[float, Field(strict=True, allow_inf_nan=False)]
    | str,
    BeforeValidator(_scalar),
]


def level_text(value: bool | int | float | str) -> str:
    """The canonical spelling of a level: true, 16, 0.5, constexpr."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return f"{value:.1f}"
    return str(value)


MOST_SHOWN = 30  # names: a message is a line


def suggestion(word: str, known: list[str] | tuple[str, ...]) -> str:
    """`; did you mean X?` or the list of known words (of a long one, how it begins), for a message."""
    close = difflib.get_close_matches(word, known, n=1)
    if close:
        return f"; did you mean {close[0]}?"
    if not known:
        return " (none is declared)"
    more = f" and {len(known) - MOST_SHOWN} more" if len(known) > MOST_SHOWN else ""
    return f" (known: {', '.join(sorted(known)[:MOST_SHOWN])}{more})"


M = TypeVar("M", bound=Strict)


def validate(model: type[M], document: Document) -> M:
    """The document as a model.

    Raises:
        UserError: one line for each fault: file:line: key: reason.
    """
    require_mapping(model, document)
    try:
        return model.model_validate(document.data)
    except ValidationError as error:
        lines: dict[tuple[str, str], str] = {}
        for fault in _without_consequences(error.errors()):
            where, reason = _place_and_reason(document, model, fault)
            # A YAML alias repeats its faults under another key, on the same line.
            line = where.split(": ")[0]
            place = line if _LINE.search(line) else where
            lines.setdefault((place, reason), f"{where}: {reason}")
        raise UserError("\n".join(lines.values())) from None


def require_mapping(model: type[Strict], document: Document) -> None:
    """Raises UserError where a document, or what is laid over it, holds no keys at all."""
    if document.data is None:
        raise UserError(f"{document.file}: is empty; expected {', '.join(model.model_fields)}")
    if not isinstance(document.data, dict):
        raise UserError(f"{document.file}: must be a mapping with the keys {', '.join(model.model_fields)}")


def _without_consequences(faults: list[Any]) -> list[Any]:
    """A misspelt required key is both unknown and missing, a list of faulty items also too short; only the first is said."""
    unknown = [fault["loc"] for fault in faults if fault["type"] == "extra_forbidden"]
    places = [fault["loc"] for fault in faults]

    def is_typo_of(fault: Any) -> bool:
        location = fault["loc"]
        words = [str(other[-1]) for other in unknown if other[:-1] == location[:-1]]
        return bool(difflib.get_close_matches(str(location[-1]), words, n=1))

    def has_faulty_items(fault: Any) -> bool:
        location = fault["loc"]
        return any(place[: len(location)] == location and place != location for place in places)

    consequences = {"missing": is_typo_of, "too_short": has_faulty_items}
    return [fault for fault in faults if not consequences.get(fault["type"], lambda _: False)(fault)]


def _place_and_reason(document: Document, model: type[Strict], fault: Any) -> tuple[str, str]:
    location = tuple(str(part) for part in fault["loc"])
    # A union puts the names of its members into the location; only keys that the file has are shown.
    key = _existing(document.data, location, missing=fault["type"] == "missing")
    reason = fault["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    causes: list[KeyPath] = []
    if fault["type"] == "extra_forbidden":
        known = _siblings(model, location[:-1])
        reason = f"unknown key{suggestion(location[-1], known)}"
    elif fault["type"] == "missing":
        reason = "this key is required"
    elif fault["type"] in ("value_error", "assertion_error"):
        causes = named_keys(key, reason)
    else:
        reason = (
            f"{reason} (found: {fault['input']!r})" if not isinstance(fault["input"], dict | list) else reason
        )
    return document.where(key, causes), reason


def named_keys(key: KeyPath, reason: str) -> list[KeyPath]:
    """The keys that the reason of a fault names: a section's anywhere in it, those of the whole file where it begins."""
    words = re.findall(r"[\w.]+", reason) if key else [reason.partition(": ")[0]]
    return [(*key, *word.split(".", 1)) for word in words]


def _existing(data: Any, location: KeyPath, *, missing: bool) -> KeyPath:
    key: list[str] = []
    for part in location:
        if isinstance(data, dict) and part in data:
            data = data[part]
        elif isinstance(data, list) and part.isdigit() and int(part) < len(data):
            data = data[int(part)]
        elif part == "[key]" or not missing:
            continue
        key.append(part)
    return tuple(key)


def _siblings(model: type[BaseModel], location: KeyPath) -> list[str]:
    """The keys that a section allows, found by walking the models along a location."""
    current: Any = model
    for part in location:
        fields = getattr(current, "model_fields", None)
        if fields and part in fields:
            current = _inner_model(fields[part].annotation)
        elif fields is None:
            return []
    fields = getattr(current, "model_fields", {})
    return [field.alias or name for name, field in fields.items()]


def _inner_model(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        found = _inner_model(argument)
        if found is not None:
            return found
    return None
