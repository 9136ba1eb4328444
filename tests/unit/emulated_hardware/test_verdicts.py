"""Planted faults on the emulated device, and the words of compute-sanitizer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from against_hardware import verdicts
from against_hardware.bare_launches import DONE
from against_hardware.fault import TWINS
from against_hardware.verdicts import (
    FAULTS,
    NO_VERDICT,
    Said,
    agree,
    compile_faults,
    emulated_hazards,
    parse_report,
)

from kernelab.build.toolchain import find_toolchain
from kernelab.device.emulated import Module
from kernelab.errors import UserError


def report(body: str, summary: str = "ERROR SUMMARY: 1 error") -> str:
    return f"========= COMPUTE-SANITIZER\n{body}========= {summary}\n"


OUT_OF_BOUNDS = """========= Invalid __{0}__ {1} of size 4 bytes
=========     at k+0x90 in faults.cu:4
=========     by thread (36,0,0) in block (1,0,0)
=========     Access at 0x7f2c4a000190 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f2c4a000000 of size 400 bytes
=========
========= Program hit CUDA_ERROR_LAUNCH_FAILED (error 719) on CUDA API call to cuCtxSynchronize.
"""
MISALIGNED = """========= Invalid __global__ read of size 16 bytes
=========     at k+0x90 in faults.cu:4
=========     by thread (1,0,0) in block (0,0,0)
=========     Access at 0x7f2c4a00001c is misaligned
"""
RACE = """========= {0}: Race reported between Write access at k+0x110 in faults.cu:5
=========     and Read access at k+0x130 in faults.cu:7 [256 hazards]
=========
"""
BARRIER = """========= Barrier error detected. Divergent thread(s) in warp.
=========     at k+0x110 in faults.cu:5
=========     by thread (0,0,0) in block (0,0,0)
"""
UNINITIALISED = """========= Uninitialized __global__ memory read of size 4 bytes
=========     at k+0x60 in faults.cu:3
=========     by thread (0,0,0) in block (0,0,0)
"""


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        (report(OUT_OF_BOUNDS.format("global", "read")), ("out_of_bounds_global",)),
        (report(OUT_OF_BOUNDS.format("shared", "write")), ("out_of_bounds_shared",)),
        (report(OUT_OF_BOUNDS.format("global", "atomic")), ("out_of_bounds_global",)),
        (report(MISALIGNED), ("misaligned",)),
        (
            report(RACE.format("Error"), "RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)"),
            ("race_shared",),
        ),
        (
            report(RACE.format("Warning"), "RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)"),
            ("race_shared",),
        ),
        (report(BARRIER), ("barrier_error",)),
        (report(UNINITIALISED), ("uninitialised_read",)),
        (report(f"{DONE}\n", "ERROR SUMMARY: 0 errors"), ()),
        (
            report(
                f"Program hit CUDA_ERROR_NOT_FOUND on cuGetProcAddress\n{DONE}\n", "ERROR SUMMARY: 1 error"
            ),
            (),
        ),
        (report("cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (2)\n", "ERROR SUMMARY: 0 errors"), (NO_VERDICT,)),
        (report("cuCtxSynchronize: CUDA_ERROR_ILLEGAL_INSTRUCTION (715)\n"), ("device_exception",)),
        ("========= COMPUTE-SANITIZER\n========= Error: Target application terminated\n", (NO_VERDICT,)),
        (
            report("========= Internal Sanitizer Error: out of memory\n", "ERROR SUMMARY: 0 errors"),
            (NO_VERDICT,),
        ),
        ("", (NO_VERDICT,)),
    ],
)
def test_the_words_of_each_tool(text, kinds):
    assert parse_report(text).kinds == kinds


def test_the_first_report_is_quoted_with_its_place():
    said = parse_report(report(MISALIGNED + OUT_OF_BOUNDS.format("global", "read")))
    assert said.kinds == ("misaligned", "out_of_bounds_global")
    assert said.line.startswith("Invalid __global__ read of size 16 bytes at k+0x90 in faults.cu:4")


@pytest.mark.parametrize(
    ("kinds", "hazards", "twin", "same"),
    [
        (("race_shared",), ["race_shared"], "planted", True),
        (("race_shared",), ["cp_async_not_waited"], "planted", True),
        (("barrier_error",), ["invalid_mask"], "planted", True),
        (("device_exception",), ["invalid_barrier"], "planted", True),
        (("device_exception",), ["race_shared"], "planted", False),
        (("misaligned",), ["out_of_bounds_global"], "planted", False),
        ((), ["race_shared"], "planted", False),
        (("race_shared",), [], "planted", False),
        ((), [], "planted", False),
        ((), [], "clean", True),
        ((), ["race_shared"], "clean", False),
        (("race_shared",), ["race_shared"], "clean", False),
        ((NO_VERDICT,), [], "clean", False),
    ],
)
def test_agreement(kinds, hazards, twin, same):
    assert agree(Said(kinds, ""), hazards, twin) is same


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Module:
    return compile_faults(tmp_path_factory.mktemp("faults"), find_toolchain("nvrtc"), "sm_90")[1]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "-"))
def test_only_the_planted_twin_has_the_hazard(module, fault):
    assert fault.kind in {hazard.kind for hazard in emulated_hazards(module, fault, "planted")}
    assert emulated_hazards(module, fault, "clean") == []


def test_the_faults_are_many_and_differ():
    assert len(FAULTS) >= 12
    assert {fault.tool for fault in FAULTS} == {"memcheck", "racecheck", "initcheck", "synccheck"}
    entries = [fault.entry(twin) for fault in FAULTS for twin in TWINS]
    assert len(set(entries)) == 2 * len(FAULTS)
    assert all(
        fault.text("planted").partition("(")[2] != fault.text("clean").partition("(")[2] for fault in FAULTS
    )


def answering(answers):
    def watch(sanitizer, tool, job, port):
        return answers(job.stem, tool)

    return watch


def expected(entry: str) -> Said:
    fault = next(fault for fault in FAULTS if entry in (fault.entry(twin) for twin in TWINS))
    if entry == fault.entry("clean"):
        return Said((), "")
    return Said(verdicts.SAME_AS.get(fault.kind, (fault.kind,))[:1], "said so")


def test_every_twin_is_watched_by_its_tool(monkeypatch, tmp_path):
    asked = {}

    def answers(entry, tool):
        asked[entry] = tool
        return expected(entry)

    monkeypatch.setattr(verdicts, "find_sanitizer", lambda: "compute-sanitizer")
    monkeypatch.setattr(verdicts, "watch", answering(answers))
    rows = verdicts.compare_verdicts(tmp_path, find_toolchain("nvrtc"), "sm_90", 2)
    assert asked == {fault.entry(twin): fault.tool for fault in FAULTS for twin in TWINS}
    assert len(rows) == len(asked)
    assert all(row.agree for row in rows)


def test_a_missing_verdict_is_asked_for_once_more_but_a_hang_is_not(monkeypatch, tmp_path):
    silent, hung = FAULTS[0].entry("planted"), FAULTS[1].entry("planted")
    count: dict[str, int] = {}

    def answers(entry, tool):
        count[entry] = count.get(entry, 0) + 1
        if entry == hung:
            return Said((NO_VERDICT,), "not done after 25 s")
        return Said((NO_VERDICT,), "") if entry == silent and count[entry] == 1 else expected(entry)

    monkeypatch.setattr(verdicts, "find_sanitizer", lambda: "compute-sanitizer")
    monkeypatch.setattr(verdicts, "watch", answering(answers))
    rows = verdicts.compare_verdicts(tmp_path, find_toolchain("nvrtc"), "sm_90", 2)
    assert (count[silent], count[hung]) == (2, 1)
    assert [row.fault for row in rows if not row.agree] == [FAULTS[1].name]


def fake_sanitizer(folder: Path, script: str) -> str:
    path = folder / "compute-sanitizer"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_a_tool_is_run_on_the_job(tmp_path):
    said = verdicts.watch(
        fake_sanitizer(tmp_path, 'echo "========= Barrier error detected. $*"; echo "========= ERROR SUMMARY: 1 error"'),
        "synccheck", tmp_path / "job.json", 50000,
    )  # fmt: skip
    assert said.kinds == ("barrier_error",)
    assert "--tool synccheck" in said.line
    assert "--port 50000" in said.line
    assert said.line.endswith(f"{sys.executable} {verdicts.TARGET} {tmp_path / 'job.json'}")


def test_a_hung_kernel_is_ended(monkeypatch, tmp_path):
    monkeypatch.setattr(verdicts, "LIMIT_S", 0.3)
    pid = tmp_path / "pid"
    said = verdicts.watch(
        fake_sanitizer(tmp_path, f"echo $$ > {pid}; sleep 60"), "memcheck", tmp_path / "job.json", 50000
    )
    assert said.kinds == (NO_VERDICT,)
    assert "not done after 0.3 s" in said.line
    assert (
        subprocess.run(["kill", "-0", pid.read_text().strip()], capture_output=True, check=False).returncode
        != 0
    )


def test_faults_that_do_not_compile_are_refused(monkeypatch, tmp_path):
    broken = verdicts.FAULTS[0].__class__("broken", "memcheck", "misaligned", "(float* C) { nonsense }", {})
    monkeypatch.setattr(verdicts, "FAULTS", (broken,))
    with pytest.raises(UserError, match=r"do not compile: .*nonsense"):
        compile_faults(tmp_path, find_toolchain("nvrtc"), "sm_90")
