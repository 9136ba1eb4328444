from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kernelab.build.cache import CUBIN, PTX, RECORD, CompilationCache
from kernelab.build.compiler import Compilation
from kernelab.build.source import text_sha256
from kernelab.records.layout import Layout

DIGEST, OTHER = "ab" * 32, "cd" * 32
MADE = Compilation(
    ok=True,
    cubin=b"\x7fELF" + bytes(range(256)) * 40,
    ptx=".version 8.8\n// \N{GREEK SMALL LETTER ALPHA}\n" * 50,
    log="ptxas info : Used 8 registers",
    error="",
    command=("nvcc", "-cubin", "a.cu"),
    seconds=0.25,
)
FAILED = replace(MADE, ok=False, cubin=None, ptx="", log="a.cu(1): error: bad", error="a.cu(1): error: bad")


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "results", "emulated")


@pytest.mark.parametrize("made", [MADE, FAILED])
def test_what_is_stored_is_found_by_its_digest_alone(layout: Layout, made: Compilation) -> None:
    CompilationCache(layout).store(DIGEST, made, "text")
    cache = CompilationCache(layout)
    assert cache.load(DIGEST) == made
    assert cache.load(OTHER) is None
    assert cache.load(DIGEST, "text") == made
    assert cache.load(DIGEST, "other lines") is None


def test_the_machine_code_is_a_file(layout: Layout) -> None:
    cache = CompilationCache(layout)
    cache.store(DIGEST, MADE, "")
    assert cache.cubin(DIGEST).is_absolute()
    assert cache.cubin(DIGEST).read_bytes() == MADE.cubin
    assert cache.cubin(DIGEST).parent == layout.results / "compiled" / "ab" / DIGEST


def test_a_crash_is_not_kept(layout: Layout) -> None:
    cache = CompilationCache(layout)
    cache.store(DIGEST, replace(FAILED, lasting=False), "")
    assert cache.load(DIGEST) is None


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _of_another(path: Path) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | {"digest": OTHER}))


def _of_another_version(path: Path) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema_version": 99}))


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        (CUBIN, _cut),
        (CUBIN, _flip),
        (CUBIN, Path.unlink),
        (PTX, _cut),
        (PTX, Path.unlink),
        (RECORD, _cut),
        (RECORD, Path.unlink),
        (RECORD, _of_another),
        (RECORD, _of_another_version),
    ],
)
def test_a_damaged_entry_is_not_believed_and_is_replaced(
    layout: Layout, name: str, damage: Callable[[Path], None]
) -> None:
    cache = CompilationCache(layout)
    cache.store(DIGEST, MADE, "")
    damage(layout.compiled(DIGEST) / name)
    assert cache.record(DIGEST) is None
    assert cache.load(DIGEST) is None
    cache.store(DIGEST, MADE, "")
    assert cache.load(DIGEST) == MADE


def test_files_of_two_writers_are_not_mixed(layout: Layout) -> None:
    """What is left where another compile of the same digest, with other code, wrote between two files of this one."""
    cache = CompilationCache(layout)
    cache.store(DIGEST, MADE, "")
    (layout.compiled(DIGEST) / CUBIN).write_bytes(b"\x7fELF other code")
    assert cache.load(DIGEST) is None


def test_text_sha256_sees_what_a_digest_does_not(tmp_path: Path) -> None:
    source, header = tmp_path / "a.cu", tmp_path / "a.cuh"
    source.write_text('#include "a.cuh"\n')
    header.write_text("int a;\n")
    first = text_sha256(source)
    assert text_sha256(source) == first
    header.write_text("int a; // a comment\n")
    assert text_sha256(source) != first
