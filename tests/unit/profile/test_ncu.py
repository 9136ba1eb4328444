from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from kernelab.profile import ncu as ncu_module
from kernelab.profile.columns import METRICS
from kernelab.profile.ncu import NcuRun, command_line, find_ncu, judge, ncu_version, run_ncu, unknown_metrics


def script(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def test_the_command_marks_one_launch_and_leaves_settings_alone() -> None:
    command = command_line("/opt/ncu", Path("/r/x.ncu-rep"), ["python", "w.py"], "none")
    text = " ".join(command)
    assert command[0] == "/opt/ncu"
    assert command[-2:] == ["python", "w.py"]
    for option in (
        "config-file off",
        "profile-from-start off",
        "clock-control none",
        "export /r/x.ncu-rep",
        "section SpeedOfLight",
    ):
        assert f"--{option}" in text
    assert command[command.index("--metrics") + 1].split(",") == list(METRICS)
    assert "--metrics" not in command_line("ncu", Path("x"), [], "base", ())


@pytest.mark.parametrize(
    ("run", "well", "status", "words"),
    [
        (NcuRun(0, "==PROF== Report: x"), True, "ok", ""),
        (NcuRun(None, ""), False, "timeout", "limit_s"),
        (
            NcuRun(1, "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission"),
            True,
            "no_permission",
            "NVreg_Restrict",
        ),
        (
            NcuRun(1, "==ERROR== Failed to initialize the profiler: LibraryNotLoaded"),
            False,
            "no_permission",
            "LibraryNotLoaded",
        ),
        (NcuRun(9, "illegal address\n==PROF== Disconnected"), False, "target_crashed", "illegal address"),
        (
            NcuRun(1, "no cuBLAS here\n==ERROR== The application returned an error code (1)."),
            False,
            "target_crashed",
            "no cuBLAS",
        ),
        (NcuRun(0, ""), False, "target_crashed", "said nothing"),
    ],
)
def test_what_ncu_says_becomes_a_status_with_its_fix(
    run: NcuRun, well: bool, status: str, words: str
) -> None:
    found, note = judge(run, well, 300.0)
    assert found == status
    assert words in note
    assert "\n" not in note


def test_metrics_that_the_card_lacks_are_heard() -> None:
    words = "==ERROR== Failed to find metric a__b.sum\n==ERROR== Failed to find metric regex:^c__d.avg(\\.|$)"
    assert unknown_metrics(words) == ["a__b.sum", "c__d.avg"]
    assert unknown_metrics("==PROF== done") == []


def test_ncu_is_found_on_the_path_and_else_the_newest_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(ncu_module, "USUAL_PLACES", (f"{tmp_path}/nsight/*/ncu",))
    assert find_ncu() is None
    for version in ("2024.9.1", "2025.3.1", "2025.10.0"):
        (tmp_path / "nsight" / version).mkdir(parents=True)
        script(tmp_path / "nsight" / version / "ncu", "true")
    (tmp_path / "nsight" / "2025.10.0" / "ncu").chmod(0o644)
    assert find_ncu() == f"{tmp_path}/nsight/2025.3.1/ncu"
    script(tmp_path / "ncu", "true")
    assert find_ncu() == f"{tmp_path}/ncu"


def test_the_version_is_read_and_a_broken_ncu_has_none(tmp_path: Path) -> None:
    good = script(
        tmp_path / "a",
        "echo 'NVIDIA (R) Nsight Compute'; echo 'Version 2025.3.1.0 (build 1) (public-release)'",
    )
    assert ncu_version(str(good)) == "2025.3.1.0"
    assert ncu_version(str(script(tmp_path / "b", "exit 3"))) == ""
    assert ncu_version(str(tmp_path / "absent")) == ""


def test_a_run_has_its_own_temporary_folder_and_plain_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    run = run_ncu(
        [str(script(tmp_path / "n", 'echo "$LC_ALL $TMPDIR $PYTHONPATH"; echo oops >&2; exit 7'))], 10.0
    )
    assert run.code == 7
    assert run.words.startswith("C /")
    assert "kernelab-ncu-" in run.words
    assert "workflow" in run.words
    assert "oops" in run.words


def test_a_run_past_its_limit_is_killed_with_its_children(tmp_path: Path) -> None:
    body = f"sleep 60 & echo $! > {tmp_path}/pid; wait"
    begun = time.monotonic()
    assert run_ncu([str(script(tmp_path / "n", body))], 0.5).code is None
    assert time.monotonic() - begun < 10
    child = int((tmp_path / "pid").read_text())
    for _ in range(40):
        if not os.path.exists(f"/proc/{child}") or " Z " in Path(f"/proc/{child}/stat").read_text():
            return
        time.sleep(0.05)
    pytest.fail("the child lives on")
