from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelab.compare.agreement import Answer, agreement
from kernelab.compare.verdict import Comparison, Kind, Session, Verdict, judge
from kernelab.statistics.policy import VerdictPolicy

POLICY = VerdictPolicy()
SPREAD = (0.5, -0.5, 0.2, -0.2, 1.0, -1.0)
AA = [[0.0002 * s] for s in SPREAD]


def measured(mean: float, spread: float = 0.0005) -> Verdict:
    time = [[mean + spread * s] for s in SPREAD]
    return judge([Comparison("a", "s", time)], {"s": Session(AA, None)}, POLICY)["a"]


IDENTICAL = judge([Comparison("a", identical_code=True)], {}, POLICY)["a"]
UNTIMED = judge([Comparison("a")], {}, POLICY)["a"]
FASTER, SLOWER, SAME = measured(-0.04), measured(0.03), measured(0.0)
SMALL_GAIN, SMALL_LOSS = measured(-0.007), measured(0.007)


@pytest.mark.parametrize(
    ("first", "second", "answer"),
    [
        (FASTER, SLOWER, Answer.FLIP),
        (SMALL_GAIN, SMALL_LOSS, Answer.FLIP),
        (FASTER, SMALL_LOSS, Answer.FLIP),
        (FASTER, SAME, Answer.FADE),
        (FASTER, IDENTICAL, Answer.FADE),
        (FASTER, SMALL_GAIN, Answer.FADE),
        (FASTER, measured(-0.05), Answer.AGREE),
        (SAME, SMALL_GAIN, Answer.AGREE),
        (SAME, IDENTICAL, Answer.AGREE),
        (IDENTICAL, IDENTICAL, Answer.AGREE),
        (FASTER, measured(-0.02, 0.04), Answer.UNCLEAR),
        (FASTER, UNTIMED, Answer.UNCLEAR),
        (measured(0.011, 0.001), measured(0.0, 0.0155), Answer.UNCLEAR),
        (measured(0.0105, 0.0005), measured(0.009, 0.0007), Answer.AGREE),
    ],
)
def test_answers_in_either_order(first, second, answer):
    there, back = agreement(first, second, POLICY), agreement(second, first, POLICY)
    assert there.answer is back.answer is answer
    assert there.size_differs == back.size_differs


def test_the_difference_carries_its_interval():
    found = agreement(FASTER, measured(-0.06), POLICY)
    assert found.size_differs
    assert found.difference.log_mean == pytest.approx(-0.02)
    assert found.difference.low < math.exp(-0.02) < found.difference.high
    assert not agreement(FASTER, FASTER, POLICY).size_differs
    assert agreement(FASTER, UNTIMED, POLICY).difference is None


def test_the_examples_above_are_what_they_claim_to_be():
    kinds = [item.kind for item in (FASTER, SLOWER, SAME, SMALL_GAIN, SMALL_LOSS)]
    assert kinds == [Kind.FASTER, Kind.SLOWER, Kind.EQUIVALENT, Kind.WITHIN_MARGIN, Kind.WITHIN_MARGIN]


@given(*[st.tuples(st.floats(-0.05, 0.05), st.floats(0.0001, 0.02))] * 2)
def test_a_flip_is_always_a_difference_of_size_too(one, other):
    found = agreement(measured(*one), measured(*other), POLICY)
    if found.answer is Answer.FLIP:
        assert found.size_differs
    if found.answer is Answer.FADE:
        assert found.size_differs
    if found.answer is Answer.UNCLEAR:
        assert "inconclusive" in found.reason or "told apart" in found.reason


def test_every_pair_of_verdicts_has_an_answer_with_a_reason():
    for first, second in itertools.product((FASTER, SLOWER, SAME, SMALL_GAIN, IDENTICAL, UNTIMED), repeat=2):
        assert agreement(first, second, POLICY).reason
