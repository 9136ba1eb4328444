"""The programs that builds and profiles call."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from kernelab.build.toolchain import TOOLCHAINS, find_toolchain, identity
from kernelab.doctor.finding import Finding
from kernelab.errors import UserError
from kernelab.profile.ncu import NO_NCU, PERMISSION_FIX, find_ncu, ncu_version

DRIVER_SETTINGS = Path("/proc/driver/nvidia/params")
OWN_STATUS = Path("/proc/self/status")
CAP_SYS_ADMIN, CAP_PERFMON = 21, 38  # linux/capability.h


def toolchains(needed: Iterable[str]) -> list[Finding]:
    """Each compiler with its disassembler; one that no build uses may be absent."""
    return [_toolchain(name, name in needed) for name in TOOLCHAINS]


def _toolchain(name: str, needed: bool) -> Finding:
    try:
        found = identity(find_toolchain(name))
    except UserError as error:
        reason, _, fix = str(error).rpartition(": ")
        if needed:
            return Finding(name, "missing", reason, fix)
        return Finding(name, "ok", "not here; the config does not use it")
    return Finding(
        name,
        "ok",
        f"{found['compiler']}, {found['disassembler']}" + ("" if needed else "; the config does not use it"),
    )


def ncu(needed: bool) -> Finding:
    """Nsight Compute's command line."""
    program = find_ncu()
    if program is None:
        if not needed:
            return Finding("ncu", "ok", "not here; the config does not use it")
        reason, _, fix = NO_NCU.partition("; ")
        return Finding("ncu", "warn", f"{reason}: the ncu_ columns stay empty", fix)
    version = ncu_version(program)
    if not version:
        return Finding("ncu", "warn", f"{program} does not run", NO_NCU.partition("; ")[2])
    return Finding("ncu", "ok", f"{version}, {program}")


def counters(settings: Path = DRIVER_SETTINGS, status: Path = OWN_STATUS) -> Finding:
    """Whether this user may read the card's performance counters. Only a profile proves it: a virtual machine may refuse too."""
    try:
        restricted = re.search(
            r"^RmProfilingAdminOnly:\s*(\d)", settings.read_text(encoding="utf-8"), re.MULTILINE
        )
    except OSError:
        restricted = None
    if restricted is None:
        return Finding(
            "counters", "ok", "the driver does not say who may read them; the first profile will tell"
        )
    if restricted.group(1) == "0":
        return Finding("counters", "ok", "everybody may read them")
    if privileged(status):
        return Finding("counters", "ok", "administrators may read them, and this is one")
    return Finding(
        "counters", "warn", "only administrators may read them: ncu will be refused", PERMISSION_FIX
    )


def privileged(status: Path = OWN_STATUS) -> bool:
    """Whether this process holds CAP_SYS_ADMIN or CAP_PERFMON."""
    try:
        effective = re.search(r"^CapEff:\s*([0-9a-f]+)", status.read_text(encoding="ascii"), re.MULTILINE)
    except OSError:
        return os.geteuid() == 0
    if effective is None:
        return os.geteuid() == 0
    return bool(int(effective.group(1), 16) & (1 << CAP_SYS_ADMIN | 1 << CAP_PERFMON))
