"""The order of the visits: mirrored rounds, in a random order that a seed fixes. Pure."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Half = Literal["forward", "mirror"]

FEWEST_VISITS = 3
"""Rounds that even the slowest arm takes part in, where there are that many: a median needs them."""


@dataclass(frozen=True)
class Visit:
    """One sample of one member. `position` counts the visits of the round from 0."""

    half: Half
    position: int
    member: str


def seed_of(*parts: object) -> int:
    """A seed (64 bits) from anything that has a text, the same on every machine."""
    text = "\n".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def shuffled(names: Sequence[str], seed: int) -> list[str]:
    """The names in the order that a seed fixes."""
    order = list(names)
    random.Random(seed).shuffle(order)
    return order


def round_visits(names: Sequence[str], strides: Mapping[str, int], number: int, seed: int) -> list[Visit]:
    """The visits of one round: every member that takes part once in a random order, then once in the reverse.

    A drift that is linear over the round so weighs on all members alike.

    Args:
        names: the members of the group.
        strides: a member takes part in the rounds that its stride divides; 1 where it is not named.
        number: the round, from 0.
        seed: of this process; each round gets its own order from it.
    """
    taking_part = [name for name in names if number % strides.get(name, 1) == 0]
    order = shuffled(taking_part, seed_of(seed, "round", number))
    forward = [Visit("forward", position, name) for position, name in enumerate(order)]
    mirror = [Visit("mirror", len(order) + position, name) for position, name in enumerate(reversed(order))]
    return forward + mirror


def strides(
    times_ms: Mapping[str, float], anchor_ms: float, slow_factor: float, rounds: int
) -> dict[str, int]:
    """How often each member takes part: every round, or every second, fourth, eighth ... one.

    A member more than `slow_factor` slower than the anchor sits out, in proportion. Strides are powers of two,
    so that two slow members always share the rounds of the slower one, and leave `FEWEST_VISITS` rounds.
    """
    most = 1
    while most * 2 * (FEWEST_VISITS - 1) < rounds:
        most *= 2
    found = {}
    for name, time in times_ms.items():
        stride = 1
        while stride < most and time > slow_factor * anchor_ms * stride:
            stride *= 2
        found[name] = stride
    return found


def round_cost_s(costs_s: Mapping[str, float], every: Mapping[str, int]) -> float:
    """Mean wall-clock time of a mirrored round, in s, from the cost of one visit of each member."""
    return sum(2.0 * cost / every.get(name, 1) for name, cost in costs_s.items())


def rounds_within(budget_s: float, cost_s: float, most: int) -> int:
    """Rounds that fit a budget: at most `most`, at least the fewest that give a median."""
    fitting = int(budget_s / cost_s) if cost_s > 0 else most
    return max(min(FEWEST_VISITS, most), min(most, fitting))
