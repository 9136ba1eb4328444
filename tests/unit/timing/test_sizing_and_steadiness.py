from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelab.timing.sizing import MOST_COLD, MOST_QUEUED, launches
from kernelab.timing.steadiness import FEWEST_PASSES, Pass, is_steady


@pytest.mark.parametrize(
    ("time", "l2", "expected"),
    [
        (2.7, "cold", 1),
        (2.0, "cold", 1),
        (1.9, "cold", 2),
        (0.02, "cold", MOST_COLD),
        (0.02, "hot", 100),
        (0.0, "hot", MOST_QUEUED),
    ],
)
def test_a_sample_lasts_as_long_as_it_must(time: float, l2: str, expected: int) -> None:
    assert launches(time, 2.0, l2) == expected


@given(st.floats(0, 1e3), st.floats(1e-3, 100), st.sampled_from(["cold", "hot"]), st.integers(0, 2000))
def test_the_queue_is_never_filled(time: float, sample: float, l2: str, kernels: int) -> None:
    count = launches(time, sample, l2, kernels)
    assert count >= 1
    if count > 1:
        assert count * kernels <= MOST_QUEUED


def passes(clocks: list[float], every_s: float = 0.1) -> list[Pass]:
    return [Pass(index * every_s, {"a": clock}) for index, clock in enumerate(clocks)]


def test_a_clock_that_has_settled_is_steady_only_after_half_a_second() -> None:
    assert not is_steady(passes([1500.0] * 5), 1.0)
    assert is_steady(passes([1500.0] * 6), 1.0)


def test_a_moving_clock_is_not_steady_until_the_window_has_left_it_behind() -> None:
    ramp = [1000.0, 1200.0, 1400.0, 1500.0]
    assert not is_steady(passes(ramp + [1500.0] * 4), 1.0)
    assert is_steady(passes(ramp + [1500.0] * 5), 1.0)


def test_members_are_held_against_themselves() -> None:
    both = [Pass(index * 0.2, {"hungry": 1400.0, "light": 1980.0}) for index in range(4)]
    assert is_steady(both, 1.0)


def test_slow_passes_still_need_three_of_them() -> None:
    assert not is_steady(passes([1500.0] * FEWEST_PASSES, every_s=5.0), 1.0)
    assert not is_steady(passes([1000.0, 1300.0, 1500.0, 1500.0], every_s=5.0), 1.0)
    assert is_steady(passes([1000.0, 1500.0, 1500.0, 1500.0], every_s=5.0), 1.0)


def test_without_clocks_nothing_is_steady() -> None:
    assert not is_steady([Pass(index * 1.0, {}) for index in range(9)], 1.0)


@given(st.lists(st.floats(100, 3000), min_size=4, max_size=20), st.floats(0.1, 10))
def test_steady_means_that_no_clock_of_the_window_is_further_off_than_said(
    clocks: list[float], pct: float
) -> None:
    taken = passes(clocks, every_s=0.5)
    if is_steady(taken, pct):
        window = clocks[-FEWEST_PASSES:]
        assert max(window) - min(window) <= min(window) * pct / 100
