"""Reading an .ncu-rep: names, numbers and units, by the ncu-report library. Needs no GPU."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from kernelab.errors import UserError
from kernelab.profile.columns import TIME
from kernelab.records.profile import Metric, ProfiledKernel

PASSED_OVER = ("breakdown:", "group:", "device__", "numa__", "nvlink__", "c2clink__", "derived", "profiler__")
"""Metrics that are no counters of the kernel: lists of other metrics, and facts of the machine."""


def read_report(path: Path) -> list[ProfiledKernel]:
    """The kernels of a report, in order, with every counter that is a finite number.

    Of a counter's four roll-ups over the card's units the mean and the sum are kept.

    Raises:
        UserError: the file cannot be read, or ncu-report is not installed.
    """
    try:
        import ncu_report
    except ImportError as error:
        raise UserError(
            f"the package ncu-report cannot be imported ({error}); install kernelab's requirements"
        ) from None
    try:
        context = ncu_report.load_report(str(path))
        ranges = [context.range_by_idx(index) for index in range(context.num_ranges())]
        actions = [one.action_by_idx(index) for one in ranges for index in range(one.num_actions())]
        return [ProfiledKernel(name=str(action.name()), metrics=_metrics(action)) for action in actions]
    except (RuntimeError, ValueError, OSError, SystemError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{path.as_posix()}: is no report that ncu-report can read ({reason})") from None


def counted(kernel: ProfiledKernel) -> bool:
    """Whether the counters of a kernel are there: a program that died leaves a report of NaN."""
    time = kernel.metrics.get(TIME)
    return time is not None and time.value > 0


def _metrics(action: Any) -> dict[str, Metric]:
    found = {}
    for name in sorted(action.metric_names()):
        if name.startswith(PASSED_OVER) or ".min" in name or ".max" in name:
            continue
        metric = action.metric_by_name(name)
        value = metric.value() if metric.has_value() else None
        if isinstance(value, int | float) and math.isfinite(value):
            found[str(name)] = Metric(value=float(value), unit=str(metric.unit()))
    return found
