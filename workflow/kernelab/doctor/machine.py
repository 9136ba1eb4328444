"""The machine apart from its card: Python, packages, disk, processor."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from kernelab.doctor.finding import Finding

OLDEST_PYTHON = (3, 11)
NEEDED_BYTES = 200e6  # a run's builds, raw samples and profiles of a hundred arms are some 100 MB
COMFORTABLE_BYTES = 2e9
GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
INSTALL = "make venv, then .venv/bin/python -m kernelab doctor"


def python(version: tuple[int, ...] = tuple(sys.version_info[:3])) -> Finding:
    """The interpreter."""
    shown = ".".join(str(part) for part in version)
    if version < OLDEST_PYTHON:
        return Finding(
            "python",
            "missing",
            f"{shown} is too old",
            "install Python 3.11 or newer: make venv PYTHON=python3.12",
        )
    return Finding("python", "ok", f"{shown}, {sys.executable}")


def packages(pyproject: Path) -> Finding:
    """The Python packages that pyproject.toml names, at versions that it allows; the compiler's wheels count as tools."""
    try:
        wanted = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]["dependencies"]
    except (OSError, KeyError, tomllib.TOMLDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return Finding(
            "packages", "warn", f"{pyproject.name}: {reason}", "run doctor in the project's folder"
        )
    requirements = [Requirement(line) for line in wanted]
    faults = unmet(
        requirement for requirement in requirements if not requirement.name.startswith("nvidia-cuda-")
    )
    if faults:
        return Finding("packages", "missing", ", ".join(faults), INSTALL)
    return Finding(
        "packages", "ok", f"snakemake {metadata.version('snakemake')} and the rest of pyproject.toml"
    )


def unmet(requirements: Iterable[Requirement]) -> list[str]:
    """The requirements that are not installed, or not at a version that they allow, as text."""
    faults = []
    for requirement in requirements:
        try:
            version = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            faults.append(f"{requirement.name} is not installed")
            continue
        if not requirement.specifier.contains(version, prereleases=True):
            faults.append(f"{requirement.name} {version} is not {requirement.specifier}")
    return faults


def results(folder: Path) -> Finding:
    """Whether results can be written."""
    there = _nearest(folder)
    try:
        with tempfile.NamedTemporaryFile(dir=there, prefix=".kernelab-doctor."):
            pass
    except OSError as error:
        return Finding(
            "results",
            "missing",
            f"{there} cannot be written to ({error.strerror})",
            "make it yours, or copy the project",
        )
    return Finding("results", "ok", f"{folder}/ can be written")


def disk(folder: Path) -> Finding:
    """Free space where the results go."""
    free = shutil.disk_usage(_nearest(folder)).free
    shown = f"{free / 1e9:.1f} GB free"
    if free < NEEDED_BYTES:
        return Finding("disk", "missing", f"{shown}, too little for one run", "make room")
    if free < COMFORTABLE_BYTES:
        return Finding("disk", "warn", f"{shown}; a large run may need more", "make room")
    return Finding("disk", "ok", shown)


def processor(governor: Path = GOVERNOR) -> Finding:
    """Cores, and the frequency governor: a slow host can fall behind the card."""
    cores = f"{os.cpu_count()} cores, {platform.machine()}"
    try:
        current = governor.read_text(encoding="ascii").strip()
    except OSError:
        return Finding("processor", "ok", cores)
    if current == "powersave":
        return Finding(
            "processor",
            "warn",
            f"{cores}, governor powersave: short kernels may wait for the host",
            "as root: cpupower frequency-set -g performance",
        )
    return Finding("processor", "ok", f"{cores}, governor {current}")


def _nearest(folder: Path) -> Path:
    folder = folder.absolute()
    while not folder.exists():
        folder = folder.parent
    return folder
