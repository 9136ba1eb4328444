"""Who stays in the race: successive halving with bounds, from log ratios to the base. Pure.

After a stage, a configuration stays as long as its optimistic bound is not worse than the pessimistic bound of the last one that
would be confirmed; and never more than half of them stay, the better half by its estimate. The rounds of a stage double. So a
configuration that is clearly slower leaves after two rounds, and those that nobody can tell apart yet get ever more of them.
What is lost when the true best leaves early is no more than what the rounds so far could not tell.

A stage is judged by its own rounds alone: those of the stage before chose who is in it, and would flatter the chosen.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from kernelab.statistics.estimate import student_quantile

SCREEN_ROUNDS = 2
FINAL_ROUNDS = 16
"""At least so many rounds order the finalists."""

MOST_ROUNDS = 64
ERROR = 0.05
"""Probability that any bound of a stage is missed (Bonferroni over its configurations)."""

CONFIDENCE = 0.95  # of the interval that is shown of each
FEWEST = 2  # finalists, where there are two: a race of one says nothing
SHARE = 0.5  # of the budget that is left goes into one stage at most, but the last
MEDIAN_EFFICIENCY = 1.2533  # standard error of a median over that of a mean, of normal values

Fate = Literal["finalist", "dropped", "raced"]


@dataclass(frozen=True)
class Standing:
    """One configuration in one stage: log(time / time of the base) of each round, and a launch's median time in ms."""

    rounds: tuple[float, ...]
    time_ms: float

    @property
    def centre(self) -> float:
        """The mean of two rounds, the median of more: one disturbed sample must not decide."""
        return statistics.median(self.rounds)

    @property
    def spread(self) -> float | None:
        """The standard deviation of a round; None of one round."""
        return statistics.stdev(self.rounds) if len(self.rounds) > 1 else None


@dataclass(frozen=True)
class Bounds:
    """A log ratio with an interval."""

    low: float
    centre: float
    high: float


@dataclass(frozen=True)
class Stage:
    """A stage to be run: 1 follows the screening. `last`: who is in it is a finalist."""

    number: int
    names: tuple[str, ...]
    rounds: int
    last: bool


@dataclass(frozen=True)
class Placed:
    """How a configuration came out. stage, standing: the last that it took part in; bounds: 95%, of that stage alone."""

    fate: Fate
    stage: int
    standing: Standing
    bounds: Bounds


def noise(standings: Mapping[str, Standing]) -> tuple[float, int]:
    """The standard deviation of a round's log ratio, common to all, and its degrees of freedom; (0, 0) where unknown.

    The median of the configurations' own variances, each scaled by the median of its distribution: a few
    disturbed ones do not move it.
    """
    scaled, degrees = [], 0
    for standing in standings.values():
        if (spread := standing.spread) is not None:
            own = len(standing.rounds) - 1
            # Wilson and Hilferty: the median of chi squared with k degrees is about k (1 - 2/(9k))^3.
            scaled.append(spread**2 / (1 - 2 / (9 * own)) ** 3)
            degrees += own
    return (math.sqrt(statistics.median(scaled)), degrees) if scaled else (0.0, 0)


def bounds(standings: Mapping[str, Standing], error: float) -> dict[str, Bounds]:
    """The interval of every log ratio; `error` is the probability that one of them misses on one side or the other.

    Its width is from the common noise, or from the configuration's own where that is larger: one that was disturbed
    is less sure than the others.
    """
    common, degrees = noise(standings)
    found = {}
    for name, standing in standings.items():
        count = len(standing.rounds)
        factor = MEDIAN_EFFICIENCY if count > 2 else 1.0
        # Half of the degrees: a median of variances knows less than their mean.
        quantile = student_quantile(max(1.0, degrees / 2), 1 - error / 2) if degrees else math.inf
        half = quantile * factor * max(common, standing.spread or 0.0) / math.sqrt(count)
        centre = standing.centre
        found[name] = Bounds(centre - half, centre, centre + half)
    return found


def survivors(standings: Mapping[str, Standing], goal: int) -> list[str]:
    """Who goes on, best first: by the bounds, and the better half at most; but `goal` of them, where there are so many."""
    order = sorted(standings, key=lambda name: (standings[name].centre, name))
    if len(order) <= goal:
        return order
    interval = bounds(standings, ERROR / len(order))
    threshold = sorted(one.high for one in interval.values())[goal - 1]
    able = [name for name in order if interval[name].low <= threshold]
    return able[: max(goal, len(order) // 2)]


def rounds_that_fit(wanted: int, cost_s: float, left_s: float, *, last: bool) -> int:
    """Rounds of a stage: as many as wanted, fewer where the budget is short, 0 where it is gone.

    Args:
        wanted: rounds.
        cost_s: wall-clock time of one round of all that take part.
        left_s: of the budget.
        last: nothing comes after it.
    """
    if left_s <= 0:
        return 0
    affordable = int(left_s * (1.0 if last else SHARE) / cost_s) if cost_s > 0 else wanted
    if affordable < SCREEN_ROUNDS and left_s >= SCREEN_ROUNDS * cost_s:
        affordable = SCREEN_ROUNDS
    return min(wanted, affordable) if affordable >= SCREEN_ROUNDS else 0


class Race:
    """The stages after the screening, one at a time.

    Args:
        screened: by name, what the screening said.
        goal: how many are to be confirmed.
    """

    def __init__(self, screened: Mapping[str, Standing], goal: int) -> None:
        self.placed: dict[str, Placed] = {}
        self._goal = max(FEWEST, goal)
        self._alive = dict(screened)
        self._stage, self._rounds = 0, SCREEN_ROUNDS
        self._over = not screened
        self._place(screened, "dropped")

    def next(self) -> Stage | None:
        """The next stage, with the rounds that it is worth; None when the race is over."""
        if self._over:
            return None
        names = survivors(self._alive, self._goal)
        last = len(names) <= self._goal
        rounds = min(MOST_ROUNDS, 2 * self._rounds)
        return Stage(self._stage + 1, tuple(names), max(rounds, FINAL_ROUNDS) if last else rounds, last)

    def tell(self, stage: Stage, standings: Mapping[str, Standing]) -> None:
        """What came of a stage; who is missing failed in it, and is placed no more."""
        for name in stage.names:
            if name not in standings:
                del self.placed[name]
        self._stage, self._rounds = stage.number, stage.rounds
        self._alive = dict(standings)
        self._place(standings, "finalist" if stage.last else "dropped")
        self._over = stage.last or not standings

    def stop(self, stage: Stage) -> None:
        """There is no budget for a stage: who would be in it stays undecided."""
        self._over = True
        for name in stage.names:
            self.placed[name] = dataclasses.replace(self.placed[name], fate="raced")

    def _place(self, standings: Mapping[str, Standing], fate: Fate) -> None:
        for name, interval in bounds(standings, 1 - CONFIDENCE).items():
            self.placed[name] = Placed(fate, self._stage, standings[name], interval)


def ranking(placed: Mapping[str, Placed]) -> list[str]:
    """Best first: finalists, then by the stage that each reached, then by the ratio in it."""
    return sorted(
        placed,
        key=lambda name: (
            placed[name].fate != "finalist",
            -placed[name].stage,
            placed[name].bounds.centre,
            name,
        ),
    )
