"""YAML 1.2 plain scalars, whatever YAML 1.1 would make of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelab.errors import UserError
from kernelab.plan.strict_yaml import parse, scalar


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"),
        ("no", "no"),
        ("yes", "yes"),
        ("off", "off"),
        ("y", "y"),
        ("true", True),
        ("False", False),
        ("010", 10),
        ("0o10", 8),
        ("0x10", 16),
        ("1:30", "1:30"),
        ("1e-3", 0.001),
        ("1.0e-3", 0.001),
        ("1_000", "1_000"),
        (".5", 0.5),
        ("~", None),
        ("null", None),
        ("none", "none"),
        ("2026-11-30", "2026-11-30"),
        ("-7", -7),
        ("0b11", "0b11"),
        ("=", "="),
    ],
)
def test_plain_scalars(text: str, value: object) -> None:
    found = scalar(text)
    assert found == value
    assert type(found) is type(value)
    assert parse(f"key: {text}\n", "f").data == {"key": value}


def test_keys_stay_text_and_quotes_make_text() -> None:
    assert parse("{on: 1, 1: 2, true: 3, 'x': '1'}", "f").data == {"on": 1, "1": 2, "true": 3, "x": "1"}


def test_lines_are_known() -> None:
    document = parse("a: 1\nb:\n  c:\n    - x\n    - y\n", "file.yaml")
    assert document.where(("b", "c", "1")) == "file.yaml:5: b.c.1"
    assert document.where(("b", "c", "missing")) == "file.yaml:3: b.c.missing"


@given(st.integers())
def test_integers_round_trip(number: int) -> None:
    assert scalar(str(number)) == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_round_trip(number: float) -> None:
    found = scalar(repr(number))
    assert isinstance(found, float)
    assert found == number


@given(st.text(max_size=200))
def test_any_text_is_parsed_or_refused_in_one_line(text: str) -> None:
    try:
        parse(text, "f")
    except UserError as error:
        lines = str(error).splitlines()
        if len(lines) != 1:
            raise
