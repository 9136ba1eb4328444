"""Which points of a space are tried, in batches: all of them, a random sample, or what Optuna's TPE asks for."""

from __future__ import annotations

import logging
import random
import warnings
from collections.abc import Mapping
from typing import Any, Protocol

from kernelab.errors import UserError
from kernelab.plan.arms import Configuration, PlannedSearch
from kernelab.plan.space import Space

DRAWS = 50
"""Points that are looked at, at most, for each configuration that is wanted: most of a space may be excluded."""

TPE_BATCH = 16
PENALTY = 2.0
"""What TPE is told of a point that is excluded or fails, as a log ratio: seven times as slow as the base."""


class Sampler(Protocol):
    """Batches of configurations. `total`: how many there will be at most, excluded ones apart."""

    total: int

    def ask(self) -> list[Configuration]:
        """The next batch; empty when there is nothing more to try."""

    def tell(self, ratios: Mapping[str, float | None]) -> None:
        """What came of the batch: log ratio to the base by name, None for one that failed."""


def make_sampler(planned: PlannedSearch, space: Space) -> Sampler:
    """The sampler that the search asks for.

    Raises:
        UserError: sampler: tpe, and Optuna is not installed.
    """
    if planned.sampler == "all":
        return _Once(list(space.points()))
    if planned.sampler == "random":
        return _Once(_drawn(planned, space))
    return _Tpe(planned, space)


class _Once:
    def __init__(self, points: list[Configuration]) -> None:
        self._points = points
        self.total = sum(not point.excluded for point in points)

    def ask(self) -> list[Configuration]:
        points, self._points = self._points, []
        return points

    def tell(self, ratios: Mapping[str, float | None]) -> None:
        """Nothing depends on it."""


def _drawn(planned: PlannedSearch, space: Space) -> list[Configuration]:
    """Points in a random order until there are enough valid ones, each build once."""
    indices = random.Random(planned.seed).sample(
        range(space.size), min(space.size, DRAWS * planned.configurations)
    )
    points: dict[str, Configuration] = {}
    valid = 0
    for index in indices:
        if valid >= planned.configurations:
            break
        point = space.nth(index)
        if point.name not in points:
            points[point.name] = point
            valid += not point.excluded
    return list(points.values())


class _Tpe:
    def __init__(self, planned: PlannedSearch, space: Space) -> None:
        try:
            import optuna
        except ImportError as error:
            raise UserError(
                f"search.{planned.name}.sampler: tpe needs Optuna ({error}); "
                "install the extra search of kernelab, or use sampler: random"
            ) from None
        logging.getLogger("optuna").setLevel(logging.ERROR)
        self._space = space
        self.total = min(planned.configurations, space.size)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # multivariate is said to be experimental
            sampler = optuna.samplers.TPESampler(
                seed=planned.seed,
                multivariate=True,
                constant_liar=True,  # the points of a batch keep apart
                n_startup_trials=max(TPE_BATCH, planned.configurations // 8),
            )
            self._study = optuna.create_study(direction="minimize", sampler=sampler)
        self._levels: dict[str, Any] = {
            key: optuna.distributions.CategoricalDistribution(levels) for key, levels in planned.over.items()
        }
        self._left = self.total
        self._asked: list[tuple[Any, str]] = []
        self._told: dict[str, float] = {}

    def ask(self) -> list[Configuration]:
        batch: dict[str, Configuration] = {}
        valid, wanted = 0, min(TPE_BATCH, self._left)
        for _ in range(DRAWS * wanted):
            if valid >= wanted:
                break
            trial = self._study.ask(self._levels)
            point = self._space.point(dict(trial.params))
            if point.excluded or point.name in self._told:
                self._study.tell(trial, self._told.get(point.name, PENALTY))
            else:
                self._asked.append((trial, point.name))
            if point.name not in self._told and point.name not in batch:
                batch[point.name] = point
                valid += not point.excluded
                if point.excluded:
                    self._told[point.name] = PENALTY
        self._left -= valid
        return list(batch.values())

    def tell(self, ratios: Mapping[str, float | None]) -> None:
        for trial, name in self._asked:
            ratio = ratios.get(name)
            self._told[name] = PENALTY if ratio is None else ratio
            self._study.tell(trial, self._told[name])
        self._asked = []
