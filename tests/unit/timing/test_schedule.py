from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelab.timing.schedule import (
    FEWEST_VISITS,
    round_cost_s,
    round_visits,
    rounds_within,
    seed_of,
    shuffled,
    strides,
)

members = st.lists(st.text("abcdef", min_size=1, max_size=3), min_size=1, max_size=8, unique=True)


@given(members, st.integers(0, 40), st.integers(0, 2**64 - 1), st.data())
def test_a_round_is_its_own_mirror_image(
    names: list[str], number: int, seed: int, data: st.DataObject
) -> None:
    every = {name: data.draw(st.sampled_from([1, 2, 4])) for name in names}
    visits = round_visits(names, every, number, seed)
    order = [visit.member for visit in visits]
    assert order == order[::-1]
    assert set(order) == {name for name in names if number % every[name] == 0}
    assert all(count == 2 for count in Counter(order).values())
    assert [visit.position for visit in visits] == list(range(len(visits)))
    half = len(visits) // 2
    assert [visit.half for visit in visits] == ["forward"] * half + ["mirror"] * half


def test_orders_follow_the_seed_and_differ_from_round_to_round() -> None:
    names = list("abcdefgh")
    first = [visit.member for visit in round_visits(names, {}, 0, 7)]
    assert first == [visit.member for visit in round_visits(names, {}, 0, 7)]
    assert first != [visit.member for visit in round_visits(names, {}, 1, 7)]
    assert first != [visit.member for visit in round_visits(names, {}, 0, 8)]


def test_every_member_comes_first_about_equally_often() -> None:
    names = list("abcd")
    firsts = Counter(round_visits(names, {}, number, 3)[0].member for number in range(400))
    assert all(60 < firsts[name] < 140 for name in names)


def test_seeds_are_the_same_on_every_machine() -> None:
    assert seed_of("a", 1) == seed_of("a", 1) != seed_of("a1")
    assert seed_of("kernelab") == 0x4DB87D8379DE3A4E
    assert shuffled(list("abcdef"), 1) == list("cdfaeb")


@pytest.mark.parametrize(
    ("time", "rounds", "stride"),
    [
        (10.0, 12, 1),
        (10.1, 12, 2),
        (20.1, 12, 4),
        (1000.0, 12, 4),
        (1000.0, 3, 1),
        (1000.0, 100, 32),
        (1.0, 12, 1),
    ],
)
def test_slow_members_sit_out_but_keep_the_fewest_visits(time: float, rounds: int, stride: int) -> None:
    assert strides({"slow": time, "base": 1.0}, 1.0, 10.0, rounds) == {"slow": stride, "base": 1}


@given(
    st.dictionaries(st.text(min_size=1, max_size=2), st.floats(1e-3, 1e4), min_size=1), st.integers(1, 200)
)
def test_two_slow_members_share_the_rounds_of_the_slower(times: dict[str, float], rounds: int) -> None:
    every = strides(times, min(times.values()), 10.0, rounds)
    for stride in every.values():
        assert stride & (stride - 1) == 0
        assert len(range(0, rounds, stride)) >= min(FEWEST_VISITS, rounds)


@given(st.floats(-10, 1e4), st.floats(1e-4, 100), st.integers(1, 500))
def test_rounds_never_leave_their_bounds(budget: float, cost: float, most: int) -> None:
    rounds = rounds_within(budget, cost, most)
    assert min(FEWEST_VISITS, most) <= rounds <= most
    if FEWEST_VISITS < rounds < most:
        assert rounds * cost <= budget < (rounds + 1) * cost * (1 + 1e-9)


def test_the_cost_of_a_round_counts_both_halves_and_the_strides() -> None:
    assert round_cost_s({"a": 1.0, "b": 4.0}, {"b": 4}) == pytest.approx(2 * (1.0 + 1.0))
