from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
from pathlib import Path

import pytest

from kernelab.build.kernel import FILES, build_kernel, write_build
from kernelab.build.toolchain import Toolchain, find_toolchain

SOURCES = Path(__file__).parent / "sources"

SPILLS = """
extern "C" __global__ void __launch_bounds__(1024) spills(float *a, int n) {
  float acc[96];
  for (int i = 0; i < 96; i++) acc[i] = a[i * n];
  __syncthreads();
  for (int j = 0; j < n; j++)
    for (int i = 0; i < 96; i++) acc[i] += a[i + j] * acc[(i + 1) % 96];
  for (int i = 0; i < 96; i++) a[i] = acc[i];
}
"""
BROKEN = 'extern "C" __global__ void k(float *a) { *a = b; }\n'


def _cuobjdump() -> str:
    """The wheel's cuobjdump, a second opinion on resources."""
    for file in importlib.metadata.files("nvidia-cuda-cuobjdump") or []:
        if file.name == "cuobjdump":
            return str(file.locate())
    raise AssertionError("the wheel nvidia-cuda-cuobjdump holds no cuobjdump")


@pytest.mark.parametrize(("arch", "reserved"), [("sm_86", 0), ("sm_90", 1024)])
def test_resources_agree_with_cuobjdump(tmp_path: Path, arch: str, reserved: int) -> None:
    build = build_kernel(SOURCES / "launch_bounds.cu", arch=arch, toolchain=find_toolchain("nvrtc"))
    write_build(build, tmp_path)
    command = [_cuobjdump(), "--dump-resource-usage", str(tmp_path / "kernel.cubin")]
    report = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.findall(r"Function (\w+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+)", report)
    assert len(found) == len(build.entries) == 2
    for name, *numbers in found:
        ours = build.entries[name].resources
        # from sm_90 on, cuobjdump counts the 1 KB that the system reserves
        assert [int(n) for n in numbers] == [
            ours.registers,
            ours.stack_bytes,
            ours.static_shared_bytes + reserved,
        ]


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120"])
def test_every_architecture(tmp_path: Path, arch: str) -> None:
    source = tmp_path / "spills.cu"
    source.write_text(SPILLS)
    build = build_kernel(source, arch=arch, toolchain=find_toolchain("nvrtc"))
    entry = build.entries["spills"]
    assert entry.resources.registers == 64  # 1,024 threads share 65,536
    assert entry.resources.spill_store_bytes > 0
    assert entry.resources.spill_load_bytes > 0
    assert entry.resources.stack_bytes > 0
    assert entry.control.maxntid == (1024, 1, 1)
    assert entry.control.parameters == ("u64", "u32")
    assert entry.constant_bytes > 300
    hot = entry.hot_loop
    assert hot is not None
    assert hot.mix.ffma == 96
    assert any(key.startswith("ldl_") for key in hot.mix.widths)
    assert hot.mix.classes["local"] > 50
    assert "other" not in entry.mix.classes, entry.mix.opcodes


def test_the_hot_loop_of_a_double_buffered_sgemm(toolchain: Toolchain) -> None:
    build = build_kernel(SOURCES / "launch_bounds.cu", arch="sm_86", toolchain=toolchain)
    hot = build.entries["one_block"].hot_loop
    assert hot is not None
    # 16 k-steps of 16 x 8 outputs; 4 + 2 LDS.128 a k-step; the staged stores are 4 x 4 scalars and 4 vectors
    assert hot.mix.ffma == 2048
    assert hot.mix.widths == {"ldg_128": 8, "lds_128": 96, "sts_128": 4, "sts_32": 16}
    assert hot.mix.opcodes["BAR"] == 1
    assert hot.bound_pct_of_peak == hot.mix.ffma_share_pct
    assert 92 < hot.mix.ffma_share_pct < 93
    assert build.entries["one_block"].resources.static_shared_bytes == 32768


def test_the_record_and_the_files(tmp_path: Path) -> None:
    build = build_kernel(SOURCES / "launch_bounds.cu", arch="sm_86", toolchain=find_toolchain("nvrtc"))
    write_build(build, tmp_path / "out")
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == sorted(FILES)
    assert (tmp_path / "out/kernel.cubin").read_bytes()[:4] == b"\x7fELF"
    assert ".entry one_block" in (tmp_path / "out/kernel.ptx").read_text()
    assert ".text.one_block:" in (tmp_path / "out/kernel.sass").read_text()
    record = json.loads(json.dumps(build.to_json()))
    assert record["status"] == "ok"
    assert record["note"] == ""
    entry = record["entries"]["one_block"]
    assert entry["maxntid"] == [128, 1, 1]
    assert entry["min_blocks"] == 1
    assert entry["registers"] == build.entries["one_block"].resources.registers
    assert entry["hot_loop"]["widths"]["lds_128"] == 96
    assert len(entry["sass_sha256"]) == 64


def test_a_compile_error_leaves_empty_files_and_the_reason(tmp_path: Path, toolchain: Toolchain) -> None:
    source = tmp_path / "broken.cu"
    source.write_text(BROKEN)
    build = build_kernel(source, arch="sm_86", toolchain=toolchain)
    write_build(build, tmp_path / "out")
    assert build.to_json()["status"] == "compile_error"
    assert build.to_json()["note"] == 'broken.cu(1): error: identifier "b" is undefined'
    assert build.to_json()["entries"] == {}
    assert [(tmp_path / "out" / name).read_bytes() for name in FILES] == [b"", b"", b""]


def test_one_source_builds_to_the_same_code_every_time(toolchain: Toolchain) -> None:
    builds = [
        build_kernel(SOURCES / "launch_bounds.cu", arch="sm_90", toolchain=toolchain).entries["one_block"]
        for _ in range(2)
    ]
    assert builds[0].sass_sha256 == builds[1].sass_sha256
