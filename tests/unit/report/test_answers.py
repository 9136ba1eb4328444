"""Verdicts in words."""

from __future__ import annotations

from typing import Any

import pytest

from kernelab.records.compare import Change, ComparedPair, CompareRecord, Ratio
from kernelab.report.answers import answer, change, effect, in_words, interval, percent


def ratio(value: float, low: float, high: float) -> Ratio:
    return Ratio(
        value=value, low=low, high=high, half_width=0.01, log_mean=value - 1.0, standard_error=0.01, degrees=5
    )


def pair(**changed: Any) -> ComparedPair:
    return ComparedPair(
        **{
            "base": "k/default@p",
            "arm": "k/PAD=2@p",
            "variable": "PAD",
            "kind": "parameter",
            "base_level": "0",
            "level": "2",
            "composite": False,
            "problem": "p",
            "verdict": "faster",
            "direction": -1,
            "reason": "because",
            "notes": [],
            "confounds": [],
            "ratio": ratio(0.968, 0.964, 0.972),
            "cycles": None,
            "clock": None,
            "aa_half_width": 0.001,
            "p_value": 0.001,
            "levels": 1,
            "processes": 6,
            "rounds": 60,
            "session": "s1",
            "base_sass": "a",
            "arm_sass": "b",
            "control_facts_changed": [],
            "outcomes_changed": [],
            "source_diff": "",
            "certificate": "kernelab ...",
            **changed,
        }
    )


def record(*pairs: ComparedPair, **changed: Any) -> CompareRecord:
    return CompareRecord(
        **{
            "digest": "d",
            "experiment": "e",
            "question": "q?",
            "design": "vary",
            "device": "d",
            "card": "c",
            "method": {},
            "conditions": {},
            "arms": {},
            "code": {},
            "comparisons": list(pairs),
            "effects": [],
            "effects_note": "",
            "same_question": [],
            **changed,
        }
    )


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (-0.0321, "\u22123.2%"),
        (0.12, "+12.0%"),
        (0.0021, "+0.21%"),
        (0.34, "+34.0%"),
        (0.0, "0.00%"),
        (-1e-6, "0.00%"),
    ],
)
def test_percent_has_the_digits_that_matter(share: float, text: str) -> None:
    assert percent(share) == text


def test_large_effects_are_factors() -> None:
    assert effect(ratio(0.1, 0.099, 0.101)) == "10 times faster"
    assert interval(ratio(0.1, 0.08, 0.125)) == "8 to 12.5"
    assert effect(ratio(6.4, 6.0, 7.0)) == "6.4 times slower"
    assert interval(ratio(6.4, 6.0, 7.0)) == "6 to 7"


def test_a_gain_and_a_loss() -> None:
    assert in_words(pair()) == "takes 3.2% less time (2.8% to 3.6%)"
    assert (
        in_words(pair(verdict="slower", direction=1, ratio=ratio(1.02, 1.01, 1.03)))
        == "takes 2.0% more time (1.0% to 3.0%)"
    )


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"verdict": "identical_code"}, "compiles to identical code"),
        (
            {"verdict": "confounded", "confounds": ["min_blocks none and 1"]},
            "cannot be judged: min_blocks none and 1",
        ),
        ({"verdict": "not_measured", "ratio": None, "reason": "no GPU"}, "was not timed (no GPU)"),
        ({"verdict": "inconclusive"}, "is inconclusive: because"),
    ],
)
def test_every_other_verdict_says_why(fields: dict[str, Any], words: str) -> None:
    assert in_words(pair(**fields)).startswith(words)


def test_what_changes() -> None:
    assert change(pair()) == "PAD: 0 to 2"
    assert change(pair(kind="kernel", base_level="a", level="b")) == "a to b"
    assert change(pair(base_level="")) == "PAD: none to 2"


def test_one_comparison_is_one_sentence() -> None:
    found = answer(record(pair()))
    assert (found.verdict, found.sentence) == ("faster", "PAD: 0 to 2 takes 3.2% less time (2.8% to 3.6%).")


def test_several_are_counted_and_the_largest_is_told() -> None:
    small, large = pair(), pair(level="4", verdict="slower", direction=1, ratio=ratio(1.5, 1.4, 1.6))
    found = answer(record(small, large))
    assert found.verdict == "mixed"
    assert (
        found.sentence
        == "Of 2 comparisons: 1 faster, 1 slower. The largest effect: PAD: 0 to 4 takes 50.0% more time (40.0% to 60.0%)."
    )


def test_a_ladder_names_its_fastest_rung() -> None:
    arms = {"a/default@p": {"time_ms": 2.0}, "b/X=1@p": {"time_ms": 1.0, "pct_of_cublas": 101.25}}
    found = answer(record(pair(kind="kernel"), design="ladder", arms=arms))
    assert found.sentence == (
        "Of 1 rungs after the first, 1 gain over the one before and 0 lose. "
        "The fastest is b/X=1: 1 ms, 101.2% of the library's speed."
    )


def test_nothing_timed_is_said_once() -> None:
    untimed = pair(verdict="not_measured", ratio=None, reason="no GPU on this machine")
    assert (
        answer(record(untimed, untimed)).sentence
        == "None of the 2 comparisons was timed (no GPU on this machine)."
    )


def test_an_untimed_change_tells_what_the_code_says() -> None:
    moved = [Change(name="lds_128", base="1", arm="2"), Change(name="registers", base="202", arm="227")]
    found = answer(record(pair(verdict="not_measured", ratio=None, reason="no GPU", outcomes_changed=moved)))
    assert found.sentence == "PAD: 0 to 2 was not timed (no GPU). Known without it: registers 202 to 227."
