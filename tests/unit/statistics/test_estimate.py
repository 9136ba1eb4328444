from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from kernelab.statistics.estimate import (
    difference,
    estimate,
    estimate_medians,
    extension,
    from_moments,
    process_medians,
)
from kernelab.statistics.policy import QUICK, VerdictPolicy

POLICY = VerdictPolicy()

value = st.integers(-2000, 2000).map(
    lambda number: number / 1e4
)  # finer than any clock, coarser than rounding
process = st.lists(value, min_size=1, max_size=7)
session = st.lists(process, min_size=2, max_size=12)


def test_interval_is_students_over_process_medians():
    rounds = [[0.010, 0.012, 0.5], [0.014], [0.011, 0.013], [0.009, 0.009], [0.015], [0.010]]
    medians = [0.012, 0.014, 0.012, 0.009, 0.015, 0.010]
    found = estimate(rounds, POLICY)
    for level, low, high in ((0.95, found.low, found.high), (0.90, found.low90, found.high90)):
        want = stats.t.interval(level, 5, np.mean(medians), stats.sem(medians))
        assert (math.log(low), math.log(high)) == pytest.approx(want, abs=1e-12)
    assert found.ratio == pytest.approx(math.exp(np.mean(medians)))
    assert found.half_width == pytest.approx(math.log(found.high / found.low) / 2)
    assert (found.processes, found.rounds, found.degrees) == (6, 10, 5)
    assert found.p_different() == pytest.approx(stats.ttest_1samp(medians, 0.0).pvalue)


def test_p_outside_is_the_larger_of_two_one_sided_tests():
    medians = [0.002, -0.001, 0.004, 0.001, 0.003, 0.000]
    found = estimate_medians(medians, POLICY, rounds=6)
    margin = POLICY.log_margin
    above = stats.ttest_1samp(medians, margin, alternative="less").pvalue
    below = stats.ttest_1samp(medians, -margin, alternative="greater").pvalue
    assert found.p_outside(margin) == pytest.approx(max(above, below))


@given(session)
def test_p_values_and_intervals_say_the_same(rounds):
    found = estimate(rounds, POLICY)
    if abs(found.p_different() - POLICY.alpha) > 1e-9:
        assert (found.p_different() < POLICY.alpha) == (not found.low <= 1.0 <= found.high)
    if abs(found.p_outside(POLICY.log_margin) - POLICY.alpha) > 1e-9:
        inside = -POLICY.log_margin < math.log(found.low90) and math.log(found.high90) < POLICY.log_margin
        assert (found.p_outside(POLICY.log_margin) < POLICY.alpha) == inside


@given(session)
def test_swapping_the_arms_takes_the_reciprocal(rounds):
    there = estimate(rounds, POLICY)
    back = estimate([[-x for x in values] for values in rounds], POLICY)
    assert back.log_mean == -there.log_mean
    assert back.half_width == there.half_width
    assert back.low == pytest.approx(1.0 / there.high)
    assert back.high90 == pytest.approx(1.0 / there.low90)


@given(st.data())
def test_order_of_rounds_and_of_processes_of_a_stage_does_not_matter(data):
    rounds = data.draw(st.lists(process, min_size=12, max_size=12))
    shuffled = [data.draw(st.permutations(values)) for values in rounds]
    stages = [data.draw(st.permutations(shuffled[:6])), data.draw(st.permutations(shuffled[6:]))]
    assert estimate(stages[0] + stages[1], POLICY) == estimate(rounds, POLICY)
    assert estimate(stages[0], POLICY) == estimate(rounds[:6], POLICY)


@given(session, st.floats(-0.1, 0.1))
def test_shift_moves_the_ratio_and_leaves_the_width(rounds, shift):
    before = estimate(rounds, POLICY)
    after = estimate([[x + shift for x in values] for values in rounds], POLICY)
    assert after.log_mean == pytest.approx(before.log_mean + shift, abs=1e-12)
    assert after.half_width == pytest.approx(before.half_width, abs=1e-9)


def test_after_an_extension_the_first_stage_alone_sets_the_width():
    first = [0.01, 0.02, 0.00, 0.03, 0.01, 0.02]
    near, far = [0.015] * 6, [0.10, -0.07, 0.05, -0.02, 0.04, -0.01]
    before = estimate_medians(first, POLICY, rounds=6)
    for later in (near, far):
        after = estimate_medians(first + later, POLICY, rounds=12)
        assert after.degrees == 5
        assert after.half_width == pytest.approx(before.half_width / math.sqrt(2.0))
        assert after.log_mean == pytest.approx(np.mean(first + later))


def test_equal_processes_have_a_width_of_zero_and_certain_p_values():
    same = estimate_medians([0.004] * 6, POLICY, rounds=6)
    assert (same.half_width, same.p_different(), same.p_outside(POLICY.log_margin)) == (0.0, 0.0, 0.0)
    assert estimate_medians([0.0] * 6, POLICY, rounds=6).p_different() == 1.0
    assert estimate_medians([0.02] * 6, POLICY, rounds=6).p_outside(POLICY.log_margin) == 1.0


@pytest.mark.parametrize(
    ("rounds", "says"),
    [
        ([], "no process"),
        ([[0.1], []], "process 2 must hold one value a round"),
        ([[0.1], [math.nan]], "process 2 holds a value that is not a finite log ratio"),
        ([[math.inf], [0.1]], "process 1 holds"),
        ([[0.1], [2.6e6]], "process 2 holds"),
        ([[0.1]], "1 process gives no interval"),
        ([[[0.1]], [[0.1]]], "process 1 must hold one value a round"),
    ],
)
def test_what_is_no_measurement_is_one_clear_error(rounds, says):
    with pytest.raises(ValueError, match=says) as caught:
        estimate(rounds, POLICY, "arm b, time")
    assert str(caught.value).startswith("arm b, time: ")
    assert "\n" not in str(caught.value)


def test_medians_ignore_a_few_wild_rounds():
    medians, total = process_medians([[0.01] * 9 + [3.0]] * 2)
    assert (medians, total) == ([0.01, 0.01], 20)


def test_difference_is_welchs():
    rng = np.random.default_rng(3)
    one, two = rng.normal(0.01, 0.001, 6), rng.normal(0.03, 0.004, 5)
    gap = difference(*(estimate_medians(list(x), VerdictPolicy(processes=6), rounds=6) for x in (one, two)))
    want = stats.ttest_ind(two, one, equal_var=False)
    assert gap.p_different() == pytest.approx(want.pvalue)
    interval = want.confidence_interval(0.95)
    assert (math.log(gap.low), math.log(gap.high)) == pytest.approx((interval.low, interval.high))


def test_difference_of_exact_ratios_and_of_very_quiet_ones():
    exact = from_moments(0.0, 0.0, math.inf, alpha=0.05, processes=0, rounds=0)
    quiet = from_moments(0.01, 1e-200, 5, alpha=0.05, processes=6, rounds=6)
    assert difference(exact, exact).half_width == 0.0
    assert difference(exact, quiet).log_mean == 0.01
    measured = estimate_medians([0.01, 0.012, 0.011], POLICY, rounds=3)
    assert difference(exact, measured).half_width == pytest.approx(measured.half_width)
    other = from_moments(0.0, 0.1, 5, alpha=0.01, processes=6, rounds=6)
    with pytest.raises(ValueError, match="alpha"):
        difference(exact, other)


WIDE = [0.02, -0.02, 0.01, -0.01, 0.015, -0.015]
TIGHT = [x / 100 for x in WIDE]


def test_extension_is_due_for_a_wide_interval_and_only_once():
    wide, tight = (estimate_medians(x, POLICY, rounds=6) for x in (WIDE, TIGHT))
    assert extension([tight, wide], POLICY).needed
    assert not extension([tight, tight], POLICY).needed
    assert not extension([estimate_medians(WIDE * 2, POLICY, rounds=12)], POLICY).needed
    assert not extension([estimate_medians(WIDE[:5], POLICY, rounds=5)], POLICY).needed
    assert not extension([estimate_medians(WIDE[:3], QUICK, rounds=3)], QUICK).needed
    with pytest.raises(ValueError, match="without estimates"):
        extension([], POLICY)


@given(st.lists(st.lists(value, min_size=6, max_size=6), min_size=1, max_size=4), st.floats(-0.1, 0.1))
def test_extension_never_looks_at_the_ratio(arms, shift):
    def needed(by: float) -> bool:
        arms_moved = [[x + by for x in medians] for medians in arms]
        return extension([estimate_medians(x, POLICY, rounds=6) for x in arms_moved], POLICY).needed

    widths = [estimate_medians(x, POLICY, rounds=6).half_width for x in arms]
    if min(abs(width - POLICY.extend_above) for width in widths) > 1e-9:
        assert needed(shift) == needed(0.0)


@settings(max_examples=5)
@given(st.sampled_from([0.001, 0.004, 0.006]))
def test_the_interval_covers_the_truth_through_the_extension(spread):
    rng = np.random.default_rng(11)
    trials, covered = 2000, 0
    for medians in rng.normal(0.01, spread, (trials, 12)).tolist():
        found = estimate_medians(medians[:6], POLICY, rounds=6)
        if extension([found], POLICY).needed:
            found = estimate_medians(medians, POLICY, rounds=12)
        covered += math.log(found.low) <= 0.01 <= math.log(found.high)
    # 95%, and five standard errors of the simulation
    assert abs(covered / trials - 0.95) < 5 * math.sqrt(0.95 * 0.05 / trials)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"alpha": 0.0}, "alpha"),
        ({"alpha": math.nan}, "alpha"),
        ({"margin": -0.01}, "margin"),
        ({"smallest_effect": math.inf}, "smallest_effect"),
        ({"throttled_share": 1.0}, "throttled_share"),
        ({"processes": 1}, "processes"),
        ({"extended_processes": 5}, "extended_processes"),
    ],
)
def test_a_policy_out_of_range_is_refused(change, says):
    with pytest.raises(ValueError, match=f"policy {says}"):
        VerdictPolicy(**change)
