"""Which arms build and check let through to the card, and why the others are held back."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from kernelab.digests import Digests
from kernelab.plan.arms import Arm, Plan
from kernelab.records.build import BuildRecord
from kernelab.records.check import CheckRecord
from kernelab.records.layout import SMALL, Layout
from kernelab.records.record import read_record
from kernelab.records.timing import ArmStatus
from kernelab.timing.experiment import Refusal
from kernelab.timing.job import BuiltArm


class Gate:
    """Reads the records of builds and checks.

    Raises:
        UserError: from any method, for a record that is missing, damaged or of other settings than the plan's.
    """

    def __init__(self, plan: Plan, layout: Layout, digests: Digests) -> None:
        self._plan = plan
        self._layout = layout
        self._digests = digests

    def built(self, arms: Iterable[Arm]) -> dict[str, BuiltArm]:
        """The machine code of the builds that compiled, by build key."""
        built = {}
        for key in {arm.build for arm in arms if arm.build}:
            record = self._build(key)
            if record.status == "ok":
                cubin = (self._layout.build(key) / "kernel.cubin").resolve()
                built[key] = BuiltArm(cubin=str(cubin), sass_sha256=machine_code(record))
        return built

    def refused(self, arms: Iterable[Arm]) -> dict[str, Refusal]:
        """The arms that are not to be launched, by name. A hazard is launched all the same: its time may be asked for."""
        refused = {}
        for arm in arms:
            if arm.build and (record := self._build(arm.build)).status != "ok":
                status: ArmStatus = "compile_error" if record.status == "compile_error" else "not_measured"
                refused[arm.name] = Refusal(status, record.note)
                continue
            for path in self._checks(arm):
                check = read_record(path, CheckRecord)
                if check.status not in ("ok", "hazard", "not_measured"):
                    refused[arm.name] = Refusal(check.status, check.note)
                    break
        return refused

    def _checks(self, arm: Arm) -> list[Path]:
        problems = [SMALL, arm.problem] if self._plan.check.timed_problem else [SMALL]
        device = self._plan.device.id
        return [self._layout.check(arm.record_key, problem, device) for problem in problems]

    def _build(self, key: str) -> BuildRecord:
        return read_record(self._layout.build_record(key), BuildRecord, self._digests.build(key))


def machine_code(build: BuildRecord) -> str:
    """One hash for all entries of a build: what a session remembers of the code that it timed."""
    codes = "".join(entry.sass_sha256 for _, entry in sorted(build.entries.items()))
    return hashlib.sha256(codes.encode()).hexdigest()
