"""From one experiment's log ratios to one verdict per comparison: DESIGN.md's "Comparison", item 4.

Every threshold is applied to the log ratio (a margin of 1% is a log ratio of +-log 1.01), so that swapping
base and arm turns `faster` into `slower` and changes nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike

from kernelab.statistics.estimate import Estimate, Rounds, estimate
from kernelab.statistics.holm import holm
from kernelab.statistics.policy import VerdictPolicy


class Kind(StrEnum):
    """What is said of a comparison."""

    FASTER = "faster"
    SLOWER = "slower"
    EQUIVALENT = "equivalent"
    WITHIN_MARGIN = "within_margin"
    INCONCLUSIVE = "inconclusive"
    UNSTABLE = "unstable"
    IDENTICAL_CODE = "identical_code"
    CONFOUNDED = "confounded"
    NOT_MEASURED = "not_measured"


class Note(StrEnum):
    """What a reader of a verdict must also know."""

    CLOCK_MEDIATED = "clock_mediated"  # time moved, cycles did not: the arms ran at different clocks
    CLOCK_MASKED = "clock_masked"  # cycles moved, time did not: the clock gave back what the code gained
    HOLM = "holm"  # alone it would have been decided; among this many levels it is not
    EXTENDED = "extended"  # the session went on to the extended number of processes
    FEW_PROCESSES = "few_processes"  # fewer processes than the policy asks for
    THROTTLE_UNKNOWN = "throttle_unknown"  # no throttle reasons were read
    CYCLES_UNKNOWN = "cycles_unknown"  # no SM clock was read
    HAZARD = "hazard"  # an arm has a race or other undefined behaviour, even if its result was right


@dataclass(frozen=True)
class Session:
    """What one timing session says of itself.

    aa         log ratios of the base under its second name to the base: the A/A control
    throttled  per process, per round: a thermal or hardware slowdown was on; None where it cannot be read
    """

    aa: Rounds
    throttled: Sequence[ArrayLike] | None


@dataclass(frozen=True)
class Comparison:
    """One comparison as measured, with what plan and builds have already said of it.

    time, cycles     per process, per round log ratios arm / base, of the same rounds; time is None where
                     nothing was timed, cycles where no SM clock was read
    session          the session that both arms were timed in; None where nothing was timed
    confounds        the differences, other than the variable, that were found (each one readable phrase)
    identical_code   normalised SASS and resources are equal
    """

    name: str
    session: str | None = None
    time: Rounds | None = None
    cycles: Rounds | None = None
    confounds: tuple[str, ...] = ()
    identical_code: bool = False


@dataclass(frozen=True)
class Verdict:
    """What one comparison says.

    direction       -1 where the arm's time is less by the rule (faster, or within_margin), +1 where it is
                    more, 0 where nothing is said
    time, cycles    ratios arm / base; clock: SM clock of arm / base
    aa              the widest of the session's A/A controls; aa_half_width: its 95% half-width in log ratio
    p_value         of "no difference" in time, p_outside of "not within the margin"; both after Holm's
                    correction over the `levels` comparisons judged together
    reason          one sentence with the figures that decided
    """

    kind: Kind
    direction: int
    reason: str
    notes: tuple[Note, ...] = ()
    time: Estimate | None = None
    cycles: Estimate | None = None
    clock: Estimate | None = None
    aa: Estimate | None = None
    aa_half_width: float | None = None
    p_value: float | None = None
    p_outside: float | None = None
    levels: int = 1
    throttled_share: float | None = None


@dataclass(frozen=True)
class _Control:
    """A session judged as a whole: its widest A/A control, and why it is unstable (empty: it is not)."""

    aa: Estimate
    throttled_share: float | None
    fault: str


@dataclass(frozen=True)
class _Timed:
    time: Estimate
    cycles: Estimate | None
    clock: Estimate | None


def judge(
    comparisons: Sequence[Comparison], sessions: Mapping[str, Session], policy: VerdictPolicy
) -> dict[str, Verdict]:
    """The verdicts of one experiment, by comparison name.

    Holm's correction runs over the comparisons that are tests of anything: timed, not confounded, of code
    that differs. A comparison of identical code is a further A/A control of its session. Raises ValueError,
    naming the comparison or session, for values that are not log ratios, two equal names, a session that
    is missing, or cycles of other rounds than the time.
    """
    if len({item.name for item in comparisons}) != len(comparisons):
        raise ValueError("two comparisons of one experiment have the same name")
    timed = {item.name: _timed(item, policy) for item in comparisons if item.time is not None}
    used = dict.fromkeys(_session(item, sessions) for item in comparisons if item.time is not None)
    controls = {name: _control(name, sessions[name], comparisons, timed, policy) for name in used}
    tested = [
        item.name
        for item in comparisons
        if item.time is not None and not item.confounds and not item.identical_code
    ]
    different = holm([timed[name].time.p_different() for name in tested])
    outside = holm([timed[name].time.p_outside(policy.log_margin) for name in tested])
    adjusted = {name: pair for name, *pair in zip(tested, different, outside, strict=True)}

    verdicts = {}
    for item in comparisons:
        control = controls[item.session] if item.time is not None and item.session is not None else None
        figures = timed.get(item.name)
        p_value, p_outside = adjusted.get(item.name, (None, None))
        kind, direction, reason, notes = _decide(
            item, figures, control, p_value, p_outside, len(tested), policy
        )
        verdicts[item.name] = Verdict(
            kind=kind,
            direction=direction,
            reason=reason,
            notes=notes,
            time=figures.time if figures else None,
            cycles=figures.cycles if figures else None,
            clock=figures.clock if figures else None,
            aa=control.aa if control else None,
            aa_half_width=control.aa.half_width if control else None,
            p_value=p_value,
            p_outside=p_outside,
            levels=max(1, len(tested)),
            throttled_share=control.throttled_share if control else None,
        )
    return verdicts


def throttled_share(throttled: Sequence[ArrayLike], what: str = "throttle flags") -> float:
    """The share of all rounds with a slowdown on. Raises ValueError where there is no round."""
    flags = [np.asarray(values, dtype=bool).ravel() for values in throttled]
    total = sum(values.size for values in flags)
    if total == 0:
        raise ValueError(f"{what}: no round was measured")
    return sum(int(values.sum()) for values in flags) / total


def _session(item: Comparison, sessions: Mapping[str, Session]) -> str:
    if item.session is None or item.session not in sessions:
        raise ValueError(f"{item.name}: it was timed in session {item.session!r}, which is not at hand")
    return item.session


def _timed(item: Comparison, policy: VerdictPolicy) -> _Timed:
    assert item.time is not None
    time = estimate(item.time, policy, f"{item.name}, time")
    if item.cycles is None:
        return _Timed(time, None, None)
    cycles = estimate(item.cycles, policy, f"{item.name}, cycles")
    shapes = [[np.size(values) for values in rounds] for rounds in (item.time, item.cycles)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"{item.name}: time and cycles must come from the same rounds")
    clocks = [
        np.asarray(c, dtype=np.float64) - np.asarray(t, dtype=np.float64)
        for t, c in zip(item.time, item.cycles, strict=True)
    ]
    return _Timed(time, cycles, estimate(clocks, policy, f"{item.name}, clock"))


def _control(
    name: str,
    session: Session,
    comparisons: Sequence[Comparison],
    timed: Mapping[str, _Timed],
    policy: VerdictPolicy,
) -> _Control:
    labelled = [("A/A", estimate(session.aa, policy, f"session {name}, A/A"))]
    labelled += [
        (f"identical code ({item.name})", timed[item.name].time)
        for item in comparisons
        if item.session == name and item.identical_code and not item.confounds and item.name in timed
    ]
    widest = max((control for _, control in labelled), key=lambda control: control.half_width)
    share = (
        None
        if session.throttled is None
        else throttled_share(session.throttled, f"session {name}, throttle flags")
    )
    fault = ""
    if share is not None and share > policy.throttled_share:
        fault = f"{share:.0%} of the rounds were throttled, more than {policy.throttled_share:.0%}"
    for label, control in labelled:
        if not fault and not control.p_outside(policy.log_margin) < policy.alpha:
            fault = (
                f"{label} is not equivalent to itself: its 90% interval"
                f" {control.low90:.4f} to {control.high90:.4f} leaves +-{policy.margin:.2%}"
            )
    return _Control(widest, share, fault)


def _moved(item: Estimate, p_value: float, floor: float, policy: VerdictPolicy) -> bool:
    """The difference is certain, and exceeds the smallest effect that counts and the A/A half-width."""
    return p_value < policy.alpha and abs(item.log_mean) > max(policy.log_smallest_effect, floor)


def _decide(
    item: Comparison,
    figures: _Timed | None,
    control: _Control | None,
    p_value: float | None,
    p_outside: float | None,
    levels: int,
    policy: VerdictPolicy,
) -> tuple[Kind, int, str, tuple[Note, ...]]:
    if item.confounds:
        return Kind.CONFOUNDED, 0, "more than the variable differs: " + "; ".join(item.confounds), ()
    if item.identical_code:
        return Kind.IDENTICAL_CODE, 0, "normalised SASS and resources are equal", ()
    if figures is None or control is None or p_value is None or p_outside is None:
        return Kind.NOT_MEASURED, 0, "nothing was timed", ()

    time, floor = figures.time, control.aa.half_width
    notes = _session_notes(figures, control, policy)
    if control.fault:
        return Kind.UNSTABLE, 0, control.fault, notes
    moved = _moved(time, p_value, floor, policy)
    inside = p_outside < policy.alpha
    alone = (
        _moved(time, time.p_different(), floor, policy),
        time.p_outside(policy.log_margin) < policy.alpha,
    )
    if alone != (moved, inside):
        notes += (Note.HOLM,)
    notes += _clock_notes(figures, moved, floor, policy)

    direction = (1 if time.log_mean > 0 else -1) if moved else 0
    if moved and inside:
        kind = Kind.WITHIN_MARGIN
    elif moved:
        kind = Kind.SLOWER if direction > 0 else Kind.FASTER
    else:
        kind = Kind.EQUIVALENT if inside else Kind.INCONCLUSIVE
    return kind, direction, _reason(kind, time, floor, p_value, levels, policy), notes


def _session_notes(figures: _Timed, control: _Control, policy: VerdictPolicy) -> tuple[Note, ...]:
    facts = {
        Note.EXTENDED: figures.time.processes > policy.processes,
        Note.FEW_PROCESSES: figures.time.processes < policy.processes,
        Note.THROTTLE_UNKNOWN: control.throttled_share is None,
        Note.CYCLES_UNKNOWN: figures.cycles is None,
    }
    return tuple(note for note, holds in facts.items() if holds)


def _clock_notes(figures: _Timed, moved: bool, floor: float, policy: VerdictPolicy) -> tuple[Note, ...]:
    """Whether clocks, not code, made (or hid) the change in time.

    Noisy cycles alone prove nothing, so the clock ratio must itself differ from 1 and be the larger part.
    """
    cycles, clock = figures.cycles, figures.clock
    if cycles is None or clock is None or not clock.p_different() < policy.alpha:
        return ()
    cycles_moved = _moved(cycles, cycles.p_different(), floor, policy)
    if moved and not cycles_moved and abs(clock.log_mean) > abs(cycles.log_mean):
        return (Note.CLOCK_MEDIATED,)
    if cycles_moved and not moved and abs(clock.log_mean) > abs(figures.time.log_mean):
        return (Note.CLOCK_MASKED,)
    return ()


def _reason(
    kind: Kind, time: Estimate, floor: float, p_value: float, levels: int, policy: VerdictPolicy
) -> str:
    effect = time.ratio - 1.0
    certain = f"the {1 - time.alpha:.0%} interval {time.low:.4f} to {time.high:.4f}"
    narrow = f"the {1 - 2 * time.alpha:.0%} interval {time.low90:.4f} to {time.high90:.4f}"
    among = f" (p {p_value:.2g} among {levels} levels)" if levels > 1 else ""
    if kind in (Kind.FASTER, Kind.SLOWER):
        return (
            f"time {effect:+.2%}: {certain} excludes 1{among}, and the effect exceeds"
            f" {policy.smallest_effect:.2%} and the A/A half-width {floor:.2%}"
        )
    if kind is Kind.WITHIN_MARGIN:
        return f"time {effect:+.2%} is a difference{among}, yet {narrow} lies inside +-{policy.margin:.2%}"
    if kind is Kind.EQUIVALENT:
        return f"{narrow} lies inside +-{policy.margin:.2%}"
    return f"time {effect:+.2%}: {certain}{among} settles neither a difference nor equivalence"
