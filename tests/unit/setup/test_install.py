"""envs/install.py, with pip and venv replaced: what is installed when, and what is said where it cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest


class Machine:
    """Records the commands that would be run; making a venv leaves an interpreter behind."""

    def __init__(self, install: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.install, self.venv, self.fails = install, folder / "venv", ""
        self.commands: list[str] = []
        (folder / "envs").mkdir()
        for lock in ("build", "base", "gpu-cuda12", "dev", "slurm"):
            (folder / "envs" / f"{lock}.lock").write_text(f"{lock}\n")
        monkeypatch.setattr(install, "ENVS", folder / "envs")
        monkeypatch.setattr(install, "_run", self.run)
        monkeypatch.setattr(install, "_put_on_path", lambda python, workflow: self.commands.append("path"))

    def run(self, command: list[str], failure: str) -> None:
        done = "venv" if "venv" in command else Path(command[-1]).stem
        self.commands.append(done)
        if done == self.fails:
            raise self.install.SetupError(failure)
        if done == "venv":
            (self.venv / "bin").mkdir(parents=True)
            (self.venv / "bin" / "python").touch()

    def make(self, main: str = "base", *extras: str) -> list[str]:
        self.commands.clear()
        self.install.install(self.venv, main, list(extras))
        return list(self.commands)


@pytest.fixture
def machine(install: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(install, tmp_path, monkeypatch)


ALL = ["venv", "build", "base", "path"]


def test_first_run_installs_and_second_does_nothing(machine: Machine):
    assert machine.make() == ALL
    assert machine.make() == []


def test_test_tools_are_added_to_what_is_there(machine: Machine):
    machine.make()
    assert machine.make("base", "dev") == ["dev"]
    assert machine.make("base", "dev") == []
    assert machine.make("base") == []
    assert machine.make("base", "slurm") == ["slurm"]
    assert machine.make("base", "dev", "slurm") == []


def test_a_touched_lock_installs_nothing_and_an_edited_one_everything(machine: Machine, tmp_path: Path):
    machine.make()
    (tmp_path / "envs" / "base.lock").touch()
    assert machine.make() == []
    (tmp_path / "envs" / "base.lock").write_text("other\n")
    assert machine.make() == ALL


def test_an_edited_dev_lock_leaves_the_rest(machine: Machine, tmp_path: Path):
    machine.make("base", "dev")
    (tmp_path / "envs" / "dev.lock").write_text("other\n")
    assert machine.make("base", "dev") == ["dev"]


def test_another_main_lock_starts_afresh(machine: Machine):
    machine.make()
    (machine.venv / "left-over").touch()
    assert machine.make("gpu-cuda12") == ["venv", "build", "gpu-cuda12", "path"]
    assert not (machine.venv / "left-over").exists()


@pytest.mark.parametrize("step", ["venv", "build", "base"])
def test_a_failed_installation_is_not_believed(machine: Machine, step: str):
    machine.fails = step
    with pytest.raises(machine.install.SetupError):
        machine.make()
    machine.fails = ""
    assert machine.make() == ALL


def test_a_failed_addition_is_tried_again_alone(machine: Machine):
    machine.fails = "dev"
    with pytest.raises(machine.install.SetupError, match=r"envs/dev\.lock"):
        machine.make("base", "dev")
    machine.fails = ""
    assert machine.make("base", "dev") == ["dev"]


@pytest.mark.parametrize("text", ["", "[]", "{"])
def test_a_damaged_state_starts_afresh(machine: Machine, text: str):
    machine.make()
    (machine.venv / machine.install.STATE).write_text(text)
    assert machine.make() == ALL


def test_a_moved_project_or_another_python_starts_afresh(machine: Machine):
    machine.make()
    state = machine.venv / machine.install.STATE
    for key in ("project", "python"):
        content = json.loads(state.read_text())
        state.write_text(json.dumps(content | {key: "other"}))
        assert machine.make() == ALL


def test_a_vanished_interpreter_starts_afresh(machine: Machine):
    machine.make()
    (machine.venv / "bin" / "python").unlink()
    assert machine.make() == ALL


def test_an_unknown_lock_is_said(machine: Machine):
    with pytest.raises(machine.install.SetupError, match=r"envs/gpu-cuda99\.lock"):
        machine.make("gpu-cuda99")


def test_python_without_venv_is_told_which_package(install: ModuleType, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(install.sys.modules, "ensurepip", None)
    with pytest.raises(install.SetupError, match=r"apt install python3\.\d+-venv"):
        install.check_python()


@pytest.mark.parametrize(
    ("driver", "lock"),
    [
        (None, "base"),
        ((11, 8), "base"),
        ((12, 0), "gpu-cuda12"),
        ((12, 9), "gpu-cuda12"),
        ((13, 0), "gpu-cuda13"),
        ((14, 1), "gpu-cuda13"),
    ],
)
def test_the_driver_chooses_the_lock(install: ModuleType, driver: tuple[int, int] | None, lock: str):
    assert install.main_lock(driver) == lock


def test_pip_is_told_to_check_hashes(install: ModuleType, monkeypatch: pytest.MonkeyPatch):
    seen: list[list[str]] = []
    monkeypatch.setattr(install, "_run", lambda command, failure: seen.append(command))
    install._pip(Path("python"), "base")
    assert {"--require-hashes", "--no-deps", "--no-build-isolation"} <= set(seen[0])
