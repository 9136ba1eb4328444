"""Machine-code identity on real compiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelab.build import compiler
from kernelab.build.kernel import Entry, build_kernel
from kernelab.build.toolchain import Toolchain, find_toolchain

SOURCES = Path(__file__).parent / "sources"

BODY = """
#ifndef STEP
#define STEP 1
#endif
__constant__ float table[4] = {1.f, 2.f, 3.f, LAST};
__device__ float start = BEGIN;
extern "C" __global__ void __launch_bounds__(128) NAME(float *a, int n) {
  __shared__ float s[128];
  s[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  float v = start;
  for (int i = 0; i < n; i += STEP) v = v * s[(threadIdx.x + i) & 127] + table[n & 3];
  a[threadIdx.x] = v;
}
"""
DEFAULTS = {"NAME": "plain", "LAST": "4.f", "BEGIN": "0.5f"}


def _entry(folder: Path, toolchain: Toolchain, text: str = BODY, **defines: str) -> Entry:
    source = folder / "kernel.cu"
    source.write_text(text)
    build = build_kernel(source, arch="sm_86", toolchain=toolchain, defines=DEFAULTS | defines)
    assert build.status == "ok", build.compilation.log
    (entry,) = build.entries.values()
    return entry


def test_names_comments_and_line_information_do_not_count(
    tmp_path: Path, toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = _entry(tmp_path, toolchain)
    renamed = _entry(tmp_path, toolchain, NAME="a_much_longer_name")
    moved = _entry(tmp_path, toolchain, "// a comment\n\n" + BODY)
    monkeypatch.setattr(compiler, "ALWAYS", [o for o in compiler.ALWAYS if o != "-lineinfo"])
    bare = _entry(tmp_path, toolchain)
    assert plain.sass_sha256 == renamed.sass_sha256 == moved.sass_sha256 == bare.sass_sha256


@pytest.mark.parametrize(
    "change",
    [
        {"STEP": "2"},  # an immediate
        {"LAST": "5.f"},  # a constant that the code reads
        {"BEGIN": "0.25f"},  # what a global variable starts with
    ],
)
def test_one_changed_number_counts(tmp_path: Path, toolchain: Toolchain, change: dict[str, str]) -> None:
    assert _entry(tmp_path, toolchain).sass_sha256 != _entry(tmp_path, toolchain, **change).sass_sha256


def test_more_shared_memory_counts_alone(tmp_path: Path, toolchain: Toolchain) -> None:
    wider = BODY.replace("float s[128]", "float s[256]")
    one, other = _entry(tmp_path, toolchain), _entry(tmp_path, toolchain, wider)
    assert one.mix == other.mix
    assert one.sass_sha256 != other.sass_sha256


@pytest.mark.parametrize(
    ("arch", "same"), [("sm_75", True), ("sm_80", True), ("sm_86", True), ("sm_89", True), ("sm_90", False)]
)
def test_one_block_an_sm_changes_nothing_before_sm_90(arch: str, same: bool) -> None:
    build = build_kernel(SOURCES / "launch_bounds.cu", arch=arch, toolchain=find_toolchain("nvrtc"))
    unbounded, one_block = build.entries["unbounded"], build.entries["one_block"]
    assert (unbounded.control.maxntid, unbounded.control.min_blocks) == ((128, 1, 1), None)
    assert (one_block.control.maxntid, one_block.control.min_blocks) == ((128, 1, 1), 1)
    assert (unbounded.sass_sha256 == one_block.sass_sha256) is same
