"""`only` from the command line: the jobs of the named experiments and no others."""

from __future__ import annotations

from pathlib import Path

import pytest
from workflow_project import Job, Project

ALONE: set[Job] = {
    ("build", "alone default"),
    ("build", "alone BLOCK=128"),
    ("check", "emulated alone default small"),
    ("check", "emulated alone BLOCK=128 small"),
    ("compare", "alone"),
}
VERSUS: set[Job] = {
    ("build", "left default"),
    ("build", "right default"),
    ("check", "emulated left default small"),
    ("check", "emulated right default small"),
    ("compare", "versus"),
}
TABLES: set[Job] = {(rule, "") for rule in ("plan", "toolchain", "table", "comparisons", "claims")}


@pytest.fixture
def new(tmp_path: Path) -> Project:
    """A project before its first run."""
    return Project(tmp_path / "project")


@pytest.mark.parametrize(
    ("only", "wanted"), [("[alone]", ALONE), ("alone", ALONE), ("[versus, alone]", ALONE | VERSUS)]
)
def test_only_the_jobs_of_the_named_experiments(new: Project, only: str, wanted: set[Job]) -> None:
    run = new.snakemake("-n", "results/table.csv", "--config", f"only={only}")
    assert run.status == 0, run.output
    assert run.jobs == wanted | TABLES


def test_an_unknown_name_ends_with_one_line(new: Project) -> None:
    run = new.snakemake("-n", "results/table.csv", "--config", "only=[alon]")
    assert run.status != 0
    assert "kernelab: --config: only: alon is no experiment; did you mean alone?" in run.output
    assert "Traceback" not in run.output
