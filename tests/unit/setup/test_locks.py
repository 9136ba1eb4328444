"""The locks are hash-pinned, complete, in agreement, and name no place."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCKS = ("base", "gpu-cuda12", "gpu-cuda13", "dev", "search", "slurm", "build")
EXTRAS = {
    "base": "cupy",
    "gpu-cuda12": "cuda12",
    "gpu-cuda13": "cuda13",
    "dev": "dev",
    "search": "search",
    "slurm": "slurm",
}
PYTHONS = ("3.11", "3.12", "3.13")


@pytest.fixture
def pins(root: Path, wheelhouse: ModuleType):
    def read(lock: str, python: str) -> dict[str, object]:
        found = list(wheelhouse.read_lock((root / "envs" / f"{lock}.lock").read_text()))
        return {canonicalize_name(pin.name): pin for pin in wheelhouse.select(found, python, set())}

    return read


@pytest.mark.parametrize("lock", LOCKS)
def test_every_line_is_a_pin_a_hash_or_a_comment(root: Path, lock: str):
    pin = re.compile(r"[a-z0-9-]+==\S+( ; [^\\]+)? \\")
    digest = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")
    for line in (root / "envs" / f"{lock}.lock").read_text().splitlines():
        assert line.startswith("#") or pin.fullmatch(line) or digest.fullmatch(line), line


@pytest.mark.parametrize("lock", LOCKS)
def test_no_lock_names_a_place(root: Path, lock: str):
    text = (root / "envs" / f"{lock}.lock").read_text()
    assert not re.search(r"https?:|file:|--index|--find-links|--extra-index|/(tmp|home|root|opt|work)/", text)


@pytest.mark.parametrize("lock", LOCKS)
@pytest.mark.parametrize("python", PYTHONS)
def test_every_pin_has_hashes(pins, lock: str, python: str):
    found = pins(lock, python)
    assert found
    assert [name for name, pin in found.items() if not pin.hashes] == []


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("lock", EXTRAS)
def test_a_lock_meets_pyproject(root: Path, pins, lock: str, python: str):
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [Requirement(line) for line in (*project["dependencies"], *extras[EXTRAS[lock]])]
    wanted += [Requirement(line) for line in extras["cupy"] if lock == "gpu-cuda12"]
    found = pins(lock, python)
    for requirement in wanted:
        if requirement.name != "kernelab":
            pin = found[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(pin.version), (
                f"{requirement} but {pin.version}: run make lock"
            )


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("lock", ["gpu-cuda12", "gpu-cuda13", "dev", "search", "slurm"])
def test_locks_agree_where_they_share(pins, lock: str, python: str):
    base, other = pins("base", python), pins(lock, python)
    differing = {name for name in base.keys() & other.keys() if base[name].version != other[name].version}
    assert differing == set()


@pytest.mark.parametrize("python", PYTHONS)
def test_one_cupy_a_lock_and_cublas_only_with_a_gpu(pins, python: str):
    def has(lock: str, prefix: str) -> list[str]:
        return sorted(name for name in pins(lock, python) if name.startswith(prefix))

    assert has("base", "cupy") == ["cupy-cuda12x"]
    assert has("gpu-cuda12", "cupy") == ["cupy-cuda12x"]
    assert has("gpu-cuda13", "cupy") == ["cupy-cuda13x"]
    # Added to any of the three, so it must not choose a CuPy.
    assert has("dev", "cupy") == []
    assert has("base", "nvidia-cublas") == []
    assert has("gpu-cuda12", "nvidia-cublas") == ["nvidia-cublas-cu12"]
    assert has("gpu-cuda13", "nvidia-cublas") == ["nvidia-cublas"]


def test_the_compiler_is_the_same_in_every_lock(pins):
    versions = {
        pins(lock, "3.11")["nvidia-cuda-nvrtc-cu12"].version for lock in ("base", "gpu-cuda12", "gpu-cuda13")
    }
    assert len(versions) == 1


def test_package_version_is_the_projects(root: Path):
    import kernelab

    assert tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"] == kernelab.__version__
