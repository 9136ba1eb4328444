"""A factorial experiment: edges, main effects and interactions with intervals.

Every contrast is formed inside a round, reduced to a median a process, and given Student's t interval over
processes, exactly as a single comparison is: the cells of a process share its placement and clocks, so a
regression over pooled rounds would claim far more than was measured.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kernelab.statistics.estimate import Estimate, Rounds, estimate
from kernelab.statistics.holm import holm
from kernelab.statistics.policy import VerdictPolicy

Cell = tuple[str, ...]
"""One level a variable, in the order of the variables."""


@dataclass(frozen=True)
class Effect:
    """One contrast of the grid, as a ratio of times.

    variables   the variables that it moves
    levels      the level of each of them that is set against that variable's base level
    estimate    one variable: time at the level over time at the base level, averaged (in the log) over all
                levels of the other variables. Two: the ratio of the first one's effect at the second's level
                to its effect at the second's base level (1: the two effects multiply, 0.99: together they
                gain 1% more than each alone promises). Three and more: the ratio of such ratios
    p_value     of the ratio being 1, after Holm's correction over all effects of the grid
    """

    variables: tuple[str, ...]
    levels: tuple[str, ...]
    estimate: Estimate
    p_value: float


@dataclass(frozen=True)
class Edge:
    """Two neighbouring cells: exactly one variable differs. An ordinary comparison, base against arm."""

    variable: str
    base: Cell
    arm: Cell
    rounds: tuple[NDArray[np.float64], ...]
    """Log ratios arm / base, one array a process: what `verdict.judge` takes as `time`."""


@dataclass(frozen=True)
class Grid:
    """A full factorial, measured.

    variables   names, at least two
    levels      per variable its levels, the base level first, at least two
    cells       per cell, per process, per round: log time, or log ratio to any one reference of that round.
                All cells of a process must hold the same rounds

    Raises ValueError for a grid that is no factorial, a missing or unknown cell, or rounds that do not match.
    """

    variables: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]
    cells: Mapping[Cell, Rounds]

    def __post_init__(self) -> None:
        if len(self.variables) < 2 or len(self.variables) != len(self.levels):
            raise ValueError("a factorial needs at least two variables, and the levels of each")
        if len(set(self.variables)) != len(self.variables):
            raise ValueError("a factorial names a variable twice")
        for variable, levels in zip(self.variables, self.levels, strict=True):
            if len(levels) < 2 or len(set(levels)) != len(levels):
                raise ValueError(f"factorial variable {variable} needs at least two different levels")
        wanted = set(itertools.product(*self.levels))
        for complaint, cells in (
            ("is missing", wanted - set(self.cells)),
            ("is not of the grid", set(self.cells) - wanted),
        ):
            if cells:
                raise ValueError(f"factorial cell {', '.join(min(cells))} {complaint}")
        shapes = {cell: tuple(np.size(values) for values in rounds) for cell, rounds in self.cells.items()}
        first = next(iter(shapes))
        for cell, shape in shapes.items():
            if shape != shapes[first]:
                raise ValueError(
                    f"factorial cells {', '.join(first)} and {', '.join(cell)} hold different rounds"
                )

    def edges(self) -> list[Edge]:
        """Every pair of cells that differ in one variable, one of them at that variable's base level."""
        found = []
        for axis, (variable, levels) in enumerate(zip(self.variables, self.levels, strict=True)):
            for base in itertools.product(*self.levels):
                if base[axis] != levels[0]:
                    continue
                for level in levels[1:]:
                    arm = (*base[:axis], level, *base[axis + 1 :])
                    found.append(Edge(variable, base, arm, self._contrast({arm: 1.0, base: -1.0})))
        return found

    def effects(self, policy: VerdictPolicy) -> list[Effect]:
        """Main effects first, then interactions by rising order. Raises ValueError as `estimate.estimate`."""
        found = []
        axes = range(len(self.variables))
        for order in range(1, len(self.variables) + 1):
            for chosen in itertools.combinations(axes, order):
                for levels in itertools.product(*(self.levels[axis][1:] for axis in chosen)):
                    names = tuple(self.variables[axis] for axis in chosen)
                    what = "effect of " + " x ".join(
                        f"{n}={level}" for n, level in zip(names, levels, strict=True)
                    )
                    rounds = self._contrast(self._weights(chosen, levels))
                    found.append(Effect(names, levels, estimate(rounds, policy, what), 1.0))
        adjusted = holm([effect.estimate.p_different() for effect in found])
        return [replace(effect, p_value=p) for effect, p in zip(found, adjusted, strict=True)]

    def _weights(self, chosen: Sequence[int], levels: Sequence[str]) -> dict[Cell, float]:
        """+1 at the level, -1 at the base level, multiplied over the chosen axes; a mean over the others."""
        factors: list[dict[str, float]] = [
            {level: 1.0 / len(of_axis) for level in of_axis} for of_axis in self.levels
        ]
        for axis, level in zip(chosen, levels, strict=True):
            factors[axis] = {level: 1.0, self.levels[axis][0]: -1.0}
        return {
            tuple(level for level, _ in corner): float(np.prod([weight for _, weight in corner]))
            for corner in itertools.product(*(factor.items() for factor in factors))
        }

    def _contrast(self, weights: Mapping[Cell, float]) -> tuple[NDArray[np.float64], ...]:
        return tuple(
            np.sum(
                [
                    weight * np.asarray(self.cells[cell][process], dtype=np.float64)
                    for cell, weight in weights.items()
                ],
                axis=0,
            )
            for process in range(len(next(iter(self.cells.values()))))
        )
