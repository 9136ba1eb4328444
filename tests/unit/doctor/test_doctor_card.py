from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kernelab.device.identify import Gpu
from kernelab.device.nvml import Process
from kernelab.doctor import card

UUID = "GPU-11111111-2222-3333-4444-555555555555"
GPU = Gpu(0, UUID, "NVIDIA RTX A6000", "sm_86")
MODULE = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (root@host)\nGCC version: 13\n"


class FakeMonitor:
    """NVML of a card with given users; its clocks can be freed unless it refuses."""

    others: tuple[Process, ...] | None = ()
    refusal = ""
    available = True
    why_not = ""

    def __init__(self, uuid: str) -> None:
        self.uuid = uuid

    def __enter__(self) -> FakeMonitor:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def other_processes(self) -> tuple[Process, ...] | None:
        return self.others

    def set_locked_clocks(self, mhz: int | None) -> str:
        assert mhz is None
        return self.refusal


@pytest.fixture
def monitor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> type[FakeMonitor]:
    fake = type("Fake", (FakeMonitor,), {})
    monkeypatch.setattr(card, "Monitor", fake)
    monkeypatch.setenv("KERNELAB_LOCK_DIR", str(tmp_path))
    return fake


def bus(folder: Path, vendor: str, kind: str) -> Path:
    device = folder / "0000:01:00.0"
    device.mkdir(parents=True)
    (device / "vendor").write_text(f"{vendor}\n")
    (device / "class").write_text(f"{kind}\n")
    return folder


def test_driver_and_its_version(tmp_path: Path):
    (tmp_path / "version").write_text(MODULE)
    finding = card.driver((13, 0), tmp_path / "version", tmp_path)
    assert (finding.state, finding.detail) == ("ok", "580.159.04, CUDA 13.0")


def test_driver_that_is_too_old_is_missing(tmp_path: Path):
    finding = card.driver((11, 4), tmp_path / "none", tmp_path)
    assert finding.state == "missing"
    assert "525" in finding.fix


@pytest.mark.parametrize(
    ("vendor", "kind", "said"),
    [
        ("0x10de", "0x030000", "on the bus"),
        ("0x10de", "0x030200", "on the bus"),
        ("0x10de", "0x040300", "no NVIDIA card"),  # a card's sound device alone
        ("0x8086", "0x030000", "no NVIDIA card"),
    ],
)
def test_no_driver_says_whether_a_card_wants_one(tmp_path: Path, vendor: str, kind: str, said: str):
    finding = card.driver(None, tmp_path / "none", bus(tmp_path / "pci", vendor, kind))
    assert finding.state == "warn"
    assert said in finding.detail


def test_a_container_without_its_gpu_is_told_from_a_missing_driver(tmp_path: Path):
    (tmp_path / "version").write_text(MODULE)
    assert "--gpus all" in card.driver(None, tmp_path / "version", tmp_path).fix


def test_gpus_hidden_by_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(card, "list_gpus", lambda: ())
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert "CUDA_VISIBLE_DEVICES" in card.gpus((13, 0))[0].fix
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert "nvidia-smi" in card.gpus((13, 0))[0].fix
    assert card.gpus(None) == []


def test_gpus_are_listed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(card, "list_gpus", lambda: (GPU,))
    assert card.gpus((13, 0))[0].detail == f"NVIDIA RTX A6000, sm_86, {UUID}"


@pytest.mark.parametrize(
    ("others", "exclusive", "state"),
    [
        ((), True, "ok"),
        ((Process(41, "python"),), True, "missing"),
        ((Process(41, "python"),), False, "warn"),
        (None, True, "warn"),
    ],
)
def test_users(monitor: type[FakeMonitor], others: tuple[Process, ...] | None, exclusive: bool, state: str):
    monitor.others = others
    assert card.users(UUID, exclusive).state == state


def test_users_are_named_as_far_as_they_are_known(monitor: type[FakeMonitor]):
    monitor.others = (Process(41, "python"), Process(42, ""))
    assert card.users(UUID, True).detail == "in use by 41 (python), 42"


def test_users_without_nvml(monitor: type[FakeMonitor]):
    monitor.available, monitor.why_not = False, "NVML does not answer"
    assert card.users(UUID, True).detail == "cannot be seen: NVML does not answer"


def test_clocks_that_a_killed_run_left_are_freed(monitor: type[FakeMonitor], tmp_path: Path):
    marker = tmp_path / f"{UUID}.clocks"
    marker.write_text(json.dumps({"mhz": 1500, "pid": 1, "started": "never"}))
    finding = card.clocks(GPU, asked=False)
    assert finding.state == "ok"
    assert "1500 MHz" in finding.detail
    assert not marker.exists()


def test_clocks_that_cannot_be_freed_stay_marked(monitor: type[FakeMonitor], tmp_path: Path):
    monitor.refusal = "Insufficient Permissions"
    marker = tmp_path / f"{UUID}.clocks"
    marker.write_text(json.dumps({"mhz": 1500, "pid": 1, "started": "never"}))
    finding = card.clocks(GPU, asked=False)
    assert finding.state == "warn"
    assert "nvidia-smi -rgc" in finding.fix
    assert marker.exists()


def test_clocks_of_a_run_that_goes_on_are_left_alone(monitor: type[FakeMonitor], tmp_path: Path):
    (tmp_path / f"{UUID}.clocks").write_text(json.dumps({"mhz": 1500, "pid": 1, "started": "never"}))
    with card.card_lock(UUID, wait_s=0):
        finding = card.clocks(GPU, asked=False)
    assert finding.state == "warn"
    assert (tmp_path / f"{UUID}.clocks").exists()


@pytest.mark.parametrize(
    ("user", "asked", "state"), [(0, True, "ok"), (0, False, "ok"), (1000, True, "warn"), (1000, False, "ok")]
)
def test_permission_to_lock_clocks(
    monkeypatch: pytest.MonkeyPatch, monitor: type[FakeMonitor], user: int, asked: bool, state: str
):
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert card.clocks(GPU, asked).state == state
