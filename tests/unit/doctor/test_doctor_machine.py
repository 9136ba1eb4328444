from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.requirements import Requirement

from kernelab.doctor import machine


def test_python_of_a_tests_own_interpreter_is_ok():
    assert machine.python().state == "ok"


def test_old_python_is_missing_and_says_how_to_choose_another():
    finding = machine.python((3, 10, 13))
    assert (finding.state, finding.detail) == ("missing", "3.10.13 is too old")
    assert "PYTHON=python3.12" in finding.fix


def test_unmet_names_what_is_absent_and_what_is_another_version():
    faults = machine.unmet(
        [Requirement("no-such-package-here>=1"), Requirement("pydantic>=999"), Requirement("pydantic>=2")]
    )
    assert faults[0] == "no-such-package-here is not installed"
    assert faults[1].startswith("pydantic 2")
    assert faults[1].endswith("is not >=999")
    assert len(faults) == 2


def test_packages_of_the_project_leaves_the_compiler_to_the_toolchains(tmp_path: Path):
    pyproject = tmp_path / "pyproject.toml"
    pyproject.write_text('[project]\ndependencies = ["snakemake>=9", "nvidia-cuda-nvrtc-cu12==0.0.1"]\n')
    assert machine.packages(pyproject).state == "ok"
    pyproject.write_text('[project]\ndependencies = ["snakemake>=999"]\n')
    assert machine.packages(pyproject).state == "missing"


@pytest.mark.parametrize("text", [None, "[project", "[project]\n"])
def test_packages_without_a_readable_pyproject_is_a_warning(tmp_path: Path, text: str | None):
    pyproject = tmp_path / "pyproject.toml"
    if text is not None:
        pyproject.write_text(text)
    assert machine.packages(pyproject).state == "warn"


def test_results_that_can_be_written_leave_nothing_behind(tmp_path: Path):
    assert machine.results(tmp_path / "results" / "deep").state == "ok"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc, which nobody can write to")
def test_results_that_cannot_be_written_are_missing():
    finding = machine.results(Path("/proc/kernelab"))
    assert finding.state == "missing"
    assert "/proc cannot be written to" in finding.detail


@pytest.mark.parametrize(("free", "state"), [(50e6, "missing"), (1e9, "warn"), (5e9, "ok")])
def test_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, free: float, state: str):
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda folder: SimpleNamespace(free=free))
    assert machine.disk(tmp_path / "results").state == state


def test_processor_warns_of_powersave_alone(tmp_path: Path):
    governor = tmp_path / "scaling_governor"
    governor.write_text("powersave\n")
    assert machine.processor(governor).state == "warn"
    governor.write_text("performance\n")
    assert machine.processor(governor).detail.endswith("governor performance")
    assert machine.processor(tmp_path / "none").detail.startswith(f"{os.cpu_count()} cores")
