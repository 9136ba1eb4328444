from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelab.compare.effects import Grid
from kernelab.statistics.estimate import estimate
from kernelab.statistics.holm import holm
from kernelab.statistics.policy import VerdictPolicy

POLICY = VerdictPolicy()
SHAPE = (6, 5)


def grid(levels, log_time, noise=0.0, seed=1) -> Grid:
    """Six processes of five rounds; `log_time(cell)` plus a clock shared by the round, plus noise."""
    rng = np.random.default_rng(seed)
    clock = 0.05 * rng.standard_normal(SHAPE)
    cells = {
        cell: list(log_time(cell) + clock + noise * rng.standard_normal(SHAPE))
        for cell in itertools.product(*levels)
    }
    return Grid(tuple("ABC"[: len(levels)]), levels, cells)


TWO = (("0", "1"), ("0", "1"))


def test_two_by_two_gives_main_effects_and_the_ratio_of_ratios():
    times = {("0", "0"): 0.0, ("1", "0"): -0.02, ("0", "1"): -0.05, ("1", "1"): -0.01}
    found = {effect.variables: effect.estimate for effect in grid(TWO, times.__getitem__).effects(POLICY)}
    assert found["A",].log_mean == pytest.approx((-0.02 + 0.04) / 2)
    assert found["B",].log_mean == pytest.approx((-0.05 + 0.01) / 2)
    assert found["A", "B"].log_mean == pytest.approx(0.04 - -0.02)
    assert list(found) == [("A",), ("B",), ("A", "B")]


def test_effects_that_multiply_have_no_interaction_at_any_order():
    sizes = ({"0": 0.0, "1": -0.03, "2": 0.02}, {"0": 0.0, "1": 0.07}, {"0": 0.0, "1": -0.01})
    levels = tuple(tuple(size) for size in sizes)
    found = grid(levels, lambda cell: sum(s[x] for s, x in zip(sizes, cell, strict=True))).effects(POLICY)
    assert len(found) == 11  # 4 main, 5 of two variables, 2 of three
    for effect in found:
        names = ["ABC".index(name) for name in effect.variables]
        want = sizes[names[0]][effect.levels[0]] if len(names) == 1 else 0.0
        assert effect.estimate.log_mean == pytest.approx(want, abs=1e-12)


def test_three_way_interaction_is_the_ratio_of_such_ratios():
    found = grid((*TWO, ("0", "1")), lambda cell: 0.08 if cell == ("1", "1", "1") else 0.0).effects(POLICY)
    means = {effect.variables: effect.estimate.log_mean for effect in found}
    assert means["A", "B", "C"] == pytest.approx(0.08)
    assert means["A", "B"] == pytest.approx(0.04)
    assert means["A",] == pytest.approx(0.02)


def test_intervals_come_from_processes_not_from_pooled_rounds():
    rng = np.random.default_rng(5)
    placement = {cell: 0.01 * rng.standard_normal((6, 1)) for cell in itertools.product(*TWO)}
    cells = {cell: list(shift + np.zeros(SHAPE)) for cell, shift in placement.items()}
    effect = Grid(("A", "B"), TWO, cells).effects(POLICY)[0]
    by_process = (placement["1", "0"] + placement["1", "1"] - placement["0", "0"] - placement["0", "1"]) / 2
    assert effect.estimate.half_width == pytest.approx(estimate(list(by_process), POLICY).half_width)


def test_edges_are_all_one_variable_comparisons_against_that_variables_base_level():
    levels = (("0", "1", "2"), ("0", "1"))
    measured = grid(levels, lambda cell: 0.1 * int(cell[0]) + 0.01 * int(cell[1]))
    edges = measured.edges()
    assert len(edges) == 2 * 2 + 3
    for edge in edges:
        moved = [axis for axis in range(2) if edge.base[axis] != edge.arm[axis]]
        assert [measured.variables[axis] for axis in moved] == [edge.variable]
        assert edge.base[moved[0]] == "0"
        step = 0.1 if edge.variable == "A" else 0.01
        want = step * int(edge.arm[moved[0]])
        assert np.concatenate(edge.rounds) == pytest.approx(np.full(30, want))
        assert estimate(edge.rounds, POLICY).rounds == 30


@given(st.integers(0, 2**32 - 1), st.floats(-3.0, 3.0))
def test_any_reference_of_the_round_gives_the_same_effects(seed, shift):
    measured = grid(TWO, lambda cell: 0.01 * int(cell[0]), noise=0.002, seed=seed)
    reference = np.random.default_rng(seed).standard_normal(SHAPE) + shift
    moved = {
        cell: [values - r for values, r in zip(rounds, reference, strict=True)]
        for cell, rounds in measured.cells.items()
    }
    for one, other in zip(
        measured.effects(POLICY), Grid(("A", "B"), TWO, moved).effects(POLICY), strict=True
    ):
        assert other.estimate.log_mean == pytest.approx(one.estimate.log_mean, abs=1e-12)
        assert other.estimate.half_width == pytest.approx(one.estimate.half_width, abs=1e-12)


def test_p_values_are_corrected_over_all_effects():
    effects = grid(TWO, lambda cell: 0.001 * int(cell[0]), noise=0.002).effects(POLICY)
    assert [e.p_value for e in effects] == holm([e.estimate.p_different() for e in effects])


def test_coverage_of_an_interaction():
    covered = 0
    for seed in range(400):
        found = grid(TWO, lambda cell: 0.02 * (cell == ("1", "1")), noise=0.005, seed=seed).effects(POLICY)[2]
        covered += found.estimate.low <= np.exp(0.02) <= found.estimate.high
    assert 0.895 <= covered / 400 <= 0.995  # five standard errors below 95%


ONE = {cell: [[0.0], [0.0]] for cell in itertools.product(*TWO)}


@pytest.mark.parametrize(
    ("variables", "levels", "cells", "says"),
    [
        (("A",), (("0", "1"),), {("0",): [[0.0]], ("1",): [[0.0]]}, "at least two variables"),
        (("A", "A"), TWO, ONE, "twice"),
        (("A", "B"), (("0",), ("0", "1")), ONE, "variable A needs"),
        (("A", "B"), (("0", "0"), ("0", "1")), ONE, "variable A needs"),
        (("A", "B"), TWO, {k: v for k, v in ONE.items() if k != ("1", "0")}, "cell 1, 0 is missing"),
        (("A", "B"), TWO, ONE | {("2", "0"): [[0.0]]}, "cell 2, 0 is not of the grid"),
        (("A", "B"), TWO, ONE | {("1", "1"): [[0.0], [0.0, 0.1]]}, "different rounds"),
        (("A", "B"), TWO, ONE | {("1", "1"): [[0.0]]}, "different rounds"),
    ],
)
def test_what_is_no_factorial_is_refused(variables, levels, cells, says):
    with pytest.raises(ValueError, match=says):
        Grid(variables, levels, cells)


def test_nan_names_the_effect():
    cells = ONE | {("1", "1"): [[0.0], [np.nan]]}
    with pytest.raises(ValueError, match="effect of A=1: process 2"):
        Grid(("A", "B"), TWO, cells).effects(POLICY)
