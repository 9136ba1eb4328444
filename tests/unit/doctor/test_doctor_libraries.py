from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from kernelab.doctor import libraries


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch):
    def set_to(*names: str) -> None:
        found = [SimpleNamespace(metadata={"Name": name}, version="14.2.0") for name in names]
        monkeypatch.setattr(libraries.metadata, "distributions", lambda: found)
        monkeypatch.setattr(libraries, "IMPORT_CUPY", "")

    return set_to


def test_cupy_that_imports_is_ok(installed):
    installed("numpy", "cupy-cuda12x")
    assert libraries.cupy((13, 0)).detail == "cupy-cuda12x 14.2.0"
    assert libraries.cupy(None).state == "ok"


def test_cupy_newer_than_the_driver_is_missing(installed):
    installed("cupy-cuda13x")
    finding = libraries.cupy((12, 4))
    assert finding.state == "missing"
    assert "LOCK=gpu-cuda12" in finding.fix


def test_two_cupys_are_missing(installed):
    installed("cupy-cuda12x", "cupy-cuda13x")
    assert "overwrite each other" in libraries.cupy((13, 0)).detail


def test_no_cupy_is_missing(installed):
    installed("numpy")
    assert libraries.cupy((13, 0)).state == "missing"


@pytest.mark.parametrize("code", ["raise ImportError('libfoo.so: not found')", "import os; os.abort()"])
def test_cupy_that_does_not_import_is_missing(installed, monkeypatch: pytest.MonkeyPatch, code: str):
    installed("cupy-cuda12x")
    monkeypatch.setattr(libraries, "IMPORT_CUPY", code)
    finding = libraries.cupy((12, 8))
    assert finding.state == "missing"
    assert "does not import" in finding.detail


@pytest.mark.parametrize(("major", "folder"), [(12, "cublas"), (13, "cu13")])
def test_cublas_of_a_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, major: int, folder: str):
    library = tmp_path / "nvidia" / folder / "lib" / f"libcublas.so.{major}"
    library.parent.mkdir(parents=True)
    library.touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(libraries, "_loads", lambda name: False)
    assert str(library) in libraries.cublas((major,)).detail
    assert libraries.cublas((99,)).state == "warn"


def test_cublas_of_another_major_does_not_count(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(libraries, "_loads", lambda name: name == "libcublas.so.12")
    assert libraries.cublas((12,)).state == "ok"
    assert libraries.cublas((13,)).fix == "make venv LOCK=gpu-cuda13"
    assert libraries.cublas(()).state == "warn"
