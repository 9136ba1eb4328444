"""Everything that the records say of one arm: its control facts, its code, its outcomes, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelab.compare.emulated import emulated_columns
from kernelab.compare.facts import Evidence, Fact, control_facts
from kernelab.compare.integrity import code_faults
from kernelab.compare.static import arm_launches, static_columns
from kernelab.device.identify import EMULATED
from kernelab.digests import Digests
from kernelab.operation.launches import LaunchConfig, LaunchRefused
from kernelab.plan.arms import Arm, Plan
from kernelab.records.build import BuildRecord, HotLoopRecord
from kernelab.records.check import CheckRecord
from kernelab.records.layout import SMALL, Layout
from kernelab.records.profile import ProfileRecord
from kernelab.records.record import R, StaleRecord, read_record, settings_digest
from kernelab.records.timing import SessionRecord, TimingRecord
from kernelab.timing.digests import arm_digest
from kernelab.timing.gate import machine_code
from kernelab.timing.job import BuiltArm


@dataclass(frozen=True)
class ArmAccount:
    """What is known of an arm.

    sass      hash of its machine code (all launches); empty for a library function and where nothing was built
    code      hash of machine code, launches and buffers: two arms of equal code do exactly the same; empty as `sass`
    faults    what contradicts its own records: a stale cubin, say
    status    ok, or why it cannot be compared by time; note says more
    """

    arm: Arm
    evidence: Evidence
    facts: Mapping[str, Fact]
    sass: str
    code: str
    outcomes: Mapping[str, Any]
    faults: tuple[str, ...]
    status: str
    note: str


class ArmReader:
    """Reads the records of a results folder, each once.

    Args:
        plan: of the results.
        layout: where they are.
        digests: what the records must be made from; None takes them as they are (another machine's results).

    Raises:
        UserError: from `account`, for a record that is missing, damaged, or not the plan's.
    """

    def __init__(self, plan: Plan, layout: Layout, digests: Digests | None) -> None:
        self._plan = plan
        self._layout = layout
        self._digests = digests
        self._records: dict[Path, Any] = {}
        self._faults: dict[str, tuple[str, ...]] = {}

    def build(self, arm: Arm) -> BuildRecord | None:
        """The build record of an arm; None for a library function, and for an arm that cannot be built."""
        if not arm.build or arm.excluded:
            return None
        digest = self._digests.build(arm.build) if self._digests else None
        return self._read(self._layout.build_record(arm.build), BuildRecord, digest)

    def account(self, arm: Arm, timing: TimingRecord | None, session: SessionRecord | None) -> ArmAccount:
        """All that is known of an arm, as it was timed in a session (None: it was not)."""
        build = self.build(arm)
        launches = self._launches(arm)
        evidence = Evidence(
            build=build,
            launches=launches,
            problem=_problem(self._plan, arm, timing),
            data=arm.data,
            l2=arm.l2,
            inputs=_inputs(arm, timing),
            environment=environment_facts(session),
        )
        status, note = self._status(arm, build)
        built = build if build is not None and build.status == "ok" else None
        static = static_columns(self._plan, arm, built) if built else {}
        return ArmAccount(
            arm=arm,
            evidence=evidence,
            facts=control_facts(evidence),
            sass=str(static.get("sass_sha256", "")),
            code=self._code(arm, built, launches),
            outcomes=static | _opcodes(built, launches) | self._counters(arm),
            faults=self._integrity(arm, built) + self._timed_other(arm, built, session),
            status=status,
            note=note,
        )

    def _launches(self, arm: Arm) -> tuple[LaunchConfig, ...]:
        if not arm.build:
            return ()
        try:
            return arm_launches(self._plan, arm)
        except LaunchRefused:
            return ()

    def _code(self, arm: Arm, build: BuildRecord | None, launches: tuple[LaunchConfig, ...]) -> str:
        if build is None or not launches or any(launch.entry not in build.entries for launch in launches):
            return ""
        kernel = self._plan.kernel(arm)
        return settings_digest(
            {
                "launches": [
                    (build.entries[x.entry].sass_sha256, x.grid, x.block, x.dynamic_shared, x.arguments)
                    for x in launches
                ],
                "workspaces": {
                    name: workspace.model_dump(mode="json") for name, workspace in kernel.workspaces.items()
                },
                "prepare": kernel.prepare and (arm.kernel, kernel.prepare),
            }
        )

    def _integrity(self, arm: Arm, build: BuildRecord | None) -> tuple[str, ...]:
        if build is None:
            return ()
        if arm.build not in self._faults:
            self._faults[arm.build] = code_faults(self._layout.build(arm.build), build)
        return self._faults[arm.build]

    def _timed_other(
        self, arm: Arm, build: BuildRecord | None, session: SessionRecord | None
    ) -> tuple[str, ...]:
        """Whether a session timed something else than the build, launches and problem of today."""
        if session is None or (arm.build and build is None):
            return ()
        built = {} if build is None else {arm.build: BuiltArm(cubin="", sass_sha256=machine_code(build))}
        try:
            now = arm_digest(self._plan, arm, built)
        except LaunchRefused:
            return ()
        then = session.members[arm.name].digest
        if now == then:
            return ()
        return (
            f"session {session.id} timed other code, launches or inputs of {arm.name} ({then[:12]}) "
            f"than its build has ({now[:12]})",
        )

    def _status(self, arm: Arm, build: BuildRecord | None) -> tuple[str, str]:
        if arm.excluded:
            return "not_measured", arm.excluded
        if build is not None and build.status != "ok":
            return build.status, build.note
        for problem in (SMALL, arm.problem):
            check = self._check(arm, problem, self._plan.device.id)
            if check is not None and check.status not in ("ok", "not_measured"):
                return check.status, check.note
        emulated = self._check(arm, SMALL, EMULATED.id) if arm.build else None
        if emulated is not None and emulated.status == "hazard":
            return emulated.status, emulated.note  # a right result on the card does not erase it
        return ("not_measured", arm.static_only) if arm.static_only else ("ok", "")

    def _check(self, arm: Arm, problem: str, device: str) -> CheckRecord | None:
        path = self._layout.check(arm.record_key, problem, device)
        digest = self._digests.check(arm.record_key, problem, device) if self._digests else None
        return self._current(path, CheckRecord, digest)

    def _counters(self, arm: Arm) -> dict[str, Any]:
        """Counters of the emulated device and of ncu, as far as there are records."""
        found: dict[str, Any] = {}
        small = self._check(arm, SMALL, EMULATED.id) if arm.build else None
        if small is not None:
            found |= emulated_columns(self._plan, arm, small)
        path = self._layout.profile(arm.record_key, arm.problem)
        profile = self._current(path, ProfileRecord, self._digests.profile(arm) if self._digests else None)
        if profile is not None:
            found |= profile.columns()
        return found

    def _current(self, path: Path, model: type[R], digest: str | None) -> R | None:
        """A record that is there only if somebody asked for it: None where it is not, or is left over from other code."""
        try:
            return self._read(path, model, digest) if path.is_file() else None
        except StaleRecord:
            return None

    def _read(self, path: Path, model: type[R], digest: str | None) -> R:
        if path not in self._records:
            self._records[path] = read_record(path, model, digest)
        record: R = self._records[path]
        return record


def _problem(plan: Plan, arm: Arm, timing: TimingRecord | None) -> dict[str, int | float]:
    """The values that were timed; the plan's where nothing was."""
    for timed in timing.problems if timing else ():
        if (timed.problem, timed.data) == (arm.problem, arm.data):
            return dict(timed.values)
    return dict(plan.problems[arm.problem].values)


def _inputs(arm: Arm, timing: TimingRecord | None) -> dict[str, str]:
    for timed in timing.problems if timing else ():
        if (timed.problem, timed.data) == (arm.problem, arm.data):
            return dict(timed.inputs_sha256)
    return {}


def environment_facts(session: SessionRecord | None) -> dict[str, str]:
    """What a session was measured under, as one mapping."""
    if session is None:
        return {}
    conditions = session.conditions
    found = {
        "driver": conditions.driver,
        "CUDA runtime": conditions.cuda_runtime,
        "CuPy": conditions.cupy,
        "cuBLAS": conditions.cublas,
        "timing method": str(conditions.kernelab_method),
        "locked SM clock": "none" if session.locked_clock_mhz is None else f"{session.locked_clock_mhz} MHz",
        **{f"switch {name}": value for name, value in conditions.environment.items()},
        **{f"policy {name}": str(value) for name, value in conditions.policy.items()},
        **session.environment_before,
    }
    return {name: value for name, value in found.items() if value}


def _opcodes(build: BuildRecord | None, launches: tuple[LaunchConfig, ...]) -> dict[str, Any]:
    """Counts of opcodes in the hot loop of the main launch: sass_FFMA, sass_STS ..."""
    if build is None or not launches or launches[-1].entry not in build.entries:
        return {}
    hot: HotLoopRecord | None = build.entries[launches[-1].entry].hot_loop
    if hot is None:
        return {}
    return {f"sass_{name}": count for name, count in sorted(hot.opcodes.items())}
