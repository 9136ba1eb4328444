"""The environment of a host and a card, from files and a driver made up for the purpose."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernelab.device.environment import STATE, capture, changed


def host(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)


CPU = "processor\t: 0\nmodel name\t: A Processor\nflags\t\t: fpu hypervisor\n"


def test_a_host_without_a_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_driver(monkeypatch)
    root = host(
        tmp_path,
        proc__cpuinfo=CPU,
        proc__loadavg="0.52 0.4 0.3 1/200 77\n",
        sys__devices__system__cpu__cpu0__cpufreq__scaling_governor="performance\n",
        sys__devices__system__cpu__intel_pstate__no_turbo="1\n",
        proc__1__cgroup="0::/kubepods/besteffort\n",
    )
    found = capture("GPU-x", root)
    assert found["host_cpu"] == "A Processor"
    assert found["host_governor"] == "performance"
    assert found["host_turbo"] == "off"
    assert found["host_virtual"] == "yes"
    assert found["host_container"] == "kubepods"
    assert found["host_load_1m"] == "0.52"
    assert not [name for name in found if name.startswith("gpu_")]


@pytest.mark.parametrize(
    ("file", "runtime"),
    [(".dockerenv", "docker"), ("run/.containerenv", "podman"), (".singularity.d", "apptainer")],
)
def test_containers_are_known_by_what_they_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, runtime: str
) -> None:
    no_driver(monkeypatch)
    assert capture("GPU-x", tmp_path)["host_container"] == "none"
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text("")
    assert capture("GPU-x", tmp_path)["host_container"] == runtime


class Refusal(Exception):
    """NVML's error."""


def driver(**answers: Any) -> SimpleNamespace:
    def unsupported(*_: Any) -> Any:
        raise Refusal

    nvml = SimpleNamespace(NVMLError=Refusal, NVML_CLOCK_SM=1, NVML_CLOCK_MEM=2, NVML_TEMPERATURE_GPU=0)
    nvml.nvmlInit = nvml.nvmlShutdown = lambda: None
    nvml.nvmlDeviceGetHandleByUUID = lambda uuid: uuid
    for name in (
        "DeviceGetVbiosVersion", "DeviceGetEccMode", "DeviceGetMigMode", "DeviceGetPersistenceMode", "DeviceGetComputeMode",
        "DeviceGetEnforcedPowerLimit", "DeviceGetPowerManagementDefaultLimit", "DeviceGetApplicationsClock",
        "DeviceGetMaxClockInfo", "DeviceGetTemperature", "SystemGetDriverVersion",
    ):  # fmt: skip
        setattr(nvml, f"nvml{name}", answers.get(name, unsupported))
    return nvml


def test_a_card_tells_what_it_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = driver(
        SystemGetDriverVersion=lambda: b"580.1",
        DeviceGetEnforcedPowerLimit=lambda handle: 700_000,
        DeviceGetEccMode=lambda handle: (1, 1),
        DeviceGetMigMode=lambda handle: (0, 0),
        DeviceGetTemperature=lambda handle, sensor: 41,
    )
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    found = {name: value for name, value in capture("GPU-x", tmp_path).items() if name.startswith("gpu_")}
    assert found == {
        "gpu_driver": "580.1",
        "gpu_power_limit_w": "700",
        "gpu_ecc": "on",
        "gpu_mig": "off",
        "gpu_temperature_c": "41",
    }


def test_a_card_that_nvml_does_not_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(uuid: str) -> Any:
        raise Refusal

    nvml = driver()
    nvml.nvmlDeviceGetHandleByUUID = unknown
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    assert not [name for name in capture("GPU-x", tmp_path) if name.startswith("gpu_")]


def test_what_changed_is_named_with_both_values() -> None:
    before = {"gpu_ecc": "on", "gpu_driver": "1", "host_load_1m": "0.1"}
    after = {
        "gpu_ecc": "off",
        "gpu_driver": "1",
        "host_load_1m": "7.5",
        "gpu_mig": "on",
        "gpu_temperature_c": "70",
    }
    assert changed(before, after) == {"gpu_ecc": ("on", "off"), "gpu_mig": ("unknown", "on")}
    assert changed(before, dict.fromkeys(STATE, "x") | before) == {}
