"""Nsight Compute as a command: where it is, how it is called, and what its words mean."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from kernelab.profile.columns import METRICS
from kernelab.records.profile import ProfileStatus

SECTIONS = (
    "SpeedOfLight",
    "ComputeWorkloadAnalysis",
    "MemoryWorkloadAnalysis",
    "MemoryWorkloadAnalysis_Chart",
    "MemoryWorkloadAnalysis_Tables",
    "WarpStateStats",
    "LaunchStats",
    "Occupancy",
    "SchedulerStats",
)
USUAL_PLACES = (
    "/usr/local/cuda/bin/ncu",
    "/usr/local/cuda-*/bin/ncu",
    "/opt/nvidia/nsight-compute/*/ncu",
    "/usr/local/cuda*/nsight-compute-*/ncu",
    "/opt/cuda/bin/ncu",
)
NO_NCU = "ncu (Nsight Compute) is not installed; get it from developer.nvidia.com/nsight-compute or with the CUDA toolkit"
PERMISSION_FIX = (
    "as root: echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' > /etc/modprobe.d/nvidia-profiler.conf and reboot "
    "(in a container: --cap-add=SYS_ADMIN)"
)


@dataclass(frozen=True)
class NcuRun:
    """What a call of ncu left: its exit code (None: past its limit, killed) and its words, the program's among them."""

    code: int | None
    words: str


def find_ncu() -> str | None:
    """The path of ncu: on PATH, or else the newest in the usual places; None where there is none."""
    if found := shutil.which("ncu"):
        return found
    places = [path for pattern in USUAL_PLACES for path in Path("/").glob(pattern.lstrip("/"))]
    usable = [path.as_posix() for path in places if os.access(path, os.X_OK)]
    return max(usable, key=_numbers, default=None)


def ncu_version(ncu: str) -> str:
    """The version that ncu says it is, such as 2025.3.1.0; empty where it says none."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        words = subprocess.run(
            [ncu, "--version"],
            capture_output=True,
            text=True,
            timeout=30,
            env=os.environ | {"LC_ALL": "C"},
            check=False,
        ).stdout
        if match := re.search(r"Version ([\d.]+)", words):
            return match[1]
    return ""


def command_line(
    ncu: str, report: Path, program: Sequence[str], clock_control: str, metrics: Sequence[str] = METRICS
) -> list[str]:
    """The command that profiles what a program launches between profiler start and stop."""
    sections = [part for section in SECTIONS for part in ("--section", section)]
    asked = ["--metrics", ",".join(metrics)] if metrics else []
    return [
        ncu,
        *("--config-file", "off"),
        *("--target-processes", "all"),
        *("--profile-from-start", "off"),
        *("--clock-control", clock_control),
        *sections,
        *asked,
        "--force-overwrite",
        *("--export", report.as_posix()),
        *program,
    ]


def run_ncu(command: Sequence[str], limit_s: float) -> NcuRun:
    """Run a command of ncu to its end, or kill it with all its children past the limit.

    It gets a temporary folder of its own: ncu locks a file in the common one, which another user may own.
    """
    package = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
    with TemporaryDirectory(prefix="kernelab-ncu-") as scratch:
        environment = os.environ | {"LC_ALL": "C", "TMPDIR": scratch, "PYTHONPATH": path}
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        try:
            words, _ = process.communicate(timeout=limit_s)
            return NcuRun(process.returncode, words.decode(errors="replace"))
        except subprocess.TimeoutExpired:
            return NcuRun(None, "")
        finally:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.communicate()


def judge(run: NcuRun, program_ended_well: bool, limit_s: float) -> tuple[ProfileStatus, str]:
    """What a run says before its report is read: a status, and a line with the fix.

    Args:
        run: what ncu left.
        program_ended_well: the profiled program itself says that it got to its end.
        limit_s: the limit that it ran under.
    """
    if run.code is None:
        return "timeout", f"ncu was not done after {limit_s:g} s (config.yaml: profile.limit_s)"
    if "ERR_NVGPUCTRPERM" in run.words:
        return "no_permission", f"no permission to read the GPU's counters; {PERMISSION_FIX}"
    if match := re.search(r"Failed to initialize the profiler:? ?(\w*)", run.words):
        reason = match[1] or "no reason given"
        return (
            "no_permission",
            f"ncu cannot reach the GPU's counters ({reason}), as under gVisor; use a machine or VM of its own",
        )
    if not program_ended_well:
        return "target_crashed", f"the launch died under ncu (exit {run.code}): {_last_words(run.words)}"
    return "ok", ""


def unknown_metrics(words: str) -> list[str]:
    """The metrics that ncu says this card does not have."""
    return re.findall(r"[Ff]ailed to find metric (?:regex:)?\^?\(?([\w.]+)", words)


def _last_words(words: str) -> str:
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    own = [line for line in lines if not line.startswith("==")]
    return (own or lines or ["it said nothing"])[-1][:300]


def _numbers(path: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", path))
