from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]


def _script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"envs_{name}", ROOT / "envs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.fixture(scope="session")
def wheelhouse() -> ModuleType:
    """envs/wheelhouse.py, which is no part of the package."""
    return _script("wheelhouse")


@pytest.fixture
def install() -> ModuleType:
    """envs/install.py, freshly loaded."""
    return _script("install")
