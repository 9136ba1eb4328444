"""The expression language agrees with Python where it allows, and refuses everything else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelab.plan.expression import Expression, ExpressionError, parse

NAMES = {"a": 7, "b": 3, "c": -2}


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> tuple[str, str]:
    """An expression, and the same for Python: `and` and `or` give a truth value here, one of the operands there."""
    if depth == 0 or draw(st.booleans()):
        leaf = draw(st.sampled_from(["a", "b", "c", "0", "1", "12"]))
        return leaf, leaf
    (left, python_left), (right, python_right) = (draw(expressions(depth=depth - 1)) for _ in range(2))
    operator = draw(st.sampled_from(["+", "-", "*", "//", "%", "==", "<", ">=", "and", "or"]))
    python = f"({python_left} {operator} {python_right})"
    return f"({left} {operator} {right})", f"bool{python}" if operator in ("and", "or") else python


@given(expressions())
def test_agrees_with_python(texts: tuple[str, str]) -> None:
    text, python = texts
    try:
        expected = eval(python, {"__builtins__": {}, "bool": bool}, dict(NAMES))
    except ZeroDivisionError:
        with pytest.raises(ExpressionError, match="cannot be evaluated"):
            parse(text)(NAMES)
        return
    assert parse(text)(NAMES) == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("ceil_div(7, 2)", 4),
        ("ceil_div(-7, 2)", -3),
        ("ceil_div(8, 2)", 4),
        ("min(3, 1, 2)", 1),
        ("max(a, b)", 7),
        ("2**10", 1024),
        ("1 < b < 5", True),
        ("a if b > 5 else c", -2),
        ("not a", False),
        ("7 / 2", 3.5),
        (5, 5),
    ],
)
def test_values(text: str | int, value: object) -> None:
    assert parse(text)(NAMES) == value


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('x')",
        "a.__class__",
        "[a for a in (1,)]",
        "lambda: 1",
        "'text'",
        "a[0]",
        "f'{a}'",
        "open(1)",
        "min(1)",
        "ceil_div(1, 2, 3)",
        "max(*a, 1)",
        "(a := 1)",
        "a is b",
        "a; b",
        "",
        "1 +",
        "x" * 2000,
        "(" * 500 + ")" * 500,
        "None",
        "a @ b",
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        Expression(text)


@pytest.mark.parametrize("text", ["9**9**9", "a ** 65", "1 // 0", "unknown + 1", "1.0e308 * 10.0 ** 60 // 1"])
def test_refused_when_evaluated(text: str) -> None:
    with pytest.raises(ExpressionError):
        parse(text)(NAMES)
