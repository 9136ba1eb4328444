"""Holm's correction: several levels of one experiment are several chances to be wrong."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p values, in the order given (Holm 1979, step-down).

    Rejecting where an adjusted value is below alpha keeps the chance of any false rejection in the family
    below alpha, whatever the dependence between the tests (the levels share a base). Raises ValueError for
    a value outside [0, 1].
    """
    for value in p_values:
        if not 0.0 <= value <= 1.0:
            raise ValueError(f"a p value of {value} is outside [0, 1]")
    count = len(p_values)
    adjusted = [0.0] * count
    running = 0.0
    for rank, index in enumerate(sorted(range(count), key=p_values.__getitem__)):
        running = max(running, min(1.0, (count - rank) * p_values[index]))
        adjusted[index] = running
    return adjusted
