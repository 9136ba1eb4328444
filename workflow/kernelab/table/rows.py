"""results/table.csv: one row per experiment and arm, from every record of a plan."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kernelab.build.cards import make_card
from kernelab.compare.emulated import emulated_columns
from kernelab.compare.static import static_columns
from kernelab.device.identify import EMULATED
from kernelab.digests import Digests
from kernelab.plan.arms import Arm, Plan, PlannedExperiment
from kernelab.records.build import BuildRecord
from kernelab.records.check import CheckRecord
from kernelab.records.layout import SMALL, Layout
from kernelab.records.profile import ProfileRecord
from kernelab.records.record import R, read_record
from kernelab.records.timing import TimedArm, TimingRecord

Row = dict[str, Any]

# The worse of two statuses is the one that stands further left.
SEVERITY = (
    "compile_error",
    "memory_fault",
    "hazard",
    "wrong_result",
    "launch_error",
    "timeout",
    "impossible",
    "not_measured",
    "ok",
)

NO_GPU = "not timed: no GPU on this machine"


class TableReader:
    """Reads the records of a plan, each once, and refuses one whose digest is not the plan's.

    Raises:
        UserError: from `rows`, for a record that is missing, damaged or stale.
    """

    def __init__(self, plan: Plan, layout: Layout, digests: Digests) -> None:
        self._plan = plan
        self._layout = layout
        self._digests = digests
        self._records: dict[Path, Any] = {}

    def rows(self) -> list[Row]:
        """Every row, in the plan's order; a cell that is missing from a row is empty."""
        return [row for experiment in self._plan.experiments.values() for row in self._experiment(experiment)]

    def _experiment(self, experiment: PlannedExperiment) -> Iterator[Row]:
        timing = self._timing(experiment.name)
        for name in (*experiment.arms, *experiment.references):
            yield self._row(experiment, self._plan.arms[name], timing)

    def _row(self, experiment: PlannedExperiment, arm: Arm, timing: TimingRecord | None) -> Row:
        plan = self._plan
        row: Row = {
            "experiment": experiment.name,
            "arm": arm.name,
            "kernel": arm.kernel,
            **_role(experiment, arm.name),
            "problem": arm.problem,
            **plan.problems[arm.problem].values,
            "arch": arm.settings.get("arch", ""),
            "toolchain": arm.settings.get("toolchain", ""),
            "device": plan.device.id,
        }
        faults: list[tuple[str, str]] = []
        if arm.excluded:
            return row | {"status": "not_measured", "note": arm.excluded}
        if arm.build:
            build = self._read(
                self._layout.build_record(arm.build), BuildRecord, self._digests.build(arm.build)
            )
            row |= static_columns(plan, arm, build)
            if build.status != "ok":
                faults.append(("not_measured" if build.status == "not_built" else build.status, build.note))
        if arm.static_only:
            faults.append(("not_measured", arm.static_only))
        checks = self._checks(arm)
        row |= _check_columns(checks)
        faults += [(check.status, check.note) for check in checks if check.status != "ok"]
        row |= self._emulated_columns(arm)
        notes: list[str] = []
        timed = timing.arms.get(arm.name) if timing is not None else None
        if timed is not None and timing is not None:
            row |= _timing_columns(arm, timing, timed)
            if timed.status != "ok":
                faults.append((timed.status, timed.note))
        elif not checks and not faults:
            faults.append(("not_measured", NO_GPU))
        elif plan.device.kind == "emulated":
            notes.append(NO_GPU)
        profile = self._profile(arm)
        if profile is not None:
            row |= profile.columns()
            if profile.status != "ok":
                notes.append(f"not profiled: {profile.note}")
        status, note = min(faults, key=lambda fault: SEVERITY.index(fault[0]), default=("ok", ""))
        return row | {"status": status, "note": "; ".join(part for part in (note, *notes) if part)}

    def _checks(self, arm: Arm) -> list[CheckRecord]:
        if not arm.runs or not (arm.build or self._plan.device.kind == "gpu"):
            return []
        problems = [SMALL]
        if self._plan.device.kind == "gpu" and self._plan.check.timed_problem:
            problems.append(arm.problem)
        key, device = arm.record_key, self._plan.device.id
        return [
            self._read(
                self._layout.check(key, problem, device),
                CheckRecord,
                self._digests.check(key, problem, device),
            )
            for problem in problems
        ]

    def _emulated_columns(self, arm: Arm) -> Row:
        emulates = self._plan.device.kind == "emulated" or self._plan.check.emulate
        if not arm.build or not arm.runs or not emulates:
            return {}
        path = self._layout.check(arm.build, SMALL, EMULATED.id)
        record = self._read(path, CheckRecord, self._digests.check(arm.build, SMALL, EMULATED.id))
        return emulated_columns(self._plan, arm, record)

    def _timing(self, experiment: str) -> TimingRecord | None:
        if self._plan.device.kind != "gpu" or not self._plan.timed_comparisons(experiment):
            return None
        return self._read(self._layout.timing(experiment), TimingRecord, self._digests.timing(experiment))

    def _profile(self, arm: Arm) -> ProfileRecord | None:
        if self._plan.device.kind != "gpu" or not arm.runs or arm.name not in self._plan.profiled:
            return None
        path = self._layout.profile(arm.record_key, arm.problem)
        return self._read(path, ProfileRecord, self._digests.profile(arm))

    def _read(self, path: Path, model: type[R], digest: str) -> R:
        if path not in self._records:
            self._records[path] = read_record(path, model, digest)
        record: R = self._records[path]
        return record


def _role(experiment: PlannedExperiment, name: str) -> Row:
    """What an arm is in its experiment: the variable and level that made it, and whether others are compared with it."""
    is_base = any(c.base == name for c in experiment.comparisons)
    for comparison in experiment.comparisons:
        if comparison.arm == name:
            return {"variable": comparison.variable, "level": comparison.level, "is_base": is_base}
    for comparison in experiment.comparisons:
        if comparison.base == name:
            return {"variable": comparison.variable, "level": comparison.base_level, "is_base": True}
    return {"variable": "reference", "level": "", "is_base": False}


def _timing_columns(arm: Arm, timing: TimingRecord, timed: TimedArm) -> Row:
    if timed.time_ms is None:
        return {}
    operation = next(p for p in timing.problems if p.problem == arm.problem and p.data == arm.data)
    tflops = operation.flops / timed.time_ms * 1e-9
    row: Row = {
        "time_ms": timed.time_ms,
        "time_low_ms": timed.time_low_ms,
        "time_high_ms": timed.time_high_ms,
        "tflops": tflops,
        "sm_clock_mhz": timed.sm_clock_mhz,
        "samples": timed.samples,
    }
    card = timing.card
    if card is not None and timed.sm_clock_mhz is not None:
        peak = make_card(card.name, card.arch, card.multiprocessors).fp32_tflops(timed.sm_clock_mhz)
        row["pct_of_peak"] = 100.0 * tflops / peak
    if timed.reference_ms is not None:
        row["pct_of_cublas"] = 100.0 * timed.reference_ms / timed.time_ms
    return row


def _check_columns(checks: list[CheckRecord]) -> Row:
    results = [result for check in checks for result in check.problems.values()]
    if not results:
        return {}
    absolute = [result.max_abs_error for result in results if result.max_abs_error is not None]
    relative = [result.rel_error for result in results if result.rel_error is not None]
    return {
        "correct": all(result.correct for result in results),
        "max_abs_error": max(absolute, default=None),
        "rel_error": max(relative, default=None),
    }
