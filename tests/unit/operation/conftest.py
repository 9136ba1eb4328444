"""An operation and its folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from axpby import OPERATION, Folder

from kernelab.plan.catalogue import Operation


@pytest.fixture
def operation() -> Operation:
    return Operation.model_validate(OPERATION)


@pytest.fixture
def folder(tmp_path: Path, operation: Operation) -> Folder:
    return Folder(tmp_path, operation)
