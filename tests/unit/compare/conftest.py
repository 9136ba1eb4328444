"""The fixture of synthetic results."""

from __future__ import annotations

from pathlib import Path

import pytest
from synthetic_results import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """A project with an empty results folder."""
    return Lab(tmp_path)
