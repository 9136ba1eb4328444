"""What a design says beyond its comparisons: the effects of a factorial, and the same question asked in two places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernelab.compare.agreement import agreement
from kernelab.compare.effects import Cell, Grid
from kernelab.compare.measured import Measured, cell_rounds
from kernelab.compare.verdict import Verdict
from kernelab.plan.arms import Comparison, Plan, PlannedExperiment
from kernelab.records.compare import FactorialEffect, Ratio, SameQuestion
from kernelab.statistics.estimate import Estimate
from kernelab.statistics.policy import VerdictPolicy

Pair = tuple[str, str]
LARGEST_DEGREES = 1e9
"""For a ratio that is known exactly (identical code): JSON has no infinity."""


def ratio_record(estimate: Estimate | None) -> Ratio | None:
    """An estimate as a record keeps it; None stays None."""
    if estimate is None:
        return None
    return Ratio(
        value=estimate.ratio,
        low=estimate.low,
        high=estimate.high,
        half_width=estimate.half_width,
        log_mean=estimate.log_mean,
        standard_error=estimate.standard_error,
        degrees=min(estimate.degrees, LARGEST_DEGREES),
    )


def factorial_cells(
    comparisons: Sequence[Comparison],
) -> list[tuple[list[str], list[list[str]], dict[Cell, str]]]:
    """The grids of a factorial: variables, the levels of each, and the arm of every cell.

    There is one grid a base kernel and problem, found by following the edges from the arm that no edge leads to.
    """
    # The plan walks the grid with its last variable fastest.
    variables = list(reversed(dict.fromkeys(c.variable for c in comparisons)))
    levels: dict[str, list[str]] = {name: [] for name in variables}
    for edge in comparisons:
        for level in (edge.base_level, edge.level):
            if level not in levels[edge.variable]:
                levels[edge.variable].append(level)
    reached = {edge.arm for edge in comparisons}
    grids = []
    for origin in dict.fromkeys(edge.base for edge in comparisons if edge.base not in reached):
        cells: dict[str, Cell] = {origin: tuple(levels[name][0] for name in variables)}
        pending = [origin]
        while pending:
            base = pending.pop()
            for edge in comparisons:
                if edge.base == base and edge.arm not in cells:
                    axis = variables.index(edge.variable)
                    cells[edge.arm] = (*cells[base][:axis], edge.level, *cells[base][axis + 1 :])
                    pending.append(edge.arm)
        grids.append(
            (variables, [levels[name] for name in variables], {cell: arm for arm, cell in cells.items()})
        )
    return grids


def factorial_effects(
    plan: Plan, experiment: PlannedExperiment, measured: Measured | None, policy: VerdictPolicy
) -> tuple[list[FactorialEffect], str]:
    """Main effects and interactions of every grid, and why there are none where there are none."""
    if experiment.design != "factorial":
        return [], ""
    if measured is None:
        return [], "nothing was timed"
    found: list[FactorialEffect] = []
    for variables, levels, cells in factorial_cells(experiment.comparisons):
        arms = list(cells.values())
        sessions = set(_sessions(experiment.comparisons, set(arms), measured))
        if len(sessions) != 1 or "" in sessions:
            return (
                [],
                "the cells of the grid were not all timed in one session; delete its timing record to time them anew",
            )
        rounds = cell_rounds(measured.samples, sessions.pop(), arms)
        if min(len(processes) for processes in rounds.values()) < 2:
            return [], "no two processes have a round in which every cell took part"
        grid = Grid(
            tuple(variables), tuple(map(tuple, levels)), {cell: rounds[arm] for cell, arm in cells.items()}
        )
        origin = plan.arms[arms[0]]
        for effect in grid.effects(policy):
            ratio = ratio_record(effect.estimate)
            assert ratio is not None
            found.append(
                FactorialEffect(
                    problem=origin.problem,
                    kernel=origin.kernel,
                    variables=list(effect.variables),
                    levels=list(effect.levels),
                    ratio=ratio,
                    p_value=effect.p_value,
                )
            )
    return found, ""


def _sessions(comparisons: Sequence[Comparison], arms: set[str], measured: Measured) -> list[str]:
    edges = [edge for edge in comparisons if edge.base in arms]
    sessions = (measured.session_of(edge.base, edge.arm) for edge in edges)
    return [session.id if session else "" for session in sessions]


def same_question(
    plan: Plan, experiment: PlannedExperiment, verdicts: Mapping[Pair, Verdict], policy: VerdictPolicy
) -> list[SameQuestion]:
    """The same change on the first base and on each other, and at the first problem and at each other."""
    asked: dict[tuple[str, str, str], list[Comparison]] = {}
    if experiment.design in ("vary", "steps", "factorial", "configurations"):
        for comparison in experiment.comparisons:
            asked.setdefault((comparison.variable, comparison.base_level, comparison.level), []).append(
                comparison
            )
    found = []
    for (variable, base_level, level), comparisons in asked.items():
        first, *others = comparisons
        for other in others:
            if experiment.design == "factorial" and not _elsewhere(plan, first, other):
                continue  # another edge of the same grid: that is what interactions are for
            one, two = (verdicts[(c.base, c.arm)] for c in (first, other))
            answer = agreement(one, two, policy)
            found.append(
                SameQuestion(
                    change=f"{variable}: {base_level} -> {level}",
                    first=first.base,
                    second=other.base,
                    answer=str(answer.answer),
                    reason=answer.reason,
                    ratio=ratio_record(answer.difference),
                    size_differs=answer.size_differs,
                )
            )
    return found


def _elsewhere(plan: Plan, first: Comparison, other: Comparison) -> bool:
    one, two = plan.arms[first.base], plan.arms[other.base]
    return (one.kernel, one.problem) != (two.kernel, two.problem)
