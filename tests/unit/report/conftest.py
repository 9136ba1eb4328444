"""Invented results: every design, hostile texts, with a card and without one; see benchmarks/invented_results.py."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "benchmarks"))


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with results of an invented card."""
    from invented_project import write_project
    from invented_results import invent

    root = tmp_path_factory.mktemp("lab")
    write_project(root)
    invent(root, root / "results")
    return root


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same without a GPU."""
    from invented_project import write_project
    from invented_results import invent

    from kernelab.device.identify import EMULATED

    root = tmp_path_factory.mktemp("bare")
    write_project(root)
    invent(root, root / "results", device=EMULATED)
    return root
