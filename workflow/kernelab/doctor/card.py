"""The card: driver, GPUs, who else uses them, and their clocks."""

from __future__ import annotations

import ctypes
import os
import re
from pathlib import Path

from kernelab.device.clocks import left_locked, repair_clocks
from kernelab.device.identify import Gpu, list_gpus
from kernelab.device.lock import card_lock
from kernelab.device.nvml import Monitor
from kernelab.doctor.finding import Finding
from kernelab.errors import UserError

DRIVER_VERSION = Path("/proc/driver/nvidia/version")
PCI = Path("/sys/bus/pci/devices")
NVIDIA = "0x10de"
DISPLAY = "0x03"  # PCI base class of display controllers, which a GPU without outputs has too
OLDEST_CUDA = 12


def driver_cuda() -> tuple[int, int] | None:
    """The newest CUDA that the driver supports, as (major, minor); None where there is no driver."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    version = ctypes.c_int()
    if cuda.cuDriverGetVersion(ctypes.byref(version)) != 0 or version.value == 0:
        return None
    return version.value // 1000, version.value % 1000 // 10


def driver(cuda: tuple[int, int] | None, version_file: Path = DRIVER_VERSION, pci: Path = PCI) -> Finding:
    """The NVIDIA driver; where there is none, whether there is a card that wants one."""
    if cuda is None:
        if version_file.exists():
            reason = (
                "the kernel has the driver, but libcuda.so.1 is not here, as in a container without its GPU"
            )
            return Finding(
                "driver", "warn", reason, "start the container with --gpus all (docker) or --nv (apptainer)"
            )
        if card_on_bus(pci):
            reason = "an NVIDIA card is on the bus, but no driver is installed: nothing is timed"
            return Finding(
                "driver",
                "warn",
                reason,
                "install NVIDIA's driver, 525 or newer (Debian: apt install nvidia-driver)",
            )
        return Finding(
            "driver",
            "warn",
            "no NVIDIA card: results are built and emulated, not timed",
            "run on a machine with a card",
        )
    shown = f"{driver_version(version_file)}, CUDA {cuda[0]}.{cuda[1]}"
    if cuda[0] < OLDEST_CUDA:
        return Finding("driver", "missing", f"{shown} is too old", "install NVIDIA's driver 525 or newer")
    return Finding("driver", "ok", shown)


def driver_version(version_file: Path = DRIVER_VERSION) -> str:
    """The version that the kernel's module states."""
    try:
        match = re.search(r"\s(\d+\.\d+(?:\.\d+)?)\s", version_file.read_text(encoding="utf-8"))
    except OSError:
        match = None
    return match.group(1) if match else "of unknown version"


def card_on_bus(pci: Path = PCI) -> bool:
    """Whether the PCI bus shows an NVIDIA GPU."""
    for device in pci.glob("*"):
        try:
            if (device / "vendor").read_text().strip() == NVIDIA and (
                device / "class"
            ).read_text().startswith(DISPLAY):
                return True
        except OSError:
            continue
    return False


def gpus(cuda: tuple[int, int] | None) -> list[Finding]:
    """One finding for each card that CUDA shows."""
    found = list_gpus()
    if found:
        return [Finding(f"gpu {gpu.index}", "ok", f"{gpu.name}, {gpu.arch}, {gpu.uuid}") for gpu in found]
    if cuda is None:
        return []
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    if hidden is not None:
        return [
            Finding(
                "gpu",
                "warn",
                f"CUDA shows none (CUDA_VISIBLE_DEVICES={hidden})",
                "unset CUDA_VISIBLE_DEVICES",
            )
        ]
    return [
        Finding("gpu", "warn", "the driver shows no card", "nvidia-smi says why; in a container: --gpus all")
    ]


def users(uuid: str, exclusive: bool) -> Finding:
    """Other processes on the card."""
    with Monitor(uuid) as monitor:
        if not monitor.available:
            return Finding(
                "others", "warn", f"cannot be seen: {monitor.why_not}", "see that nobody else uses the card"
            )
        others = monitor.other_processes()
    if others is None:
        return Finding(
            "others", "warn", "the driver does not say who uses the card", "see that nobody else does"
        )
    if not others:
        return Finding("others", "ok", "nobody else uses the card")
    shown = ", ".join(
        f"{process.pid} ({process.name})" if process.name else str(process.pid) for process in others
    )
    fix = "wait for them or end them" + (
        "; `timing: {busy: warn}` measures all the same" if exclusive else ""
    )
    return Finding("others", "missing" if exclusive else "warn", f"in use by {shown}", fix)


def clocks(gpu: Gpu, asked: bool) -> Finding:
    """Clocks that a killed run left locked (they are freed), and whether they could be locked."""
    if left_locked(gpu.uuid) is not None:
        try:
            with card_lock(gpu.uuid, wait_s=0), Monitor(gpu.uuid) as monitor:
                outcome = repair_clocks(monitor)
        except UserError as error:
            return Finding(
                "clocks",
                "warn",
                f"locked, and the card is being measured: {error}",
                "look again when it has ended",
            )
        reason, _, fix = outcome.partition("; ")
        if fix:
            return Finding("clocks", "warn", reason, fix)
        if reason:
            return Finding("clocks", "ok", reason)
    if os.geteuid() == 0:
        return Finding("clocks", "ok", "not locked; may be, as root")
    if asked:
        return Finding(
            "clocks",
            "warn",
            "the config wants them locked, which needs root",
            "run as root, or timing: {lock_clocks: false}",
        )
    return Finding("clocks", "ok", "not locked; locking them needs root")
