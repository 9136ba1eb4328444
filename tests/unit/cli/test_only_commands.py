"""Commands that add an experiment work where config.yaml plans only some of them."""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path

import pytest
from keep_project import CONFIG, KeepProject

from kernelab.cli import ask, project
from kernelab.device.identify import EMULATED
from kernelab.errors import UserError
from kernelab.plan.load import load_plan


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    KeepProject(tmp_path)
    (tmp_path / "config.yaml").write_text(f"only: unroll\n{CONFIG}")
    return tmp_path


def test_a_new_experiment_is_checked_and_it_is_said_that_only_leaves_it_out(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = argparse.Namespace(name="block", base=["one"], vary="BLOCK=64,128", question=None, at=[])
    project.run_experiment(wanted)
    assert "config.yaml: only: does not name it yet; add block there" in capsys.readouterr().out
    assert set(load_plan(folder, lambda _: EMULATED, {"only": []}).experiments) == {"unroll", "block"}
    wrong = argparse.Namespace(name="wrong", base=["one"], vary="BLOCK=64,65", question=None, at=[])
    with pytest.raises(UserError, match="65 is not a level"):
        project.run_experiment(wrong)


def test_a_question_is_planned_whatever_only_names(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        called.append(command)
        return subprocess.CompletedProcess(command, 1)

    monkeypatch.setattr(subprocess, "run", run)
    options = argparse.Namespace(
        name="asked", base="one", vary="BLOCK=64,128", hold=[], at=[], quick=False, snakemake=[]
    )
    with pytest.raises(UserError, match="snakemake ended with 1"):
        ask.run(options)
    (command,) = called
    laid_over = folder / command[command.index("--configfile") + 1]
    assert list(load_plan(folder, lambda _: EMULATED, config_files=[laid_over]).experiments) == ["asked"]
