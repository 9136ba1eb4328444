"""A small, safe evaluator for the expressions of the catalogue (grids, constraints, FLOPs).

The text is parsed by Python's own parser, then only a short list of node types is accepted: numbers, names,
arithmetic, comparisons, and/or/not, `a if c else b`, and calls of ceil_div, min and max. Nothing is ever
passed to `eval`.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache

Number = int | float | bool
Evaluate = Callable[[Mapping[str, Number]], Number]

MAX_TEXT = 1000
MAX_EXPONENT = 64

_BINARY: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_UNARY: dict[type[ast.unaryop], Callable[[Number], Number]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Number, Number], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def _ceil_div(a: Number, b: Number) -> Number:
    return -(-a // b)


_FUNCTIONS: dict[str, tuple[int, int, Callable[..., Number]]] = {
    "ceil_div": (2, 2, _ceil_div),
    "min": (2, 16, min),
    "max": (2, 16, max),
}


class ExpressionError(ValueError):
    """The text is not an expression of this language, or it cannot be evaluated (division by zero, unknown name)."""


class Expression:
    """A parsed expression.

    Args:
        text: the source; a plain number is accepted too.

    Raises:
        ExpressionError: the text does not parse, or uses anything outside the language.
    """

    __slots__ = ("_evaluate", "names", "text")

    def __init__(self, text: str | Number) -> None:
        self.text = str(text)
        if len(self.text) > MAX_TEXT:
            raise ExpressionError(f"expression longer than {MAX_TEXT} characters")
        try:
            node = ast.parse(self.text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ExpressionError(f"'{self.text}' is not an expression") from error
        names: set[str] = set()
        _validate(node, self.text, names)
        self.names = frozenset(names)
        self._evaluate = _compiled(node)

    def __call__(self, values: Mapping[str, Number]) -> Number:
        """The value, with names taken from `values`.

        Raises:
            ExpressionError: a name is unknown, a division by zero, or a number out of range.
        """
        try:
            value = self._evaluate(values)
            if not math.isfinite(value):
                raise OverflowError("the result is not a finite number")
            return value
        except KeyError as error:
            known = ", ".join(sorted(values)) or "none"
            raise ExpressionError(
                f"'{self.text}' uses the unknown name {error.args[0]} (known: {known})"
            ) from None
        except (ZeroDivisionError, OverflowError, ValueError, TypeError) as error:
            raise ExpressionError(f"'{self.text}' cannot be evaluated: {error}") from None


@lru_cache(maxsize=4096)
def parse(text: str | Number) -> Expression:
    """The expression for a text, parsed once per process."""
    return Expression(text)


def _validate(node: ast.expr, text: str, names: set[str]) -> None:
    match node:
        case ast.Constant(value=value) if isinstance(value, int | float):
            return
        case ast.Name(id=name):
            names.add(name)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY or isinstance(op, ast.Pow):
            _validate(left, text, names)
            _validate(right, text, names)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() | ast.Not(), operand=operand):
            _validate(operand, text, names)
        case ast.BoolOp(values=values):
            for part in values:
                _validate(part, text, names)
        case ast.Compare(left=left, ops=ops, comparators=comparators) if all(
            type(op) in _COMPARE for op in ops
        ):
            for part in (left, *comparators):
                _validate(part, text, names)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            for part in (test, body, orelse):
                _validate(part, text, names)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            low, high, _ = _FUNCTIONS[name]
            if not low <= len(args) <= high:
                raise ExpressionError(f"'{text}': {name} takes {low} to {high} arguments")
            for arg in args:
                _validate(arg, text, names)
        case _:
            raise ExpressionError(
                f"'{text}' uses {type(node).__name__}, which expressions do not allow "
                "(allowed: numbers, names, + - * / // % **, comparisons, and/or/not, if-else, ceil_div, min, max)"
            )


def _compiled(node: ast.expr) -> Evaluate:
    """A function of the values, made once: walking the tree anew for each point of a space would take most of its time."""
    match node:
        case ast.Constant(value=value):
            return lambda values: value  # type: ignore[return-value]
        case ast.Name(id=name):
            return operator.itemgetter(name)
        case ast.BinOp(left=left, op=op, right=right):
            binary = _power if isinstance(op, ast.Pow) else _BINARY[type(op)]
            first, second = _compiled(left), _compiled(right)
            return lambda values: binary(first(values), second(values))
        case ast.UnaryOp(op=op, operand=operand):
            unary, inner = _UNARY[type(op)], _compiled(operand)
            return lambda values: unary(inner(values))
        case ast.BoolOp(op=op, values=parts):
            decide = all if isinstance(op, ast.And) else any
            compiled = tuple(_compiled(part) for part in parts)
            return lambda values: decide(part(values) for part in compiled)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            compare, first, second = _COMPARE[type(op)], _compiled(left), _compiled(right)
            return lambda values: compare(first(values), second(values))
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            return _chain(
                _compiled(left),
                [(_COMPARE[type(op)], _compiled(right)) for op, right in zip(ops, comparators, strict=True)],
            )
        case ast.IfExp(test=test, body=body, orelse=orelse):
            decider, first, second = _compiled(test), _compiled(body), _compiled(orelse)
            return lambda values: first(values) if decider(values) else second(values)
        case ast.Call(func=ast.Name(id=name), args=args):
            function, compiled = _FUNCTIONS[name][2], tuple(_compiled(arg) for arg in args)
            return lambda values: function(*(arg(values) for arg in compiled))
    raise ExpressionError(f"unexpected {type(node).__name__}")


def _power(base: Number, exponent: Number) -> Number:
    if abs(exponent) > MAX_EXPONENT:
        raise OverflowError(f"exponent above {MAX_EXPONENT}")
    power: Number = base**exponent
    return power


def _chain(first: Evaluate, links: list[tuple[Callable[[Number, Number], bool], Evaluate]]) -> Evaluate:
    """a < b <= c: every part is evaluated once, and none behind the first link that fails."""

    def evaluate(values: Mapping[str, Number]) -> Number:
        current = first(values)
        for compare, right in links:
            following = right(values)
            if not compare(current, following):
                return False
            current = following
        return True

    return evaluate
