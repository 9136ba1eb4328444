"""Who stays in the race, in simulated races whose truth is known."""

from __future__ import annotations

import itertools
import math
import random
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelab.search.racing import (
    FINAL_ROUNDS,
    MOST_ROUNDS,
    SCREEN_ROUNDS,
    Race,
    Standing,
    bounds,
    noise,
    ranking,
    rounds_that_fit,
    survivors,
)


def measured(truth: dict[str, float], rounds: int, sigma: float, rng: random.Random) -> dict[str, Standing]:
    return {
        name: Standing(tuple(rng.gauss(mean, sigma) for _ in range(rounds)), math.exp(mean))
        for name, mean in truth.items()
    }


def run(
    truth: dict[str, float], goal: int, sigma: float, seed: int
) -> tuple[Race, list[int], dict[str, int]]:
    """A whole race: it, how many took part in each stage, and the rounds that each took part in."""
    rng = random.Random(seed)
    race = Race(measured(truth, SCREEN_ROUNDS, sigma, rng), goal)
    fields, spent = [len(truth)], dict.fromkeys(truth, SCREEN_ROUNDS)
    while (stage := race.next()) is not None:
        fields.append(len(stage.names))
        for name in stage.names:
            spent[name] += stage.rounds
        race.tell(stage, measured({name: truth[name] for name in stage.names}, stage.rounds, sigma, rng))
    return race, fields, spent


SPACES = st.lists(st.floats(-0.3, 1.5), min_size=1, max_size=80).map(
    lambda values: {f"c{i}": value for i, value in enumerate(values)}
)


@settings(max_examples=60)
@given(SPACES, st.integers(1, 5), st.floats(1e-4, 0.02), st.integers(0, 10**6))
def test_the_best_is_lost_by_no_more_than_the_noise(
    truth: dict[str, float], goal: int, sigma: float, seed: int
) -> None:
    race, fields, _ = run(truth, goal, sigma, seed)
    finalists = [name for name, placed in race.placed.items() if placed.fate == "finalist"]
    assert len(finalists) == min(len(truth), max(2, goal))
    # Whoever takes the best's place beat it in a stage of two rounds or more: by noise, a few sigma.
    regret = min(truth[name] for name in finalists) - min(truth.values())
    assert regret <= 6 * sigma
    # Stages at least halve, down to the finalists.
    for before, after in itertools.pairwise(fields):
        assert after <= max(max(2, goal), before // 2)
    assert set(race.placed) == set(truth)


def test_a_clear_best_is_never_lost() -> None:
    for seed in range(60):
        truth = {f"c{i}": 0.05 for i in range(60)} | {"best": 0.0}
        race, _, _ = run(truth, 3, 0.004, seed)
        assert race.placed["best"].fate == "finalist"
        assert ranking(race.placed)[0] == "best"


def test_clearly_slower_ones_leave_after_the_screening_and_close_ones_get_more_rounds() -> None:
    truth = {f"close{i}": 0.0005 * i for i in range(8)} | {f"far{i}": 0.2 + 0.01 * i for i in range(100)}
    race, fields, spent = run(truth, 3, 0.002, seed=1)
    assert all(spent[name] == SCREEN_ROUNDS for name in truth if name.startswith("far"))
    assert fields[1] <= 8
    assert min(spent[name] for name, p in race.placed.items() if p.fate == "finalist") >= FINAL_ROUNDS
    assert {race.placed[f"far{i}"].stage for i in range(100)} == {0}
    order = ranking(race.placed)
    assert all(name.startswith("close") for name in order[:8])


def test_a_disturbed_sample_does_not_throw_the_best_out() -> None:
    """A hiccup of 20% in one of its two rounds: it cannot be told from the others, so it stays."""
    rng = random.Random(3)
    truth = {f"c{i:02}": 0.01 * i for i in range(20)}
    screened = measured(truth, 2, 0.002, rng)
    first = screened["c00"].rounds
    screened["c00"] = Standing((first[0] + 0.1, first[1]), 1.0)
    assert "c00" in survivors(screened, 3)


def test_those_that_nobody_can_tell_apart_all_stay_up_to_half() -> None:
    screened = measured({f"c{i}": 0.0 for i in range(12)}, 2, 0.01, random.Random(11))
    assert len(survivors(screened, 2)) == 6


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(20, 200), st.integers(2, 9))
def test_the_common_noise_is_found_and_some_wild_ones_do_not_move_it(
    seed: int, count: int, rounds: int
) -> None:
    rng = random.Random(seed)
    standings = measured({f"c{i}": 0.1 * i for i in range(count)}, rounds, 0.003, rng)
    for name in list(standings)[: count // 10]:
        standings[name] = Standing(tuple(rng.gauss(0, 0.5) for _ in range(rounds)), 1.0)
    found, degrees = noise(standings)
    assert degrees == count * (rounds - 1)
    # A median of 20 variances of one degree each is itself uncertain.
    assert 0.003 * (1 - 4 / math.sqrt(count)) < found < 0.003 * (1 + 6 / math.sqrt(count))


def test_bounds_hold_as_often_as_they_say() -> None:
    rng = random.Random(5)
    missed = total = 0
    for _ in range(200):
        truth = {f"c{i}": rng.uniform(-1, 1) for i in range(12)}
        for name, interval in bounds(measured(truth, 4, 0.01, rng), 0.05).items():
            total += 1
            missed += not interval.low <= truth[name] <= interval.high
    assert missed / total < 0.06
    assert missed > 0


def test_bounds_of_few_are_wide() -> None:
    """Two configurations of two rounds each know little of the noise: Student's quantile says so."""
    rng = random.Random(7)
    truth = {"a": 0.0, "b": 0.1}
    missed = 0
    for _ in range(400):
        found = bounds(measured(truth, 2, 0.01, rng), 0.05)
        missed += sum(not found[name].low <= truth[name] <= found[name].high for name in truth)
    assert missed / 800 < 0.06


@given(SPACES, st.integers(1, 5), st.integers(0, 1000))
@settings(max_examples=30)
def test_equal_data_give_equal_races(truth: dict[str, float], goal: int, seed: int) -> None:
    first, fields, _ = run(truth, goal, 0.003, seed)
    shuffled = dict(reversed(truth.items()))
    assert survivors(measured(truth, 2, 0.0, random.Random(1)), goal) == survivors(
        measured(shuffled, 2, 0.0, random.Random(1)), goal
    )
    second, again, _ = run(truth, goal, 0.003, seed)
    assert (first.placed, fields) == (second.placed, again)


@given(st.integers(SCREEN_ROUNDS, MOST_ROUNDS), st.floats(1e-4, 10), st.floats(-1, 100), st.booleans())
def test_a_stage_keeps_the_budget(wanted: int, cost: float, left: float, last: bool) -> None:
    rounds = rounds_that_fit(wanted, cost, left, last=last)
    assert 0 <= rounds <= wanted
    assert rounds * cost <= max(left, 0) + 1e-9
    assert rounds != 1
    if left >= 2 * wanted * cost:
        assert rounds == wanted
    if left > 0 and left >= SCREEN_ROUNDS * cost:
        assert rounds >= SCREEN_ROUNDS


def test_a_race_without_budget_says_who_is_undecided() -> None:
    rng = random.Random(1)
    race = Race(measured({f"c{i}": 0.001 * i for i in range(20)}, 2, 0.003, rng), 3)
    stage = race.next()
    assert stage is not None
    race.stop(stage)
    assert race.next() is None
    assert {name for name, placed in race.placed.items() if placed.fate == "raced"} == set(stage.names)
    assert ranking(race.placed)[: len(stage.names)] == list(stage.names)


def test_who_fails_in_a_stage_is_placed_no_more() -> None:
    rng = random.Random(1)
    race = Race(measured({f"c{i}": 0.001 * i for i in range(5)}, 2, 0.0001, rng), 2)
    stage = race.next()
    assert stage is not None
    gone, *left = stage.names
    race.tell(stage, measured(dict.fromkeys(left, 0.0), stage.rounds, 0.001, rng))
    assert gone not in race.placed
    assert all(name in race.placed for name in left)


def test_nothing_and_one_are_races_too() -> None:
    assert Race({}, 3).next() is None
    race, fields, _ = run({"only": 0.1}, 3, 0.001, 0)
    assert fields == [1, 1]
    assert race.placed["only"].fate == "finalist"
    assert race.placed["only"].bounds.centre == pytest.approx(0.1, abs=0.01)
    assert statistics.mean(race.placed["only"].standing.rounds) == pytest.approx(0.1, abs=0.01)
