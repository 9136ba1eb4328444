"""Every claim of config.yaml beside what was measured: one row of claims.csv each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelab.compare.claims import Expect, Status, TimeClaim, change_status, level_status, time_status
from kernelab.compare.recorded import verdict_of
from kernelab.plan.config import Claim
from kernelab.plan.model import level_text
from kernelab.records.compare import ComparedPair, CompareRecord
from kernelab.statistics.policy import VerdictPolicy

TIME = "time"
START = (
    "start"  # a claim's `base`: the step's arm against the start of the steps, not against the step before
)
# Counters of ncu move by a hundredth between two runs of the same code, and stalls by a few thousandths of a warp.
MEASURED_RESOLUTION = 0.01
SMALLEST_STALL = 0.005


@dataclass(frozen=True)
class ClaimRow:
    """A row of claims.csv; figures are text, empty where there is none."""

    claim: str
    text: str
    source: str
    experiment: str
    claimed_metric: str
    claimed: str
    claimed_on: str
    measured: str
    measured_low: str
    measured_high: str
    status: str
    note: str


def claim_row(name: str, claim: Claim, record: CompareRecord | None, policy: VerdictPolicy) -> ClaimRow:
    """A claim against the record of its experiment (None: there is none yet)."""
    if record is None:
        return _row(name, claim, Status.NOT_MEASURED, "its experiment has no record yet")
    pair = find_pair(claim, record)
    if claim.metric != TIME:
        return _metric_row(name, claim, record, pair, policy)
    if pair is None:
        return _row(name, claim, Status.NOT_MEASURED, _no_arm(claim, record))
    verdict = verdict_of(pair, policy)
    expect = {"slower": Expect.SLOWER, "equal": Expect.EQUIVALENT}.get(claim.expect, Expect.FASTER)
    result = time_status(TimeClaim.by_percent(expect, claim.by_pct), verdict, policy)
    figures = ("", "", "")
    if result.measured is not None:
        figures = (_text(result.measured.ratio), _text(result.measured.low), _text(result.measured.high))
    return _row(name, claim, result.status, result.reason, *figures)


def find_pair(claim: Claim, record: CompareRecord) -> ComparedPair | None:
    """The comparison that a claim is about: by its level and its base; the only one where it names neither."""
    pairs = record.comparisons
    level = None if claim.level is None else level_text(claim.level)
    if record.design == "steps":
        cumulative = claim.base == START
        single = [pair for pair in pairs if pair.kind != "steps"]
        number = len(single) if level is None else int(level) if level.isdigit() else 0
        if cumulative and number > 1:
            return next((pair for pair in pairs if pair.kind == "steps" and pair.level == str(number)), None)
        return single[number - 1] if 1 <= number <= len(single) else None
    if claim.base is not None:
        pairs = [pair for pair in pairs if pair.base.partition("/")[0] == claim.base]
    if level is not None:
        pairs = [pair for pair in pairs if pair.level == level]
    return pairs[0] if pairs else None


def find_arm(claim: Claim, record: CompareRecord) -> str | None:
    """The arm that a claim of a figure is about: the one at its level, which may be the base's."""
    pair = find_pair(claim, record)
    if pair is not None:
        return pair.arm
    bases = (p for p in record.comparisons if claim.base is None or p.base.partition("/")[0] == claim.base)
    return next(
        (p.base for p in bases if claim.level is not None and p.base_level == level_text(claim.level)), None
    )


def _metric_row(
    name: str, claim: Claim, record: CompareRecord, pair: ComparedPair | None, policy: VerdictPolicy
) -> ClaimRow:
    if claim.expect == "value":
        arm = find_arm(claim, record)
        if arm is None:
            return _row(name, claim, Status.NOT_MEASURED, _no_arm(claim, record))
        found = _figure(record.arms.get(arm, {}), claim.metric)
        if found is None or claim.value is None:
            return _row(name, claim, Status.NOT_MEASURED, f"{claim.metric} of {arm} is not known")
        status = level_status(
            claim.value, found, resolution=_resolution(claim.metric, found, claim.value), policy=policy
        )
        return _row(name, claim, status, f"of {arm}", _text(found))
    if pair is None:
        return _row(name, claim, Status.NOT_MEASURED, _no_arm(claim, record))
    figures = [_figure(record.arms.get(arm, {}), claim.metric) for arm in (pair.base, pair.arm)]
    if pair.verdict == "confounded":
        return _row(name, claim, Status.REFUSED, pair.reason)
    base, arm_figure = figures
    if base is None or arm_figure is None:
        return _row(name, claim, Status.NOT_MEASURED, f"{claim.metric} is not known of both arms")
    note = f"{claim.metric} {_text(base)} in {pair.base}, {_text(arm_figure)} in {pair.arm}"
    measured = _text(arm_figure / base) if base else ""
    status = _change(claim, base, arm_figure, policy)
    return _row(name, claim, status, note, measured)


def _change(claim: Claim, base: float, arm: float, policy: VerdictPolicy) -> Status:
    """The status of a claimed change of a figure, relative to the base's."""
    resolution = _resolution(claim.metric, base, arm)
    if claim.expect == "equal":
        return change_status((base, base), (base, arm), resolution=resolution, policy=policy)
    sign = 1.0 if claim.expect == "higher" else -1.0
    if claim.by_pct is None or base == 0.0:
        if abs(arm - base) <= resolution:
            return Status.NO_EFFECT
        return Status.HOLDS if (arm - base) * sign > 0.0 else Status.REVERSED
    wanted = base + sign * claim.by_pct / 100.0 * abs(base)
    return change_status((base, wanted), (base, arm), resolution=resolution, policy=policy)


def _resolution(metric: str, *values: float) -> float:
    if not metric.startswith("ncu_"):
        return 0.0
    least = SMALLEST_STALL if metric.startswith("ncu_stall_") else 0.0
    return max(least, MEASURED_RESOLUTION * max(abs(value) for value in values))


def _figure(columns: Mapping[str, object], metric: str) -> float | None:
    value = columns.get(metric)
    return float(value) if isinstance(value, int | float) else None


def _no_arm(claim: Claim, record: CompareRecord) -> str:
    levels = dict.fromkeys(level for pair in record.comparisons for level in (pair.base_level, pair.level))
    return f"{claim.experiment} has no arm at level {claim.level} of base {claim.base or 'any'} (levels: {', '.join(levels)})"


def _claimed(claim: Claim) -> tuple[str, str]:
    """The metric as it is compared, and the claimed figure, or the direction where no figure is claimed."""
    if claim.expect == "value":
        return claim.metric, _text(claim.value or 0.0)
    relative = f"{claim.metric} (arm/base)"
    if claim.expect == "equal":
        return relative, "1"
    if claim.by_pct is None:
        return relative, claim.expect
    sign = -1.0 if claim.expect in ("faster", "lower", "refused") else 1.0
    return relative, _text(1.0 + sign * claim.by_pct / 100.0)


def _row(
    name: str, claim: Claim, status: Status, note: str, measured: str = "", low: str = "", high: str = ""
) -> ClaimRow:
    metric, claimed = _claimed(claim)
    return ClaimRow(
        claim=name,
        text=claim.text,
        source=claim.source,
        experiment=claim.experiment,
        claimed_metric=metric,
        claimed=claimed,
        claimed_on=claim.card,
        measured=measured,
        measured_low=low,
        measured_high=high,
        status=str(status),
        note=note,
    )


def _text(value: float) -> str:
    return f"{value:.5g}"
