from __future__ import annotations

import os
from pathlib import Path

import pytest

from kernelab.doctor import tools
from kernelab.errors import UserError
from kernelab.profile import ncu as profile_ncu

PARAMS = "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: {}\nPreserveVideoMemoryAllocations: 0\n"
EVERYTHING = "Name:\tpython\nCapEff:\t000001ffffffffff\n"
NOTHING = "Name:\tpython\nCapEff:\t0000000000000000\n"
PERFMON = "Name:\tpython\nCapEff:\t0000004000000000\n"


@pytest.fixture(autouse=True)
def no_ncu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty PATH and no usual places; returns the folder that is PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(profile_ncu, "USUAL_PLACES", ())
    return folder


def program(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_a_needed_toolchain_that_is_absent_is_missing_with_its_fix(monkeypatch: pytest.MonkeyPatch):
    def absent(name: str):
        raise UserError(f"toolchain {name}: not found: install it")

    monkeypatch.setattr(tools, "find_toolchain", absent)
    nvrtc, nvcc = tools.toolchains({"nvrtc"})
    assert (nvrtc.state, nvrtc.detail, nvrtc.fix) == ("missing", "toolchain nvrtc: not found", "install it")
    assert (nvcc.state, nvcc.fix) == ("ok", "")


def test_the_pinned_compiler_is_found():
    nvrtc = tools.toolchains({"nvrtc"})[0]
    assert nvrtc.state == "ok"
    assert nvrtc.detail.startswith("nvrtc 1")


def test_ncu_absent_warns_only_where_profiles_are_wanted():
    assert tools.ncu(needed=True).state == "warn"
    assert "get it" in tools.ncu(needed=True).fix
    assert tools.ncu(needed=False).state == "ok"


def test_ncu_on_path_says_its_version(no_ncu: Path):
    program(
        no_ncu,
        "ncu",
        "echo 'NVIDIA (R) Nsight Compute Command Line Profiler'; echo 'Version 2025.3.1.0 (build 36398880)'",
    )
    finding = tools.ncu(needed=True)
    assert finding.state == "ok"
    assert finding.detail == f"2025.3.1.0, {no_ncu / 'ncu'}"


def test_ncu_that_does_not_run_is_a_warning(no_ncu: Path):
    program(no_ncu, "ncu", "echo 'cannot open shared object' >&2; exit 127")
    assert "does not run" in tools.ncu(needed=True).detail


@pytest.mark.parametrize(
    ("restricted", "status", "state"),
    [("0", NOTHING, "ok"), ("1", NOTHING, "warn"), ("1", EVERYTHING, "ok"), ("1", PERFMON, "ok")],
)
def test_counters(tmp_path: Path, restricted: str, status: str, state: str):
    (tmp_path / "params").write_text(PARAMS.format(restricted))
    (tmp_path / "status").write_text(status)
    finding = tools.counters(tmp_path / "params", tmp_path / "status")
    assert finding.state == state
    assert bool(finding.fix) == (state == "warn")


def test_counters_of_a_driver_that_does_not_say(tmp_path: Path):
    assert "the first profile will tell" in tools.counters(tmp_path / "none").detail


def test_without_proc_root_is_privileged(tmp_path: Path):
    assert tools.privileged(tmp_path / "none") == (os.geteuid() == 0)
