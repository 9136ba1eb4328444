"""What a time depends on that no experiment varies: the card's settings and the host's, captured before and after a session.

Read through NVML, /proc and /sys alone, in about 2 ms and without a CUDA context. What cannot be read is absent, never guessed.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kernelab.device.card import cupy_version

STATE = frozenset({"gpu_temperature_c", "host_load_1m"})
"""What moves by itself while a session runs: recorded, and never a difference between arms. All the rest must stand still."""

_CPU0 = "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
_CONTAINER_FILES = {".dockerenv": "docker", "run/.containerenv": "podman", ".singularity.d": "apptainer"}
_CONTAINER_GROUPS = re.compile(r"docker|containerd|kubepods|libpod|lxc")


def capture(uuid: str, root: Path = Path("/")) -> dict[str, str]:
    """The environment of a GPU and its host, now; keys are readable names, values text.

    Args:
        uuid: of the GPU; NVML ignores CUDA_VISIBLE_DEVICES, so an index would not do.
        root: where /proc and /sys are.
    """
    return {**_gpu(uuid), **_host(root)}


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """The settings that moved between two captures, with both values (`unknown` where one could not be read)."""
    names = sorted((before.keys() | after.keys()) - STATE)
    pairs = {name: (before.get(name, "unknown"), after.get(name, "unknown")) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _gpu(uuid: str) -> dict[str, str]:
    try:
        import pynvml as nvml

        nvml.nvmlInit()
    except Exception:  # no package, no driver, another driver's library: the host is still worth recording
        return {}
    questions: dict[str, Callable[[Any], Any]] = {
        "gpu_driver": lambda h: nvml.nvmlSystemGetDriverVersion(),
        "gpu_vbios": nvml.nvmlDeviceGetVbiosVersion,
        "gpu_power_limit_w": lambda h: nvml.nvmlDeviceGetEnforcedPowerLimit(h) / 1000,
        "gpu_power_limit_default_w": lambda h: nvml.nvmlDeviceGetPowerManagementDefaultLimit(h) / 1000,
        "gpu_application_sm_mhz": lambda h: nvml.nvmlDeviceGetApplicationsClock(h, nvml.NVML_CLOCK_SM),
        "gpu_application_memory_mhz": lambda h: nvml.nvmlDeviceGetApplicationsClock(h, nvml.NVML_CLOCK_MEM),
        "gpu_max_sm_mhz": lambda h: nvml.nvmlDeviceGetMaxClockInfo(h, nvml.NVML_CLOCK_SM),
        "gpu_ecc": lambda h: _switch(nvml.nvmlDeviceGetEccMode(h)[0]),
        "gpu_mig": lambda h: _switch(nvml.nvmlDeviceGetMigMode(h)[0]),
        "gpu_persistence": lambda h: _switch(nvml.nvmlDeviceGetPersistenceMode(h)),
        "gpu_compute_mode": nvml.nvmlDeviceGetComputeMode,
        "gpu_temperature_c": lambda h: nvml.nvmlDeviceGetTemperature(h, nvml.NVML_TEMPERATURE_GPU),
    }
    found: dict[str, str] = {}
    try:
        handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
        for name, question in questions.items():
            # AttributeError: a driver or pynvml without this function.
            with contextlib.suppress(nvml.NVMLError, AttributeError):
                answer = question(handle)
                text = answer.decode() if isinstance(answer, bytes) else answer
                found[name] = f"{text:g}" if isinstance(text, float) else str(text)
    except nvml.NVMLError:
        return {}
    finally:
        with contextlib.suppress(nvml.NVMLError):
            nvml.nvmlShutdown()
    return found


def _switch(value: int) -> str:
    return "on" if value else "off"


def _host(root: Path) -> dict[str, str]:
    cpu = _text(root / "proc/cpuinfo")
    model = re.search(r"^model name\s*:\s*(.+)$", cpu, re.MULTILINE)
    governor = _text(root / _CPU0)
    load = _text(root / "proc/loadavg").partition(" ")[0]
    found = {
        "host_kernel": platform.release(),
        "host_cpu": model[1].strip() if model else "",
        "host_cpus": str(len(os.sched_getaffinity(0))),
        "host_governor": governor,
        "host_turbo": _turbo(root),
        "host_virtual": "yes" if re.search(r"^flags\s*:.*\bhypervisor\b", cpu, re.MULTILINE) else "no",
        "host_container": _container(root),
        "host_load_1m": load,
        "python": platform.python_version(),
        "cupy": cupy_version(),
    }
    return {name: value for name, value in found.items() if value}


def _turbo(root: Path) -> str:
    if no_turbo := _text(root / "sys/devices/system/cpu/intel_pstate/no_turbo"):
        return "off" if no_turbo == "1" else "on"
    if boost := _text(root / "sys/devices/system/cpu/cpufreq/boost"):
        return "on" if boost == "1" else "off"
    return ""


def _container(root: Path) -> str:
    for name, runtime in _CONTAINER_FILES.items():
        if (root / name).exists():
            return runtime
    found = _CONTAINER_GROUPS.search(_text(root / "proc/1/cgroup"))
    return found[0] if found else "none"


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
