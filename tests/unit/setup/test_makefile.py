"""make, on a PATH of a few programs: what a beginner sees where something is missing."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@pytest.fixture
def make(root: Path, tmp_path: Path):
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("make", "sh", "sed"):
        (programs / name).symlink_to(str(shutil.which(name)))

    def run(*arguments: str, python: str | None = None) -> subprocess.CompletedProcess[str]:
        if python is not None:
            script = programs / "python3"
            script.write_text(f"#!{programs / 'sh'}\n{python}\n")
            script.chmod(0o755)
        environment = {"PATH": str(programs), "HOME": str(tmp_path)}
        command = [str(programs / "make"), "-f", str(root / "Makefile"), *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
        )

    return run


def test_no_python_is_one_clear_line(make):
    done = make("table")
    assert done.returncode != 0
    assert "kernelab: python3 not found; install Python 3.11 or newer" in done.stderr


def test_an_old_python_is_one_clear_line(make):
    # An interpreter that answers the question about its version as 3.10 does.
    done = make("table", python="exit 1")
    assert done.returncode != 0
    assert "kernelab: python3 is older than Python 3.11" in done.stderr


def test_help_names_the_two_commands(make):
    done = make("help")
    assert "make table: " in done.stdout
    assert "make test: " in done.stdout


def test_help_is_the_default(make):
    assert make().stdout == make("help").stdout


def test_every_target_of_the_readme_exists(root: Path):
    makefile = (root / "Makefile").read_text()
    for target in (
        "table",
        "test",
        "lint",
        "format",
        "doctor",
        "lock",
        "clean",
        "venv",
        "venv-dev",
        "venv-search",
        "venv-slurm",
    ):
        assert f"\n{target}:" in makefile


def test_only_the_locks_may_be_imported(make, tmp_path: Path):
    (tmp_path / "Makefile2").write_text("show:\n\t@echo PYTHONPATH=$$PYTHONPATH.\n")
    done = make("-f", str(tmp_path / "Makefile2"), "show", "PYTHONPATH=/elsewhere")
    assert done.stdout == "PYTHONPATH=.\n"


def test_install_script_is_understood_by_this_python(root: Path):
    done = subprocess.run(
        [sys.executable, str(root / "envs" / "install.py"), "--help"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert "--lock" in done.stdout
