from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelab.compare.claims import Expect, Status, TimeClaim, change_status, level_status, time_status
from kernelab.compare.verdict import Comparison, Kind, Session, Verdict, judge
from kernelab.statistics.policy import VerdictPolicy

POLICY = VerdictPolicy()
SPREAD = (0.5, -0.5, 0.2, -0.2, 1.0, -1.0)
AA = [[0.0002 * s] for s in SPREAD]


def measured(ratio: float, spread: float = 0.0005, **facts) -> Verdict:
    time = [[math.log(ratio) + spread * s] for s in SPREAD]
    return judge([Comparison("a", "s", time, **facts)], {"s": Session(AA, None)}, POLICY)["a"]


UNTIMED = judge([Comparison("a")], {}, POLICY)["a"]
UNSTABLE = judge(
    [Comparison("a", "s", AA)], {"s": Session([[0.02 + 0.0002 * s] for s in SPREAD], None)}, POLICY
)["a"]
FOUR = TimeClaim.by_percent(Expect.FASTER, 4)
GAIN = TimeClaim(Expect.FASTER)
NONE = TimeClaim(Expect.EQUIVALENT)


@pytest.mark.parametrize(
    ("claim", "verdict", "status"),
    [
        (FOUR, measured(0.96), Status.HOLDS),
        (FOUR, measured(0.952), Status.HOLDS),  # 0.8% beyond: within the margin of the claim
        (FOUR, measured(0.94), Status.STRONGER),
        (FOUR, measured(0.985), Status.WEAKER),
        (FOUR, measured(0.993), Status.WEAKER),  # within_margin, the claimed way
        (FOUR, measured(1.007), Status.REVERSED),  # within_margin, the other way
        (FOUR, measured(1.04), Status.REVERSED),
        (FOUR, measured(1.0), Status.NO_EFFECT),
        (FOUR, measured(1.0, identical_code=True), Status.NO_EFFECT),
        (FOUR, measured(0.98, 0.03), Status.INCONCLUSIVE),
        (FOUR, measured(0.975, 0.012), Status.HOLDS),  # faster, by an interval that holds the figure
        (FOUR, measured(0.94, 0.02), Status.HOLDS),
        (FOUR, measured(0.96, confounds=("min_blocks",)), Status.REFUSED),
        (FOUR, UNTIMED, Status.NOT_MEASURED),
        (FOUR, UNSTABLE, Status.INCONCLUSIVE),
        (GAIN, measured(0.7), Status.HOLDS),
        (GAIN, measured(1.3), Status.REVERSED),
        (NONE, measured(1.0), Status.HOLDS),
        (NONE, measured(1.007), Status.HOLDS),
        (NONE, measured(1.0, identical_code=True), Status.HOLDS),
        (NONE, measured(1.05), Status.STRONGER),
        (NONE, measured(1.0, confounds=("grid",)), Status.REFUSED),
        (TimeClaim(Expect.SLOWER, 6.4), measured(5.6), Status.HOLDS),  # a tenth of the log effect
        (TimeClaim(Expect.SLOWER, 6.4), measured(5.0), Status.WEAKER),
        (TimeClaim(Expect.FASTER, 1 / 6.4), measured(1 / 8.0), Status.STRONGER),
    ],
)
def test_status_of_a_claim_of_time(claim, verdict, status):
    found = time_status(claim, verdict, POLICY)
    assert found.status is status
    assert found.reason
    assert found.measured is verdict.time


def test_the_examples_above_are_what_they_claim_to_be():
    assert UNSTABLE.kind is Kind.UNSTABLE
    assert measured(0.98, 0.03).kind is Kind.INCONCLUSIVE
    assert measured(0.975, 0.012).kind is Kind.FASTER
    assert measured(0.993).kind is measured(1.007).kind is Kind.WITHIN_MARGIN


MIRROR = {Expect.FASTER: Expect.SLOWER, Expect.SLOWER: Expect.FASTER, Expect.EQUIVALENT: Expect.EQUIVALENT}


@given(
    st.sampled_from(Expect),
    st.floats(0.001, 2.0),
    st.one_of(st.none(), st.just(1.0)),
    st.floats(-0.5, 0.5),
    st.floats(0.0001, 0.01),
)
def test_swapping_base_and_arm_swaps_the_claim(expect, size, figure, log_ratio, spread):
    sign = {Expect.FASTER: -1, Expect.SLOWER: 1, Expect.EQUIVALENT: 0}[expect]
    claim = TimeClaim(expect, figure and math.exp(sign * size))
    mirrored = TimeClaim(MIRROR[expect], figure and math.exp(-sign * size))
    one = time_status(claim, measured(math.exp(log_ratio), spread), POLICY)
    other = time_status(mirrored, measured(math.exp(-log_ratio), -spread), POLICY)
    assert one.status is other.status


@given(st.floats(0.02, 2.0), st.floats(0.02, 2.0), st.floats(0.02, 2.0))
def test_a_larger_measured_effect_never_lowers_the_status(claimed, one, other):
    rank = {Status.WEAKER: 0, Status.HOLDS: 1, Status.STRONGER: 2}
    claim = TimeClaim(Expect.SLOWER, math.exp(claimed))
    small, large = (
        rank[time_status(claim, measured(math.exp(x)), POLICY).status] for x in sorted((one, other))
    )
    assert small <= large


@pytest.mark.parametrize(
    ("expect", "by_pct", "ratio"),
    [(Expect.FASTER, 4, 0.96), (Expect.SLOWER, 4, 1.04), (Expect.FASTER, None, None)],
)
def test_percentages_are_of_time(expect, by_pct, ratio):
    assert TimeClaim.by_percent(expect, by_pct).ratio == ratio


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: TimeClaim(Expect.FASTER, 1.04), "faster contradicts its time ratio 1.04"),
        (lambda: TimeClaim(Expect.SLOWER, 1.0), "slower contradicts"),
        (lambda: TimeClaim(Expect.EQUIVALENT, 0.9), "equivalent contradicts"),
        (lambda: TimeClaim(Expect.FASTER, 0.0), "not positive"),
        (lambda: TimeClaim(Expect.FASTER, math.nan), "not positive"),
        (lambda: TimeClaim.by_percent(Expect.FASTER, -4), "positive percentage"),
        (lambda: TimeClaim.by_percent(Expect.SLOWER, 0), "positive percentage"),
        (lambda: TimeClaim.by_percent(Expect.FASTER, 100), "no time at all"),
        (lambda: TimeClaim.by_percent(Expect.EQUIVALENT, 4), "takes no percentage"),
    ],
)
def test_claims_that_contradict_themselves_are_refused(make, says):
    with pytest.raises(ValueError, match=says):
        make()


@pytest.mark.parametrize(
    ("claimed", "found", "resolution", "status"),
    [
        ((202, 227), (202, 227), 0, Status.HOLDS),
        ((202, 227), (200, 224), 0, Status.HOLDS),  # 24 of 25: within a tenth
        ((202, 227), (200, 212), 0, Status.WEAKER),
        ((202, 227), (200, 240), 0, Status.STRONGER),
        ((202, 227), (227, 202), 0, Status.REVERSED),
        ((202, 227), (128, 128), 0, Status.NO_EFFECT),
        ((0.41, 0.21), (0.41, 0.40), 0.02, Status.NO_EFFECT),
        ((5, 5), (7, 7), 0, Status.HOLDS),
        ((5, 5), (7, 8), 0, Status.STRONGER),
    ],
)
def test_status_of_a_claimed_change_of_an_outcome(claimed, found, resolution, status):
    assert change_status(claimed, found, resolution=resolution, policy=POLICY) is status


@pytest.mark.parametrize(
    ("claimed", "found", "resolution", "status"),
    [
        (0, 0, 0, Status.HOLDS),
        (0, 3, 0, Status.STRONGER),
        (41.7, 41.66, 0.1, Status.HOLDS),
        (41.7, 33.3, 0.1, Status.WEAKER),
    ],
)
def test_status_of_a_claimed_figure_of_one_arm(claimed, found, resolution, status):
    assert level_status(claimed, found, resolution=resolution, policy=POLICY) is status


def test_figures_that_are_no_numbers_are_refused():
    with pytest.raises(ValueError, match="finite"):
        change_status((1, 2), (1, math.nan), resolution=0, policy=POLICY)
    with pytest.raises(ValueError, match="negative"):
        change_status((1, 2), (1, 2), resolution=-1, policy=POLICY)
    with pytest.raises(ValueError, match="finite"):
        level_status(math.inf, 1, resolution=0, policy=POLICY)
    with pytest.raises(ValueError, match="negative"):
        level_status(1, 1, resolution=-1, policy=POLICY)
