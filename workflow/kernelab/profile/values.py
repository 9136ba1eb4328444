"""From the counters of a sequence of kernels to the ncu_* columns of its arm. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kernelab.profile.columns import INSTRUCTIONS, NCU_COLUMNS, TIME, NcuColumn
from kernelab.records.profile import ProfiledKernel


def column_values(kernels: Sequence[ProfiledKernel]) -> dict[str, float]:
    """The columns that all the kernels of a sequence have, combined by each column's rule (see profile.columns)."""
    values = {}
    for column in NCU_COLUMNS:
        value = _value(column, kernels)
        if value is not None:
            values[column.name] = value * column.scale
    return values


def _value(column: NcuColumn, kernels: Sequence[ProfiledKernel]) -> float | None:
    found = _each(column.metrics, kernels)
    if found is None:
        return None
    if column.over:
        below = _each(column.over, kernels)
        return sum(found) / sum(below) if below and sum(below) > 0 else None
    if column.rule == "sum":
        return sum(found)
    weights = _each((TIME if column.rule == "time" else INSTRUCTIONS,), kernels)
    if len(found) == 1:
        return found[0]
    if weights is None or sum(weights) <= 0:
        return None
    return sum(v * w for v, w in zip(found, weights, strict=True)) / sum(weights)


def _each(alternatives: tuple[str, ...], kernels: Sequence[ProfiledKernel]) -> list[float] | None:
    """One value a kernel, all of the same metric: the first of the alternatives that every kernel has."""
    for name in alternatives:
        if kernels and all(name in kernel.metrics for kernel in kernels):
            return [kernel.metrics[name].value for kernel in kernels]
    return None
