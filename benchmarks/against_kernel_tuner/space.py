"""A search of config.yaml in kernel_tuner's words: parameters, restrictions, block, grid, arguments. Pure."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from kernelab.errors import UserError
from kernelab.operation.launches import plan_launches
from kernelab.plan.arms import Plan
from kernelab.plan.catalogue import Kernel
from kernelab.plan.space import Space

BLOCK = "block_size_x"  # kernel_tuner's own name: a parameter that a restriction fixes


@dataclass(frozen=True)
class TunedKernel:
    """What `kernel_tuner.tune_kernel` is given.

    source        below the operation's folder
    entry         the one `__global__` that every configuration launches
    parameters    name -> values; the last is BLOCK
    restrictions  Python expressions of the parameters, as kernel_tuner takes them
    options       of the compiler: what is fixed, as -D
    problem_size, divisors   the grid is ceil(size / divisor) in each dimension; divisors are expressions
    """

    source: str
    entry: str
    parameters: dict[str, list[int]]
    restrictions: list[str]
    options: list[str]
    problem_size: tuple[int, ...]
    divisors: tuple[str, ...]

    def levels(self, values: Mapping[str, int]) -> dict[str, str]:
        """The levels, as a search writes them, of a configuration of kernel_tuner's."""
        return {name: str(values[name]) for name in self.parameters if name != BLOCK}


def tuned_kernel(plan: Plan, name: str) -> TunedKernel:
    """A search in kernel_tuner's words.

    Raises:
        UserError: there is no such search, or kernel_tuner cannot run it: several launches, dynamic shared memory
            (its CuPy backend never raises the limit), composites, or a block or grid of another form.
    """
    space = Space.of(plan, name)
    planned = space.planned
    kernel = plan.operations[planned.operation].kernels[planned.kernel]
    for key in planned.over:
        if key not in kernel.parameters:
            raise UserError(f"{name}: over.{key} is a composite; kernel_tuner varies parameters one by one")
        if any(str(kernel.parameters[key].macro_value(level)) != level for level in planned.over[key]):
            raise UserError(f"{name}: over.{key} has named levels; kernel_tuner gets the values alone")
    fixed = {
        key: kernel.parameters[key].macro_value(planned.base.settings[key])
        for key in kernel.parameters
        if key not in planned.over
    }
    entry, threads = _launch(plan, space)
    declared = next(launch for launch in kernel.launches if launch.entry == entry)
    if len(declared.block) != 1:
        raise UserError(f"{name}: blocks of {len(declared.block)} dimensions; this benchmark takes one")
    problem = plan.problems[planned.problem].values
    sizes, divisors = zip(*(_divided(str(text), problem) for text in declared.grid), strict=True)
    expand = _Expansion(kernel, fixed)
    restrictions = [expand(str(constraint.require)) for constraint in kernel.constraints]
    return TunedKernel(
        source=planned.base_build.source,
        entry=entry,
        parameters={
            **{key: [int(level) for level in levels] for key, levels in planned.over.items()},
            BLOCK: threads,
        },
        restrictions=[
            *(text for text in restrictions if _names(text)),
            f"{BLOCK} == {expand(str(declared.block[0]))}",
        ],
        options=[f"-D{key}={value}" for key, value in fixed.items()],
        problem_size=sizes,
        divisors=tuple(expand(text) for text in divisors),
    )


def _launch(plan: Plan, space: Space) -> tuple[str, list[int]]:
    """The entry that all configurations launch, and the block sizes that occur."""
    planned = space.planned
    operation = plan.operations[planned.operation]
    kernel, values = operation.kernels[planned.kernel], plan.problems[planned.problem].values
    entries, threads = set(), set()
    for point in space.points():
        if point.build is None:
            continue
        launches = plan_launches(operation.operation, kernel, point.build.levels, values)
        if len(launches) != 1 or launches[0].dynamic_shared:
            raise UserError(
                f"{planned.name}: {point.name} has {len(launches)} launches and {launches[0].dynamic_shared} bytes of "
                "dynamic shared memory; kernel_tuner's CuPy backend takes one launch and none"
            )
        entries.add(launches[0].entry)
        threads.add(launches[0].block[0])
    if len(entries) != 1:
        raise UserError(
            f"{planned.name}: its configurations launch {', '.join(sorted(entries)) or 'nothing'}; kernel_tuner takes one"
        )
    return entries.pop(), sorted(threads)


def _divided(text: str, problem: Mapping[str, int | float]) -> tuple[int, str]:
    """The size and the divisor of a grid's dimension `ceil_div(size, divisor)`."""
    match ast.parse(text, mode="eval").body:
        case ast.Call(func=ast.Name(id="ceil_div"), args=[ast.Name(id=size), divisor]) if size in problem:
            return int(problem[size]), ast.unparse(divisor)
    raise UserError(f"grid: {text} is not ceil_div(size, divisor), which is what kernel_tuner computes")


def _names(text: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(text, mode="eval")) if isinstance(node, ast.Name)}


class _Expansion(ast.NodeTransformer):
    """Puts derived names' expressions and fixed parameters' values into an expression of the catalogue."""

    def __init__(self, kernel: Kernel, fixed: Mapping[str, int]) -> None:
        self._derived = {name: str(text) for name, text in kernel.derived.items()}
        self._fixed = fixed

    def __call__(self, text: str) -> str:
        return ast.unparse(self.visit(ast.parse(text, mode="eval")))

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self._fixed:
            return ast.Constant(self._fixed[node.id])
        if node.id in self._derived:
            expanded: ast.expr = self.visit(ast.parse(self._derived[node.id], mode="eval").body)
            return expanded
        return node
