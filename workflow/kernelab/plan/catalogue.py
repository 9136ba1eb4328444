"""The catalogue: kernels/<operation>/kernels.yaml as typed, frozen objects.

A catalogue declares one operation (what is computed) and the kernels that implement it (how), each with its
parameters, constraints, workspaces and launches. Nothing here is executed: the Python of operation.py is
loaded by the steps that check and time, never by the plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from kernelab.errors import UserError
from kernelab.plan import strict_yaml
from kernelab.plan.expression import Expression, ExpressionError, Number, parse
from kernelab.plan.model import (
    Bool,
    ExpressionText,
    Float,
    Identifier,
    Int,
    Name,
    Scalar,
    Strict,
    level_text,
    validate,
)

CONTROL_FACTS = ("grid", "block", "threads", "min_blocks", "max_registers", "shared")
RUNG = re.compile(r"^\d\d_")
Values = dict[str, Number]


def _as_list(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


Dimensions = Annotated[
    tuple[ExpressionText, ...], BeforeValidator(_as_list), Field(min_length=1, max_length=3)
]


class Array(Strict):
    """A device array of the operation, float32, row-major (C order)."""

    shape: tuple[ExpressionText, ...] = Field(min_length=1)
    role: Literal["input", "output"]
    read_when: ExpressionText | None = None

    @model_validator(mode="after")
    def _only_outputs_are_read_sometimes(self) -> Array:
        if self.read_when is not None and self.role == "input":
            raise ValueError("read_when belongs to an output; an input is always read")
        return self


class Tolerance(Strict):
    """Correct means |out - ref| <= absolute + relative * |ref| everywhere, and a relative Frobenius error below `frobenius`."""

    absolute: Float = Field(gt=0)
    relative: Float = Field(ge=0)
    frobenius: Float = Field(gt=0)


class Operation(Strict):
    """What is computed: arguments, sizes, cost and tolerance."""

    name: Name
    title: str = Field(min_length=1)
    problem: dict[Identifier, Literal["int", "float"]] = Field(min_length=1)
    arrays: dict[Identifier, Array] = Field(min_length=1)
    arguments: tuple[Identifier, ...]
    flops: ExpressionText
    bytes: ExpressionText
    tolerance: Tolerance
    checks: dict[Name, dict[str, Scalar]] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> Operation:
        if clash := set(self.problem) & set(self.arrays):
            raise ValueError(f"{clash.pop()} is both a problem variable and an array; rename one")
        if not any(array.role == "output" for array in self.arrays.values()):
            raise ValueError("an operation needs at least one array with role: output")
        for argument in self.arguments:
            if argument not in self.problem and argument not in self.arrays:
                raise ValueError(f"the argument {argument} is neither a problem variable nor an array")
        for text in (self.flops, self.bytes, *(s for a in self.arrays.values() for s in a.shape)):
            _known_names(text, set(self.problem), "the problem")
        for check, values in self.checks.items():
            self.problem_values(values, f"checks.{check}")
        return self

    def problem_values(self, values: Mapping[str, Scalar], where: str) -> Values:
        """A problem's values, typed by the operation.

        Raises:
            ValueError: a variable is missing, unknown, of the wrong type, or not positive where it counts.
        """
        for name in values:
            if name not in self.problem:
                raise ValueError(
                    f"{where}: {name} is no variable of {self.name} (its variables: {', '.join(self.problem)})"
                )
        typed: Values = {}
        for name, kind in self.problem.items():
            if name not in values:
                raise ValueError(f"{where}: {name} is missing")
            value = values[name]
            if isinstance(value, bool | str) or (kind == "int" and not isinstance(value, int)):
                raise ValueError(
                    f"{where}: {name} must be {'an integer' if kind == 'int' else 'a number'} (found: {value!r})"
                )
            if kind == "int" and not 1 <= value < 2**31:
                raise ValueError(f"{where}: {name} must be from 1 to 2147483647 (found: {value})")
            typed[name] = int(value) if kind == "int" else float(value)
        return typed


class Parameter(Strict):
    """One thing that can be set about a kernel. Every parameter reaches the compiler as -DNAME=value."""

    type: Literal["int", "bool", "choice"]
    default: Scalar
    levels: Annotated[tuple[Scalar, ...] | dict[str, Int], Field(min_length=1)] | None = None
    about: str = Field(min_length=1)
    controls: tuple[Literal["grid", "block", "threads", "min_blocks", "max_registers", "shared"], ...] = ()

    @model_validator(mode="after")
    def _default_is_a_level(self) -> Parameter:
        if self.type == "choice" and not self.levels:
            raise ValueError("a choice needs its levels")
        if self.type == "bool" and self.levels is not None:
            raise ValueError("a bool has the levels true and false; leave levels out")
        if self.type == "choice" and not isinstance(self.levels, dict):
            raise ValueError(
                "the levels of a choice are a mapping from level to macro value, such as {none: 0, 1: 1}"
            )
        if self.type == "int" and isinstance(self.levels, dict):
            raise ValueError("the levels of an int are a list; use type: choice for named levels")
        self.macro_value(self.default)
        if self.type == "int" and self.levels is not None:
            for level in self.levels:
                self.macro_value(level)
        return self

    def level_names(self) -> tuple[str, ...]:
        """Every declared level, spelt canonically; empty where any integer is allowed."""
        if self.type == "bool":
            return ("true", "false")
        return tuple(level_text(level) for level in self.levels or ())

    def macro_value(self, level: Scalar) -> int:
        """The value of the macro at a level.

        Raises:
            ValueError: the level is not one of the declared levels.
        """
        text = level_text(level)
        if self.type == "bool":
            if text not in ("true", "false"):
                raise ValueError(f"{text} is not a level (levels: true, false)")
            return int(text == "true")
        if isinstance(self.levels, dict):
            if text not in self.levels:
                raise ValueError(f"{text} is not a level (levels: {', '.join(self.level_names())})")
            return self.levels[text]
        if not re.fullmatch(r"-?\d+", text):
            raise ValueError(f"{text} is not an integer")
        if self.levels is not None and text not in self.level_names():
            raise ValueError(f"{text} is not a level (levels: {', '.join(self.level_names())})")
        return int(text)


class Constraint(Strict):
    require: ExpressionText
    reason: str = Field(min_length=1)


class Composite(Strict):
    """Several parameters that move together, under one name."""

    about: str = Field(min_length=1)
    levels: dict[Name, dict[Identifier, Scalar]] = Field(min_length=2)

    @model_validator(mode="after")
    def _same_parameters(self) -> Composite:
        first, *others = ((name, set(settings)) for name, settings in self.levels.items())
        for name, settings in others:
            if settings != first[1]:
                odd = ", ".join(sorted(settings ^ first[1]))
                raise ValueError(f"the levels {first[0]} and {name} do not set the same parameters ({odd})")
        return self


class Workspace(Strict):
    """A device buffer that a kernel needs beside the operation's arrays, allocated once per process."""

    shape: tuple[ExpressionText, ...] = Field(min_length=1)
    dtype: Literal["float32", "uint32", "int32", "uint64"] = "float32"
    fill: Literal["none", "zero"] = "none"


class LaunchDeclaration(Strict):
    """One launch of a kernel's sequence; it takes place where `when` holds."""

    entry: Identifier
    when: ExpressionText = "1"
    grid: Dimensions
    block: Dimensions
    dynamic_shared: ExpressionText = "0"
    arguments: tuple[Identifier, ...] | None = None


class Kernel(Strict):
    """One implementation of the operation: a source with its parameters and launches, or a library function."""

    idea: str = Field(min_length=1)
    source: str | None = None
    library: Identifier | None = None
    rung: Bool | None = None
    min_arch: Int = Field(default=75, ge=75)
    arch_specific: Bool = Field(
        default=False,
        description="it uses what only min_arch has (setmaxnreg, wgmma): compiled for sm_90a where the arm is for sm_90",
    )
    parameters: dict[Identifier, Parameter] = {}
    derived: dict[Identifier, ExpressionText] = {}
    constraints: tuple[Constraint, ...] = ()
    composites: dict[Name, Composite] = {}
    workspaces: dict[Identifier, Workspace] = {}
    prepare: Identifier | None = None
    launches: tuple[LaunchDeclaration, ...] = ()

    @field_validator("source")
    @classmethod
    def _source_is_beside(cls, value: str | None) -> str | None:
        if value is not None and (not re.fullmatch(r"[A-Za-z0-9_][\w./-]*\.cu", value) or ".." in value):
            raise ValueError(f"must be a .cu file below the catalogue's folder (found: {value!r})")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Kernel:
        if (self.source is None) == (self.library is None):
            raise ValueError("a kernel has either a source or a library function")
        if self.source is not None and not self.launches:
            raise ValueError("a kernel with a source needs its launches")
        if self.library is not None and (self.launches or self.parameters or self.workspaces or self.prepare):
            raise ValueError("a library function has no launches, parameters, workspaces or prepare of ours")
        if clash := set(self.parameters) & set(self.composites):
            raise ValueError(f"{clash.pop()} is both a parameter and a composite; rename one")
        if clash := set(self.parameters) & set(self.derived):
            raise ValueError(f"{clash.pop()} is both a parameter and derived; rename one")
        known = set(self.parameters)
        for name, text in self.derived.items():
            _known_names(text, known, "the parameters", f"derived.{name}")
            known.add(name)
        for constraint in self.constraints:
            _known_names(constraint.require, known, "the parameters", "constraints")
        for name, composite in self.composites.items():
            for level, settings in composite.levels.items():
                for parameter, value in settings.items():
                    if parameter not in self.parameters:
                        raise ValueError(
                            f"composites.{name}.{level}: {parameter} is not a parameter of this kernel"
                        )
                    try:
                        self.parameters[parameter].macro_value(value)
                    except ValueError as error:
                        raise ValueError(f"composites.{name}.{level}: {parameter}: {error}") from None
        return self

    def values(self, levels: Mapping[str, str]) -> Values:
        """Every parameter's macro value and every derived value, for one full assignment of levels."""
        values: Values = {name: self.parameters[name].macro_value(level) for name, level in levels.items()}
        for name, text in self.derived.items():
            values[name] = parse(text)(values)
        return values

    def defaults(self) -> dict[str, str]:
        """The default level of every parameter, spelt canonically."""
        return dict(self._defaults)

    def differing(self, levels: Mapping[str, str]) -> dict[str, str]:
        """The levels that are not the default, in alphabetical order: what a variant is named by."""
        defaults = self._defaults
        return {name: levels[name] for name in sorted(levels) if levels[name] != defaults[name]}

    @cached_property
    def _defaults(self) -> dict[str, str]:
        return {name: level_text(parameter.default) for name, parameter in self.parameters.items()}

    def violated(self, levels: Mapping[str, str]) -> str | None:
        """The first constraint that a full assignment breaks, as text, or None."""
        return self.broken({name: self.parameters[name].macro_value(level) for name, level in levels.items()})

    def broken(self, macros: Mapping[str, int]) -> str | None:
        """As `violated`, from every parameter's macro value."""
        values: Values = dict(macros)
        derived, constraints = self._expressions
        try:
            for name, expression in derived:
                values[name] = expression(values)
            for expression, reason in constraints:
                if not expression(values):
                    return f"{expression.text}: {reason}"
        except ExpressionError as error:
            return str(error)
        return None

    @cached_property
    def _expressions(self) -> tuple[list[tuple[str, Expression]], list[tuple[Expression, str]]]:
        derived = [(name, parse(text)) for name, text in self.derived.items()]
        return derived, [(parse(c.require), c.reason) for c in self.constraints]


class Catalogue(Strict):
    """One operation and its kernels."""

    operation: Operation
    kernels: dict[Name, Kernel] = Field(min_length=1)

    @model_validator(mode="after")
    def _launches_know_their_names(self) -> Catalogue:
        problem = set(self.operation.problem)
        for name, kernel in self.kernels.items():
            known = problem | set(kernel.parameters) | set(kernel.derived)
            if clash := problem & (set(kernel.parameters) | set(kernel.derived)):
                raise ValueError(
                    f"kernels.{name}: {clash.pop()} is also a problem variable; rename the parameter"
                )
            where = f"kernels.{name}.launches"
            for launch in kernel.launches:
                for text in (launch.when, launch.dynamic_shared, *launch.grid, *launch.block):
                    _known_names(text, known, "the problem and the parameters", where)
                if kernel.prepare is None:
                    arguments = problem | set(self.operation.arrays) | set(kernel.workspaces) | {"epoch"}
                    for argument in launch.arguments or ():
                        if argument not in arguments:
                            raise ValueError(
                                f"{where}: the argument {argument} is not known (known: {', '.join(sorted(arguments))})"
                            )
            for workspace in kernel.workspaces.values():
                for text in workspace.shape:
                    _known_names(text, known, "the problem and the parameters", f"kernels.{name}.workspaces")
        return self

    def rungs(self) -> Iterator[str]:
        """The names of the kernels that belong to the ladder, in order."""
        for name in sorted(self.kernels):
            rung = self.kernels[name].rung
            if rung or (rung is None and RUNG.match(name)):
                yield name

    def library(self) -> str | None:
        """The first kernel that is a library function: the reference that every session times as well."""
        return next((name for name in sorted(self.kernels) if self.kernels[name].library), None)


def read_catalogue(path: Path, shown_as: str) -> Catalogue:
    """Read kernels/<operation>/kernels.yaml.

    Raises:
        UserError: one line for each fault.
    """
    document = strict_yaml.read(path, shown_as)
    catalogue = validate(Catalogue, document)
    for name, kernel in catalogue.kernels.items():
        if kernel.source is not None and not (path.parent / kernel.source).is_file():
            raise UserError(
                f"{document.where(('kernels', name, 'source'))}: {kernel.source} does not exist beside the catalogue"
            )
        if (broken := kernel.violated(kernel.defaults())) is not None:
            raise UserError(f"{document.where(('kernels', name))}: the defaults break a constraint: {broken}")
    return catalogue


def _known_names(text: str, known: set[str], of_what: str, where: str = "") -> None:
    for name in sorted(parse(text).names - known):
        prefix = f"{where}: " if where else ""
        raise ValueError(f"{prefix}'{text}' uses {name}, which is not a name of {of_what}")
