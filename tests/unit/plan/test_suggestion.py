"""What a message says of a word that is not known."""

from __future__ import annotations

from kernelab.plan.model import MOST_SHOWN, suggestion


def test_a_near_miss_is_named() -> None:
    assert suggestion("laddr", ["ladder", "other"]) == "; did you mean ladder?"


def test_a_short_list_is_shown_whole_and_a_long_one_in_part() -> None:
    assert suggestion("zz", ["b", "a"]) == " (known: a, b)"
    names = [f"name{number:04d}" for number in range(500)]
    shown = suggestion("zz", names)
    assert shown.endswith(f"name{MOST_SHOWN - 1:04d} and {500 - MOST_SHOWN} more)")
    assert suggestion("zz", []) == " (none is declared)"
