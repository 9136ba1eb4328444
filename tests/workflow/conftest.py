"""Fixtures: a project that was run once, and a copy of it for each test."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from workflow_project import Project


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project after its first full run, to be copied."""
    project = Project(tmp_path_factory.mktemp("finished") / "project")
    run = project.snakemake()
    assert run.status == 0, run.output
    return project.root


@pytest.fixture
def project(finished: Path, tmp_path: Path) -> Project:
    """A fresh copy of the finished project: times of files are kept, so nothing is out of date."""
    copy = Project.__new__(Project)
    copy.root = tmp_path / "project"
    shutil.copytree(finished, copy.root, symlinks=True)
    return copy
