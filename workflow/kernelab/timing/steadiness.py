"""When a warm-up has done its work: every arm's SM clock has stopped moving. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WINDOW_S = 0.5
FEWEST_PASSES = 3


@dataclass(frozen=True)
class Pass:
    """One pass of the warm-up over all members: when it ended (s) and each member's SM clock (MHz)."""

    ended_s: float
    clocks_mhz: Mapping[str, float]


def is_steady(passes: Sequence[Pass], pct: float) -> bool:
    """Whether, over the last half second (and at least three passes), no member's clock spread over `pct` percent.

    Each member is held against itself: on a card at its power limit, arms settle at different clocks. Where
    no clock could be read nothing ever counts as steady, and the warm-up lasts its full time.
    """
    if len(passes) <= FEWEST_PASSES:
        return False
    begin = passes[-1].ended_s - WINDOW_S
    # The pass that straddles the window's beginning belongs to it: the window must span the half second.
    first = max((i for i, one in enumerate(passes) if one.ended_s <= begin), default=None)
    if first is None:
        return False
    window = passes[min(first, len(passes) - FEWEST_PASSES) :]
    members = {name for one in window for name in one.clocks_mhz}
    for name in members:
        clocks = [one.clocks_mhz[name] for one in window if name in one.clocks_mhz]
        low, high = min(clocks), max(clocks)
        if len(clocks) < FEWEST_PASSES or low <= 0 or (high - low) > low * pct / 100.0:
            return False
    return bool(members)
