"""From raw samples to what a comparison is judged by: per process, per round log ratios inside one session. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from kernelab.device.nvml import THERMAL_OR_HARDWARE
from kernelab.timing.groups import Pair
from kernelab.timing.samples import Sample


@dataclass(frozen=True)
class PairRounds:
    """The rounds in which base and arm both took part, one list a process, processes in their order.

    time       log(time of the arm / time of the base), the mean over the round's two halves
    cycles     the same of SM cycles; None where a clock of any of the rounds could not be read
    throttled  whether a thermal or hardware slowdown was on; None where it could not be read
    """

    time: list[list[float]]
    cycles: list[list[float]] | None
    throttled: list[list[bool]] | None


def pair_rounds(samples: Iterable[Sample], session: str, pair: Pair) -> PairRounds:
    """The rounds of a comparison (or of an A/A control) in a session.

    Args:
        samples: of the experiment; those of other sessions and members are passed over.
        session: the session's id. Ratios are only ever formed inside a session.
        pair: (base, arm), by member name.
    """
    base, arm = pair
    visits: dict[tuple[int, int], dict[tuple[str, str], Sample]] = {}
    for sample in samples:
        if sample.session == session and sample.arm in pair:
            visits.setdefault((sample.process, sample.round), {})[(sample.half, sample.arm)] = sample
    times: dict[int, list[float]] = {}
    cycles: dict[int, list[float]] = {}
    throttled: dict[int, list[bool]] = {}
    clocks_known = throttle_known = True
    for (process, _), found in sorted(visits.items()):
        if len(found) != 4:
            continue  # one of the two sat this round out
        halves = [(found[(half, arm)], found[(half, base)]) for half in ("forward", "mirror")]
        times.setdefault(process, []).append(sum(math.log(a.time_ms / b.time_ms) for a, b in halves) / 2)
        logs = [math.log(a.cycles / b.cycles) for a, b in halves if a.cycles and b.cycles]
        clocks_known = clocks_known and len(logs) == 2
        cycles.setdefault(process, []).append(sum(logs) / 2)
        throttle = halves[-1][0].throttle
        throttle_known = throttle_known and throttle != ""
        throttled.setdefault(process, []).append(hard(throttle))
    return PairRounds(
        time=list(times.values()),
        cycles=list(cycles.values()) if clocks_known else None,
        throttled=list(throttled.values()) if throttle_known else None,
    )


def hard(throttle: str) -> bool:
    """Whether throttle reasons (joined by +) tell of a thermal or hardware slowdown."""
    return not THERMAL_OR_HARDWARE.isdisjoint(throttle.split("+"))
