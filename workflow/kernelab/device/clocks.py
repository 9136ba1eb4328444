"""Locked SM clocks: only when asked and permitted, always freed again, and repaired after a killed run.

NVML cannot say whether clocks are locked, so a marker file beside the card's lock says who locked them. It is written
before the clocks are locked and removed after they are freed: whatever kills the process, the marker is there.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kernelab.device.lock import lock_folder
from kernelab.device.nvml import Monitor


@dataclass(frozen=True)
class LeftLocked:
    """Clocks that a run locked: to how many MHz, and by which process; `alive` when that still runs."""

    mhz: int
    pid: int
    alive: bool


@contextmanager
def locked_clocks(monitor: Monitor, mhz: int) -> Iterator[str]:
    """Lock the SM clock for the block. Hold the card's lock around it.

    Yields why it could not be done (not permitted, not supported), or an empty text. SIGTERM must be turned into an exception
    by the caller for the clocks to be freed at once; otherwise the next `repair_clocks` does it.
    """
    marker = _marker(monitor.uuid)
    refusal = "not tried"
    marker.write_text(json.dumps({"mhz": mhz, "pid": os.getpid(), "started": _started(os.getpid())}))
    try:
        refusal = monitor.set_locked_clocks(mhz)
        yield refusal
    finally:
        # A refused lock needs no freeing; a failed freeing leaves the marker for the next run to try.
        if refusal or not monitor.set_locked_clocks(None):
            marker.unlink(missing_ok=True)


def left_locked(uuid: str) -> LeftLocked | None:
    """What the marker of a card says, or None where there is none."""
    try:
        content = json.loads(_marker(uuid).read_text())
        pid = int(content["pid"])
        return LeftLocked(int(content["mhz"]), pid, alive=_started(pid) == content["started"] != "")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        return LeftLocked(0, 0, alive=False)


def repair_clocks(monitor: Monitor) -> str:
    """Free clocks that a killed run left locked. Hold the card's lock around it.

    Returns:
        what was done, or why it could not be, in a line; empty where there was nothing to do.
    """
    left = left_locked(monitor.uuid)
    if left is None or left.alive:
        return ""
    refusal = monitor.set_locked_clocks(None)
    if refusal:
        return (
            f"a killed run left the SM clock locked at {left.mhz} MHz, and it cannot be freed: {refusal}; "
            "run nvidia-smi -rgc as root"
        )
    with contextlib.suppress(OSError):
        _marker(monitor.uuid).unlink()
    return f"freed the SM clock, which a killed run had left locked at {left.mhz} MHz"


def _marker(uuid: str) -> Path:
    return lock_folder() / f"{uuid}.clocks"


def _started(pid: int) -> str:
    """When a process started, in clock ticks since boot (proc(5), field 22 of stat); empty where it does not run."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
