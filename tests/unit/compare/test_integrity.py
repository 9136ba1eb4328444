"""A stale or swapped cubin, and PTX that contradicts the record: with machine code that NVRTC really makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelab.build.kernel import build_kernel, write_build
from kernelab.build.toolchain import find_toolchain
from kernelab.compare.integrity import code_faults
from kernelab.records.build import BuildRecord

SOURCE = """\
#ifndef SCALE
#define SCALE 2.0f
#endif
extern "C" __global__ void __launch_bounds__(64, BOUND) scale(int n, const float *x, float *y)
{
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) y[i] = SCALE * x[i];
}
"""


def made(root: Path, name: str, **defines: str) -> tuple[Path, BuildRecord]:
    source = root / "k.cu"
    source.write_text(SOURCE)
    defines = {"BOUND": "1", **defines}
    build = build_kernel(source, arch="sm_86", toolchain=find_toolchain("nvrtc"), defines=defines)
    write_build(build, root / name)
    return root / name, BuildRecord(digest="d", kernel="k", variant=name, **build.to_json())


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, BuildRecord]]:
    root = tmp_path_factory.mktemp("builds")
    return {
        "one": made(root, "one"),
        "other": made(root, "other", SCALE="3.0f*x[0]"),
        "bound": made(root, "bound", BOUND="2"),
    }


def test_a_build_agrees_with_its_record(builds: dict[str, tuple[Path, BuildRecord]]) -> None:
    for folder, record in builds.values():
        assert code_faults(folder, record) == ()


def test_a_stale_cubin_is_named(builds: dict[str, tuple[Path, BuildRecord]]) -> None:
    _, record = builds["one"]
    folder, _ = builds["other"]
    (fault,) = code_faults(folder, record)
    assert fault.startswith("kernel.cubin of k/one is stale: its scale hashes to ")
    assert record.entries["scale"].sass_sha256[:12] in fault


def test_ptx_with_another_launch_bound_is_named(builds: dict[str, tuple[Path, BuildRecord]]) -> None:
    _, record = builds["one"]
    folder, _ = builds["bound"]
    faults = code_faults(folder, record)
    assert "kernel.ptx of k/one says min_blocks 2 of scale, but build.json 1: one of them is stale" in faults


def test_a_damaged_cubin_is_named(builds: dict[str, tuple[Path, BuildRecord]], tmp_path: Path) -> None:
    folder, record = builds["one"]
    for name in ("kernel.ptx", "kernel.sass"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    (tmp_path / "kernel.cubin").write_bytes(b"not a cubin")
    (fault,) = code_faults(tmp_path, record)
    assert fault == "kernel.cubin of k/one cannot be read: not a 64-bit ELF file"


def test_a_snapshot_without_machine_code_is_not_judged(
    builds: dict[str, tuple[Path, BuildRecord]], tmp_path: Path
) -> None:
    _, record = builds["one"]
    assert code_faults(tmp_path, record) == ()
