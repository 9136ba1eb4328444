"""What follows from a change: every outcome of an arm by its name in table.csv, and those that moved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Outcomes = Mapping[str, Any]

# Measured columns wander from run to run; the rest are counts and exact.
MEASURED = "ncu_"
NOISE = 0.01
# Not outcomes of the code: they say where, or how long under the profiler.
NOT_OUTCOMES = frozenset({"sass_sha256", "emu_problem", "ncu_time_ms"})
SIGNIFICANT = 6
# The place of the hot loop moves with any change before it. It is told where the loop itself is as it was: then its place in the
# instruction cache may be all that there is (docs/frontier.md, rung 24).
PLACE = "hot_loop_at"
OF_THE_LOOP = ("registers", "hot_loop_", "ffma_share_pct", "sts_share_pct", "lds_", "ldsm", "sass_")


def moved(base: Outcomes, arm: Outcomes) -> list[tuple[str, str, str]]:
    """(name, base, arm) of every outcome that both arms have and that differs: counters of ncu by more than 1%.

    A count of opcodes that only one arm has is 0 in the other. Emulated counts of two different check problems
    are not compared. The place of the hot loop is left out where anything else about the loop differs.
    """
    found = []
    same_problem = base.get("emu_problem") == arm.get("emu_problem")
    for name in dict.fromkeys((*base, *arm)):
        if name in NOT_OUTCOMES or (name.startswith("emu_") and not same_problem):
            continue
        absent = 0 if name.startswith("sass_") else None
        values = (base.get(name, absent), arm.get(name, absent))
        if None in values or values[0] == values[1]:
            continue
        if name.startswith(MEASURED) and _close(float(values[0]), float(values[1])):
            continue
        found.append((name, text(values[0]), text(values[1])))
    same_loop = not any(name.startswith(OF_THE_LOOP) for name, *_ in found if name != PLACE)
    return [outcome for outcome in found if outcome[0] != PLACE or same_loop]


def text(value: Any) -> str:
    """A value as table.csv writes it."""
    return f"{value:.{SIGNIFICANT}g}" if isinstance(value, float) else str(value)


def _close(a: float, b: float) -> bool:
    return abs(a - b) <= NOISE * max(abs(a), abs(b))
