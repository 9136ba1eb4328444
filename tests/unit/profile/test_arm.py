"""The step `profile` with an ncu that is made up: every way to fail is a status, and the files are always there."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from kernelab.plan.arms import Arm, Device, Plan
from kernelab.plan.config import CheckPolicy, ProfilePolicy, TimingPolicy
from kernelab.profile import arm as arm_module
from kernelab.profile.arm import Profiler, ProfileStep, profile_arm
from kernelab.profile.columns import METRICS, TIME
from kernelab.profile.ncu import NcuRun
from kernelab.records.profile import Metric, ProfiledKernel, ProfileRecord
from kernelab.records.record import read_record
from kernelab.timing.experiment import Refusal
from kernelab.timing.job import BuiltArm

CRASHED = Path(__file__).parents[2] / "data" / "crashed-target.ncu-rep"
NAME = "k/default@p"


@pytest.fixture
def step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProfileStep:
    monkeypatch.setenv("KERNELAB_LOCK_DIR", str(tmp_path / "locks"))
    plan = Plan(
        device=Device(id="d", kind="gpu", name="n", arch="sm_90", uuid="GPU-0"),
        target_card=None,
        operations={},
        problems={},
        builds={},
        arms={
            NAME: Arm(
                name=NAME,
                kernel="k",
                operation="o",
                build="",
                problem="p",
                data="uniform",
                l2="cold",
                settings={},
            )
        },
        experiments={},
        claims={},
        timing=TimingPolicy(),
        check=CheckPolicy(),
        profile=ProfilePolicy(limit_s=7.0),
    )
    folder = tmp_path / "profile"
    code = BuiltArm(cubin=str(tmp_path / "k.cubin"), sass_sha256="")
    return ProfileStep(plan, plan.arms[NAME], code, tmp_path, folder / "p.ncu-rep", folder / "p.json", "d")


class Ncu:
    """An ncu that does what it is told: writes the given report, says words, lets the program end well or not."""

    def __init__(
        self, words: str = "", code: int | None = 0, report: Path | None = None, ends_well: bool = True
    ) -> None:
        self.words, self.code, self.report, self.ends_well = words, code, report, ends_well
        self.commands: list[list[str]] = []
        self.limits: list[float] = []

    def __call__(self, command: Sequence[str], limit_s: float) -> NcuRun:
        self.commands.append(list(command))
        self.limits.append(limit_s)
        if self.report is not None:
            shutil.copy(self.report, command[command.index("--export") + 1])
        if self.ends_well:
            job = json.loads(Path(command[-1]).read_text())
            Path(job["done"]).touch()
        return NcuRun(self.code, self.words)

    def profiler(self) -> Profiler:
        return Profiler(find=lambda: "/opt/ncu", version=lambda _: "2025.3.1.0", run=self)


def profiled(step: ProfileStep, ncu: Ncu) -> ProfileRecord:
    record = profile_arm(step, profiler=ncu.profiler(), say=lambda _: None)
    assert step.report.is_file()
    assert read_record(step.record, ProfileRecord, "d") == record
    return record


def good(monkeypatch: pytest.MonkeyPatch, kernels: list[ProfiledKernel]) -> None:
    monkeypatch.setattr(arm_module, "read_report", lambda path: kernels)


def kernel(time: float | None) -> ProfiledKernel:
    return ProfiledKernel(name="k1", metrics={} if time is None else {TIME: Metric(value=time, unit="ns")})


def test_a_good_run_keeps_the_report_the_kernels_and_the_columns(
    step: ProfileStep, monkeypatch: pytest.MonkeyPatch
) -> None:
    good(monkeypatch, [kernel(2e6), kernel(1e6)])
    ncu = Ncu(report=CRASHED)
    record = profiled(step, ncu)
    assert (record.status, record.note, record.ncu) == ("ok", "", "2025.3.1.0")
    assert [one.name for one in record.kernels] == ["k1", "k1"]
    assert record.columns() == {"ncu_time_ms": pytest.approx(3.0)}
    assert step.report.read_bytes() == CRASHED.read_bytes()
    assert ncu.limits == [7.0]
    assert ncu.commands[0][-3:-1] == ["-m", "kernelab.profile.worker"]


def test_without_ncu_nothing_is_run_and_the_note_says_where_to_get_it(step: ProfileStep) -> None:
    ncu = Ncu()
    lines: list[str] = []
    record = profile_arm(step, say=lines.append, profiler=Profiler(find=lambda: None, run=ncu))
    assert lines == [f"{NAME}: no_ncu: {record.note}"]
    assert record.status == "no_ncu"
    assert "developer.nvidia.com" in record.note
    assert ncu.commands == []
    assert step.report.read_bytes() == b""


def test_a_refused_arm_is_not_launched(step: ProfileStep) -> None:
    ncu = Ncu()
    refused = dataclasses.replace(step, refused=Refusal("wrong_result", "3 of 8 elements"))
    record = profiled(refused, ncu)
    assert (record.status, record.note) == ("not_profiled", "wrong_result: 3 of 8 elements")
    assert ncu.commands == []


@pytest.mark.parametrize(
    ("ncu", "status"),
    [
        (Ncu("ERR_NVGPUCTRPERM"), "no_permission"),
        (Ncu(code=None, ends_well=False), "timeout"),
        (Ncu("illegal address", code=9, ends_well=False, report=CRASHED), "target_crashed"),
        (Ncu(report=CRASHED), "nan_counters"),
        (Ncu(), "nan_counters"),
    ],
)
def test_every_failure_is_a_status_without_figures(step: ProfileStep, ncu: Ncu, status: str) -> None:
    record = profiled(step, ncu)
    assert record.status == status
    assert record.note
    assert record.columns() == {}
    assert record.kernels == []
    assert step.report.read_bytes() == b""


def test_one_kernel_without_counters_spoils_the_sequence(
    step: ProfileStep, monkeypatch: pytest.MonkeyPatch
) -> None:
    good(monkeypatch, [kernel(2e6), kernel(None)])
    record = profiled(step, Ncu(report=CRASHED))
    assert record.status == "nan_counters"
    assert record.columns() == {}


def test_no_kernel_between_start_and_stop_is_told(step: ProfileStep, monkeypatch: pytest.MonkeyPatch) -> None:
    good(monkeypatch, [])
    assert "no kernel" in profiled(step, Ncu(report=CRASHED)).note


def test_a_metric_that_the_card_lacks_is_left_out_and_asked_no_more(
    step: ProfileStep, monkeypatch: pytest.MonkeyPatch
) -> None:
    good(monkeypatch, [kernel(1e6)])
    ncu = Ncu(report=CRASHED)
    plain: Callable[[Sequence[str], float], NcuRun] = ncu.__call__

    def once(command: Sequence[str], limit_s: float) -> NcuRun:
        run = plain(command, limit_s)
        return NcuRun(1, f"==ERROR== Failed to find metric {METRICS[0]}") if len(ncu.commands) == 1 else run

    record = profile_arm(step, profiler=Profiler(find=lambda: "ncu", version=lambda _: "", run=once))
    assert record.status == "ok"
    assert len(ncu.commands) == 2
    assert METRICS[0] not in ncu.commands[1][ncu.commands[1].index("--metrics") + 1].split(",")
