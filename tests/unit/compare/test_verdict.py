from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelab.compare.verdict import Comparison, Kind, Note, Session, Verdict, judge, throttled_share
from kernelab.statistics.policy import QUICK, VerdictPolicy

POLICY = VerdictPolicy()
PATTERN = np.array([0.5, -0.5, 0.2, -0.2, 1.0, -1.0])  # mean 0, sd 0.719


def session_of(mean: float, spread: float, processes: int = 6) -> list[list[float]]:
    """Processes whose medians have this mean, each of three rounds."""
    medians = mean + spread * np.resize(PATTERN, processes)
    return [[m - 1e-5, m, m + 1e-5] for m in medians.tolist()]


QUIET = session_of(0.0, 0.0005)
CALM = [[False] * 5] * 6


def verdict(
    time,
    *,
    aa=QUIET,
    cycles=None,
    throttled=CALM,
    policy=POLICY,
    **facts,
) -> Verdict:
    comparison = Comparison("arm", "s", time, cycles if cycles is not None else time, **facts)
    return judge([comparison], {"s": Session(aa, throttled)}, policy)["arm"]


@pytest.mark.parametrize(
    ("mean", "spread", "kind", "direction"),
    [
        (-0.03, 0.001, Kind.FASTER, -1),
        (0.03, 0.001, Kind.SLOWER, 1),
        (0.002, 0.001, Kind.EQUIVALENT, 0),  # certain, yet too small to count
        (0.007, 0.0005, Kind.WITHIN_MARGIN, 1),
        (-0.007, 0.0005, Kind.WITHIN_MARGIN, -1),
        (0.0, 0.001, Kind.EQUIVALENT, 0),
        (0.01, 0.03, Kind.INCONCLUSIVE, 0),
        (0.009, 0.003, Kind.SLOWER, 1),  # the 90% interval leaves the margin, the 95% one excludes 1
    ],
)
def test_kinds(mean, spread, kind, direction):
    found = verdict(session_of(mean, spread))
    assert (found.kind, found.direction) == (kind, direction)
    assert found.notes == ()
    assert found.reason


def test_the_effect_must_exceed_the_aa_half_width():
    noisy = session_of(0.0, 0.008)
    found = verdict(session_of(0.006, 0.0005), aa=noisy)
    assert found.aa_half_width > 0.006
    assert found.kind is Kind.EQUIVALENT
    assert verdict(session_of(0.006, 0.0005)).kind is Kind.WITHIN_MARGIN


@pytest.mark.parametrize(("count", "kind"), [(6, Kind.FASTER), (7, Kind.UNSTABLE)])
def test_more_than_a_fifth_of_rounds_throttled_is_unstable(count, kind):
    flags = [[True] * count + [False] * (10 - count)] + [[False] * 10] * 2
    assert throttled_share(flags) == count / 30
    found = verdict(session_of(-0.03, 0.001), throttled=flags)
    assert found.kind is kind
    assert found.throttled_share == count / 30


@pytest.mark.parametrize("aa", [session_of(0.012, 0.0005), session_of(0.0, 0.02)])
def test_aa_that_is_not_equivalent_is_unstable(aa):
    found = verdict(session_of(-0.03, 0.001), aa=aa)
    assert (found.kind, found.direction) == (Kind.UNSTABLE, 0)
    assert "A/A" in found.reason


def test_confound_comes_before_identity_and_identity_before_the_clock():
    moved = session_of(-0.03, 0.001)
    found = verdict(moved, confounds=("min_blocks: none, then 1",), identical_code=True)
    assert found.kind is Kind.CONFOUNDED
    assert "min_blocks: none, then 1" in found.reason
    same = verdict(QUIET, identical_code=True)
    assert same.kind is Kind.IDENTICAL_CODE
    assert same.time is not None
    assert same.p_value is None


def test_nothing_timed_is_not_measured_unless_builds_settle_it():
    untimed = [
        Comparison("plain"),
        Comparison("same", identical_code=True),
        Comparison("stray", confounds=("grid",)),
    ]
    found = judge(untimed, {}, POLICY)
    kinds = [found[name].kind for name in ("plain", "same", "stray")]
    assert kinds == [Kind.NOT_MEASURED, Kind.IDENTICAL_CODE, Kind.CONFOUNDED]
    assert all(item.time is None and item.aa_half_width is None for item in found.values())


def test_identical_code_is_a_further_aa_control():
    arm = Comparison("arm", "s", session_of(-0.03, 0.001))
    noisy = Comparison("same", "s", session_of(0.0, 0.004), identical_code=True)
    broken = replace(noisy, time=session_of(0.02, 0.001))
    elsewhere = {"s": Session(QUIET, None), "t": Session(QUIET, None)}
    assert judge([arm, noisy], elsewhere, POLICY)["arm"].aa_half_width == pytest.approx(
        judge([arm, noisy], elsewhere, POLICY)["same"].time.half_width
    )
    unstable = judge([arm, broken], elsewhere, POLICY)["arm"]
    assert unstable.kind is Kind.UNSTABLE
    assert "identical code (same)" in unstable.reason
    assert judge([arm, replace(broken, session="t")], elsewhere, POLICY)["arm"].kind is Kind.FASTER
    assert judge([arm, replace(broken, confounds=("beta",))], elsewhere, POLICY)["arm"].kind is Kind.FASTER


def test_clock_mediated_when_time_moved_and_cycles_did_not():
    time, still = session_of(-0.02, 0.001), session_of(0.0, 0.001)
    found = verdict(time, cycles=still)
    assert (found.kind, found.notes) == (Kind.FASTER, (Note.CLOCK_MEDIATED,))
    assert found.clock.ratio == pytest.approx(math.exp(0.02))


def test_no_clock_mediation_where_cycles_moved_or_are_merely_noisy():
    time = session_of(-0.02, 0.001)
    assert verdict(time, cycles=session_of(-0.015, 0.001)).notes == ()
    noisy = [
        [x + d for x in row] for row, d in zip(time, (0.06, -0.05, 0.07, -0.04, 0.08, -0.05), strict=True)
    ]
    found = verdict(time, cycles=noisy)
    assert found.cycles.p_different() > 0.05
    assert found.notes == ()
    # 0.55% of time of which the clock made 0.06%: cycles fall just short of the threshold
    close = verdict(session_of(-0.0055, 0.0001), cycles=session_of(-0.0049, 0.0001))
    assert close.kind is Kind.WITHIN_MARGIN
    assert close.clock.p_different() < 0.05
    assert close.notes == ()


def test_clock_masked_when_cycles_moved_and_time_did_not():
    found = verdict(session_of(0.0, 0.001), cycles=session_of(-0.02, 0.001))
    assert (found.kind, found.notes) == (Kind.EQUIVALENT, (Note.CLOCK_MASKED,))
    # cycles just count and time just does not: code, not the clock, made the larger part
    close = verdict(session_of(-0.0045, 0.0001), cycles=session_of(-0.006, 0.0001))
    assert (close.kind, close.notes) == (Kind.EQUIVALENT, ())


def test_notes_on_what_was_not_read_and_on_the_number_of_processes():
    arm = Comparison("arm", "s", session_of(-0.03, 0.001, 5))
    found = judge([arm], {"s": Session(session_of(0.0, 0.001, 5), None)}, POLICY)["arm"]
    assert set(found.notes) == {Note.FEW_PROCESSES, Note.THROTTLE_UNKNOWN, Note.CYCLES_UNKNOWN}
    long = session_of(-0.03, 0.001, 12)
    assert verdict(long, aa=session_of(0.0, 0.001, 12)).notes == (Note.EXTENDED,)
    quick = session_of(-0.03, 0.001)[:3]
    assert Note.FEW_PROCESSES not in verdict(quick, policy=QUICK).notes


def test_holm_asks_more_of_each_of_several_levels():
    borderline = session_of(0.012, 0.0135)
    alone = verdict(borderline)
    assert alone.kind is Kind.SLOWER
    family = [Comparison(name, "s", borderline, borderline) for name in "ab"]
    family += [Comparison("c", "s", session_of(0.0, 0.01), session_of(0.0, 0.01))]
    among = judge(family, {"s": Session(QUIET, CALM)}, POLICY)
    assert among["a"].kind is Kind.INCONCLUSIVE
    assert Note.HOLM in among["a"].notes
    assert among["a"].p_value == pytest.approx(3 * alone.p_value)
    assert among["a"].levels == 3


def test_holm_asks_more_of_equivalence_too():
    borderline = session_of(0.0, 0.013)
    assert verdict(borderline).kind is Kind.EQUIVALENT
    family = [Comparison(name, "s", borderline, borderline) for name in "abc"]
    found = judge(family, {"s": Session(QUIET, CALM)}, POLICY)["a"]
    assert (found.kind, found.notes) == (Kind.INCONCLUSIVE, (Note.HOLM,))


def test_holm_does_not_count_what_is_no_test():
    borderline = session_of(0.012, 0.0135)
    family = [
        Comparison("a", "s", borderline, borderline),
        Comparison("same", "s", QUIET, QUIET, identical_code=True),
        Comparison("stray", "s", borderline, borderline, confounds=("grid",)),
        Comparison("untimed"),
    ]
    found = judge(family, {"s": Session(QUIET, CALM)}, POLICY)
    assert found["a"].kind is Kind.SLOWER
    assert found["a"].levels == 1


ARM = st.tuples(st.floats(-0.05, 0.05), st.floats(0.0, 0.03))
SWAPPED = {Kind.FASTER: Kind.SLOWER, Kind.SLOWER: Kind.FASTER}


def negated(rounds):
    return [[-x for x in values] for values in rounds]


@given(st.lists(ARM, min_size=1, max_size=4), st.floats(0.0, 0.01), st.floats(-0.01, 0.01))
def test_swapping_base_and_arm_only_swaps_faster_and_slower(arms, noise, clock):
    aa = session_of(0.0, noise)

    def verdicts(turn):
        family = [
            Comparison(str(i), "s", turn(session_of(*arm)), turn(session_of(arm[0] + clock, arm[1])))
            for i, arm in enumerate(arms)
        ]
        return judge(family, {"s": Session(turn(aa), CALM)}, POLICY)

    there, back = verdicts(lambda rounds: rounds), verdicts(negated)
    for name, one in there.items():
        other = back[name]
        assert other.kind is SWAPPED.get(one.kind, one.kind)
        assert other.direction == -one.direction
        assert other.notes == one.notes
        assert other.time.low == pytest.approx(1.0 / one.time.high)
        assert other.p_value == one.p_value


@given(st.data())
def test_order_of_comparisons_processes_and_rounds_does_not_matter(data):
    arms = data.draw(st.lists(ARM, min_size=1, max_size=4))
    family = [Comparison(str(i), "s", session_of(*arm)) for i, arm in enumerate(arms)]
    order = data.draw(st.permutations(range(6)))
    shuffled = [
        replace(item, time=[data.draw(st.permutations(item.time[p])) for p in order])
        for item in data.draw(st.permutations(family))
    ]
    sessions = {"s": Session(QUIET, None)}
    assert judge(shuffled, sessions, POLICY) == judge(family, sessions, POLICY)


@given(st.floats(0.0, 0.05), st.floats(0.0, 0.05), st.floats(0.0, 0.02))
def test_a_larger_effect_at_the_same_noise_never_loses_a_difference(one, other, spread):
    small, large = sorted((one, other))
    if verdict(session_of(small, spread)).direction > 0:
        assert verdict(session_of(large, spread)).direction > 0
    if verdict(session_of(large, spread)).kind in (Kind.EQUIVALENT, Kind.WITHIN_MARGIN):
        assert verdict(session_of(small, spread)).kind in (Kind.EQUIVALENT, Kind.WITHIN_MARGIN)


@given(st.floats(-0.05, 0.05), st.floats(0.0, 0.02), st.floats(0.0, 0.02))
def test_less_noise_never_loses_an_answer(mean, one, other):
    quiet, loud = sorted((one, other))
    before, after = verdict(session_of(mean, loud)), verdict(session_of(mean, quiet))
    if before.direction:
        assert after.direction == before.direction
    if before.kind in (Kind.EQUIVALENT, Kind.WITHIN_MARGIN):
        assert after.kind in (Kind.EQUIVALENT, Kind.WITHIN_MARGIN)


@given(st.lists(ARM, min_size=2, max_size=5))
def test_more_levels_never_make_a_verdict_bolder(arms):
    family = [Comparison(str(i), "s", session_of(*arm)) for i, arm in enumerate(arms)]
    sessions = {"s": Session(QUIET, None)}
    among = judge(family, sessions, POLICY)
    for item in family:
        alone = judge([item], sessions, POLICY)[item.name]
        assert abs(among[item.name].direction) <= abs(alone.direction)
        assert (Note.HOLM in among[item.name].notes) == (among[item.name].kind is not alone.kind)


def test_errors_name_the_comparison_or_session():
    good = Comparison("arm", "s", QUIET, QUIET)
    sessions = {"s": Session(QUIET, CALM)}
    nan = [[math.nan]] * 6
    cases = [
        ([replace(good, time=nan)], sessions, "arm, time: process 1"),
        ([replace(good, cycles=nan)], sessions, "arm, cycles: process 1"),
        ([replace(good, time=[])], sessions, "arm, time: no process"),
        ([replace(good, cycles=session_of(0.0, 0.1, 5))], sessions, "arm: time and cycles"),
        ([replace(good, session="t")], sessions, "arm: it was timed in session 't'"),
        ([replace(good, session=None)], sessions, "arm: it was timed in session None"),
        ([good, good], sessions, "same name"),
        ([good], {"s": Session([], CALM)}, "session s, A/A: no process"),
        ([good], {"s": Session(QUIET, [])}, "session s, throttle flags: no round"),
    ]
    for comparisons, at_hand, says in cases:
        with pytest.raises(ValueError, match=says) as caught:
            judge(comparisons, at_hand, POLICY)
        assert "\n" not in str(caught.value)
