from __future__ import annotations

import base64
import hashlib
import os
import sys
import time
from pathlib import Path

import pytest

from kernelab.build.toolchain import describe, find_toolchain, identity
from kernelab.errors import UserError


@pytest.fixture(autouse=True)
def _forget() -> None:
    find_toolchain.cache_clear()


def _wheel(folder: Path, name: str, version: str, path: str, data: bytes) -> Path:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    file.chmod(0o755)
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "RECORD").write_text(f"{path},sha256={digest},{len(data)}\n")
    return file


def _machine(folder: Path, version: str = "12.9.86", library: bytes = b"one") -> Path:
    _wheel(folder, "nvidia_cuda_nvrtc_cu12", version, "nvidia/cuda_nvrtc/lib/libnvrtc.so.12", library)
    _wheel(folder, "nvidia_cuda_nvdisasm", "13.5.37", "nvidia/cu13/bin/nvdisasm", b"dis")
    return folder


def _fingerprint(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    find_toolchain.cache_clear()
    monkeypatch.setattr(sys, "path", [str(folder)])
    return find_toolchain("nvrtc").fingerprint


def test_fingerprint_does_not_depend_on_the_folder_and_changes_with_version_and_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = _fingerprint(_machine(tmp_path / "here"), monkeypatch)
    assert here == _fingerprint(_machine(tmp_path / "there"), monkeypatch)
    assert here != _fingerprint(_machine(tmp_path / "newer", version="12.9.87"), monkeypatch)
    assert here != _fingerprint(_machine(tmp_path / "patched", library=b"two"), monkeypatch)


def test_a_wheel_is_stamped_by_its_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(_machine(tmp_path))])
    tool = find_toolchain("nvrtc").compiler
    assert tool.stamp == hashlib.sha256(b"one").hexdigest()
    assert (tool.version, tool.path.name) == ("12.9.86", "libnvrtc.so.12")


def test_a_cuda_13_wheel_is_found_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _wheel(tmp_path, "nvidia_cuda_nvrtc", "13.0.88", "nvidia/cu13/lib/libnvrtc.so.13", b"x")
    _wheel(tmp_path, "nvidia_cuda_nvdisasm", "13.5.37", "nvidia/cu13/bin/nvdisasm", b"dis")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert find_toolchain("nvrtc").compiler.version == "13.0.88"


def _toolkit(root: Path) -> Path:
    for name in ("nvcc", "ptxas", "nvdisasm"):
        program = root / "bin" / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_bytes(b"\x7fELF" + name.encode() + bytes(5000))
        program.chmod(0o755)
    return root


def test_nvcc_behind_a_wrapper_is_stamped_by_what_the_wrapper_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = _toolkit(tmp_path / "cuda")
    wrapper = tmp_path / "bin" / "nvcc"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\nexec {root}/bin/nvcc "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setenv("PATH", f"{wrapper.parent}:{root}/bin")
    before = find_toolchain("nvcc")
    assert before.compiler.path == root / "bin" / "nvcc"
    os.utime(root / "bin" / "ptxas", (1, 1))
    find_toolchain.cache_clear()
    assert find_toolchain("nvcc").fingerprint != before.fingerprint


@pytest.mark.parametrize("name", ["nvrtc", "nvcc"])
def test_a_missing_compiler_says_what_to_install(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr("kernelab.build.toolchain._cuda_roots", lambda: [tmp_path])
    monkeypatch.setattr("kernelab.build.toolchain._library_folders", lambda: [tmp_path])
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=rf"toolchain {name}: .*install") as raised:
        find_toolchain(name)
    assert "\n" not in str(raised.value)


def test_a_missing_disassembler_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _wheel(tmp_path, "nvidia_cuda_nvrtc_cu12", "12.9.86", "nvidia/lib/libnvrtc.so.12", b"x")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr("kernelab.build.toolchain._cuda_roots", lambda: [tmp_path])
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="pip install nvidia-cuda-nvdisasm"):
        find_toolchain("nvrtc")


def test_an_unknown_toolchain_names_the_known_ones() -> None:
    with pytest.raises(UserError, match="'clang' is unknown: choose one of nvrtc, nvcc"):
        find_toolchain("clang")


def test_this_machine() -> None:
    toolchain = find_toolchain("nvrtc")
    described = describe(toolchain)
    assert described["compiler"] == identity(toolchain)["compiler"]
    assert described["compiler"].startswith("nvrtc 1")
    assert {"sm_75", "sm_86", "sm_90", "sm_120"} <= set(described["architectures"])
    # what the wheel's RECORD promised is what lies on disk
    assert toolchain.compiler.stamp == described["files"][toolchain.compiler.path.resolve().name]


def test_the_fingerprint_is_cheap_enough_for_every_parse() -> None:
    best = min(_timed() for _ in range(5))
    assert best < 0.005


def _timed() -> float:
    find_toolchain.cache_clear()
    start = time.perf_counter()
    _ = find_toolchain("nvrtc").fingerprint
    return time.perf_counter() - start
