"""What the card says of itself: power, temperature, clocks, slowdowns, other processes.

Nothing here is an error: what NVML cannot say is None. NVML knows nothing of CUDA_VISIBLE_DEVICES and orders cards by
bus, so the card is always named by its UUID.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

T = TypeVar("T")

# nvmlClocksEventReasons (nvml.h). Idle is none: an idle card's clock is low because nothing runs.
REASONS = {
    0x002: "applications_clocks_setting",
    0x004: "sw_power_cap",
    0x008: "hw_slowdown",
    0x010: "sync_boost",
    0x020: "sw_thermal_slowdown",
    0x040: "hw_thermal_slowdown",
    0x080: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}
THERMAL_OR_HARDWARE = frozenset(
    {"hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown"}
)
"""The slowdowns that make a round suspect. A power cap is ordinary: large cards run at it."""


@dataclass(frozen=True)
class Reading:
    """One look at the card. Watts, degrees Celsius, MHz; `throttle` names the reasons (empty: none). None: not supported."""

    power_w: float | None = None
    temperature_c: float | None = None
    sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    throttle: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Limits:
    """What the card is set to: highest clocks in MHz, power limit in W. None: not supported."""

    max_sm_clock_mhz: float | None = None
    max_memory_clock_mhz: float | None = None
    power_limit_w: float | None = None


@dataclass(frozen=True)
class Process:
    """A process with a compute context on the card. `name` is empty where it cannot be seen (another container's)."""

    pid: int
    name: str


def throttle_reasons(bits: int) -> tuple[str, ...]:
    """The names of NVML's clock event reasons, without idle."""
    return tuple(name for bit, name in REASONS.items() if bits & bit)


class Monitor:
    """NVML for one card. Where NVML or the card is not there, `available` is False and every answer None.

    Args:
        uuid: of the GPU.
    """

    def __init__(self, uuid: str) -> None:
        self.uuid = uuid
        self.why_not = ""
        self._nvml: ModuleType | None = None
        self._handle: Any = None
        try:
            import pynvml
        except ImportError:
            self.why_not = "the package nvidia-ml-py is not installed"
            return
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            self.why_not = f"NVML does not answer: {error}"
            return
        self._nvml = pynvml
        try:
            self._handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
        except pynvml.NVMLError as error:
            self.why_not = f"NVML does not know {uuid}: {error}"
            self.close()

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def available(self) -> bool:
        return self._handle is not None

    def close(self) -> None:
        """Let NVML go. Later answers are None."""
        nvml, self._nvml, self._handle = self._nvml, None, None
        if nvml is not None:
            with contextlib.suppress(nvml.NVMLError):
                nvml.nvmlShutdown()

    def reading(self) -> Reading:
        """Power, temperature, clocks and slowdowns, now."""
        bits = self._ask(lambda n, h: int(n.nvmlDeviceGetCurrentClocksThrottleReasons(h)))
        return Reading(
            power_w=self._ask(lambda n, h: n.nvmlDeviceGetPowerUsage(h) / 1000.0),
            temperature_c=self._ask(
                lambda n, h: float(n.nvmlDeviceGetTemperature(h, n.NVML_TEMPERATURE_GPU))
            ),
            sm_clock_mhz=self._ask(lambda n, h: float(n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_SM))),
            memory_clock_mhz=self._ask(lambda n, h: float(n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_MEM))),
            throttle=None if bits is None else throttle_reasons(bits),
        )

    def limits(self) -> Limits:
        """The card's highest clocks and its power limit."""
        return Limits(
            max_sm_clock_mhz=self._ask(lambda n, h: float(n.nvmlDeviceGetMaxClockInfo(h, n.NVML_CLOCK_SM))),
            max_memory_clock_mhz=self._ask(
                lambda n, h: float(n.nvmlDeviceGetMaxClockInfo(h, n.NVML_CLOCK_MEM))
            ),
            power_limit_w=self._ask(lambda n, h: n.nvmlDeviceGetEnforcedPowerLimit(h) / 1000.0),
        )

    def other_processes(self, own: Collection[int] = ()) -> tuple[Process, ...] | None:
        """Processes with a compute context on the card, but for `own`.

        NVML numbers processes as the host does: inside a container one's own number may not be recognised. So ask before the
        own context is made.
        """
        running = self._ask(
            lambda n, h: [int(process.pid) for process in n.nvmlDeviceGetComputeRunningProcesses(h)]
        )
        if running is None:
            return None
        return tuple(Process(pid, _name(pid)) for pid in sorted(set(running) - set(own)))

    def set_locked_clocks(self, mhz: int | None) -> str:
        """Lock the SM clock, or free it with None. Returns why it could not be done, or an empty text."""
        nvml, handle = self._nvml, self._handle
        if nvml is None:
            return self.why_not or "NVML is closed"
        try:
            if mhz is None:
                nvml.nvmlDeviceResetGpuLockedClocks(handle)
            else:
                nvml.nvmlDeviceSetGpuLockedClocks(handle, mhz, mhz)
        except nvml.NVMLError as error:
            return str(error)
        return ""

    def _ask(self, question: Callable[[Any, Any], T]) -> T | None:
        nvml = self._nvml
        if nvml is None:
            return None
        # AttributeError: a driver or pynvml without this function.
        try:
            return question(nvml, self._handle)
        except (nvml.NVMLError, AttributeError):
            return None


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
