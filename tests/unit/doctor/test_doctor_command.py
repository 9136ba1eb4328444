from __future__ import annotations

import io
import json
import shutil
import sys
from pathlib import Path

import pytest

from kernelab.cli import doctor as command
from kernelab.doctor.finding import Finding, ready
from kernelab.doctor.needs import read_needs
from kernelab.doctor.show import as_json, as_text, print_table, summary

ROOT = Path(__file__).parents[3]
OK = Finding("python", "ok", "3.12")
WARN = Finding("driver", "warn", "[no] card", "buy one")
MISSING = Finding("nvrtc", "missing", "not here", "install it")


def test_ready_unless_something_is_missing():
    assert ready([OK, WARN])
    assert not ready([OK, MISSING])


def test_text_has_a_line_per_finding_and_its_fix():
    lines = as_text([OK, WARN, MISSING]).splitlines()
    assert lines == [
        "ok      python  3.12",
        "warn    driver  [no] card",
        "                -> buy one",
        "missing nvrtc   not here",
        "                -> install it",
        "not ready: 1 missing, 1 to know of",
    ]


def test_summary():
    assert summary([OK]) == "ready"
    assert summary([OK, WARN]) == "ready: 1 to know of"


def test_table_prints_brackets_as_they_are():
    out = io.StringIO()
    print_table([OK, WARN], out)
    assert "[no] card" in out.getvalue()
    assert "-> buy one" in out.getvalue()


def test_json():
    content = json.loads(as_json([OK, MISSING]))
    assert content["ready"] is False
    assert content["findings"][1] == {
        "name": "nvrtc",
        "state": "missing",
        "detail": "not here",
        "fix": "install it",
    }


@pytest.mark.parametrize(("finding", "status"), [(WARN, 0), (MISSING, 1)])
@pytest.mark.parametrize("form", ["table", "json"])
def test_exit_status(monkeypatch: pytest.MonkeyPatch, capsys, finding: Finding, status: int, form: str):
    monkeypatch.setattr(command, "examine", lambda root: [OK, finding])
    assert command.doctor(Path(), form) == status
    assert finding.detail in capsys.readouterr().out


def test_terminal_gets_the_table(monkeypatch: pytest.MonkeyPatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    out = Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(command, "examine", lambda root: [OK])
    assert command.doctor(Path()) == 0
    assert "ready" in out.getvalue()


def test_a_folder_without_a_project_is_told_so(tmp_path: Path):
    needs, config = read_needs(tmp_path)
    assert config.state == "missing"
    assert config.detail.startswith("config.yaml")
    assert needs.toolchains == {"nvrtc"}


def test_the_real_project_is_examined_without_a_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    for name in ("pyproject.toml", "config.yaml"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "kernels", tmp_path / "kernels")
    monkeypatch.setattr(command, "list_gpus", lambda: ())
    monkeypatch.setattr(command.card, "list_gpus", lambda: ())
    monkeypatch.setattr(command.card, "driver_cuda", lambda: None)
    findings = {finding.name: finding for finding in command.examine(tmp_path)}
    assert findings["config"].state == "ok"
    assert findings["nvrtc"].state == "ok"
    assert findings["driver"].state == "warn"
    assert "ncu" not in findings
    assert not (tmp_path / "results").exists()
