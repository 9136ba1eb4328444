"""What table.csv says of an arm's time, from its raw samples. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence

from kernelab.records.timing import MemberTime
from kernelab.timing.samples import Sample

Interval = Callable[[Sequence[float]], tuple[float, float]]
"""From one value a process to the 95% t interval of their mean."""


def summarise(samples: Sequence[Sample], interval: Interval) -> MemberTime:
    """The summary of one member's samples in one session; there is at least one.

    The time is the geometric mean of the per-process medians, low and high its interval over the processes; the
    clock is the median over all samples.
    """
    processes: dict[int, list[float]] = {}
    for sample in samples:
        processes.setdefault(sample.process, []).append(math.log(sample.time_ms))
    medians = [statistics.median(processes[process]) for process in sorted(processes)]
    clocks = [sample.sm_clock_mhz for sample in samples if sample.sm_clock_mhz is not None]
    low, high = interval(medians) if len(medians) > 1 else (None, None)
    return MemberTime(
        time_ms=math.exp(math.fsum(medians) / len(medians)),
        time_low_ms=None if low is None else math.exp(low),
        time_high_ms=None if high is None else math.exp(high),
        sm_clock_mhz=statistics.median(clocks) if clocks else None,
        samples=len(samples),
        processes=len(medians),
        launches=samples[0].launches,
    )
