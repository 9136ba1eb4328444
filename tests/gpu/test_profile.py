"""Profiling on a real card, where ncu may read its counters."""

from __future__ import annotations

from pathlib import Path

import pytest
from scaling import OPERATION, declaration

from kernelab.device.identify import identify, list_gpus
from kernelab.plan.load import load_plan
from kernelab.profile.arm import ProfileStep, profile_arm
from kernelab.profile.columns import NCU_COLUMNS
from kernelab.profile.ncu import find_ncu
from kernelab.timing.job import BuiltArm

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not list_gpus(), reason="CUDA shows no GPU here"),
    pytest.mark.skipif(find_ncu() is None, reason="ncu is not installed here"),
]
N = 1 << 20
SOURCE = """\
#ifndef STRIDE
#define STRIDE 1
#endif
extern "C" __global__ void fill(int n, float *t)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) t[i] = 1.0f;
}
extern "C" __global__ void move(int n, float a, const float *x, float *y, const float *t)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[(long long)i * STRIDE % n] * t[i];
#if STRIDE == 0
    if (i == 0) *(float *)16 = 0.0f;
#endif
}
"""
CATALOGUE = (
    declaration("move")
    + """\
kernels:
  move:
    source: move.cu
    idea: a sequence of two launches
    parameters: {STRIDE: {type: int, default: 1, levels: [0, 1, 32], about: 0 faults}}
    workspaces: {T: {shape: [n]}}
    launches:
      - {entry: fill, grid: "ceil_div(n, 256)", block: 256, arguments: [n, T]}
      - {entry: move, grid: "ceil_div(n, 256)", block: 256, arguments: [n, a, x, y, T]}
"""
)
CONFIG = f"""\
device: auto
problems: {{p: {{n: {N}, a: 2.0}}}}
experiments:
  stride: {{question: "Coalesced?", base: move, vary: {{STRIDE: [1, 32, 0]}}}}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("profile")
    folder = root / "kernels" / "move"
    folder.mkdir(parents=True)
    for name, text in (("move.cu", SOURCE), ("operation.py", OPERATION), ("kernels.yaml", CATALOGUE)):
        (folder / name).write_text(text)
    (root / "config.yaml").write_text(CONFIG)
    return root


def step(project: Path, stride: int) -> ProfileStep:
    from kernelab.build.kernel import build_kernel
    from kernelab.build.toolchain import find_toolchain

    plan = load_plan(project, identify)
    name = "move/default@p" if stride == 1 else f"move/STRIDE={stride}@p"
    build = plan.builds[plan.arms[name].build]
    made = build_kernel(
        project / "kernels/move/move.cu",
        arch=build.arch,
        toolchain=find_toolchain("nvrtc"),
        defines={"STRIDE": str(stride)},
    )
    assert made.status == "ok", made.compilation.log
    cubin = project / f"{stride}.cubin"
    cubin.write_bytes(made.compilation.cubin or b"")
    built = BuiltArm(cubin=str(cubin), sass_sha256="")
    out = project / "results"
    return ProfileStep(
        plan, plan.arms[name], built, project, out / f"{stride}.ncu-rep", out / f"{stride}.json", "d"
    )


def test_a_sequence_is_counted_as_one_or_the_status_says_why_not(project: Path) -> None:
    wanted = step(project, 1)
    record = profile_arm(wanted)
    if record.status == "no_permission":
        pytest.skip(record.note)
    assert record.status == "ok", record.note
    assert [kernel.name for kernel in record.kernels] == ["fill", "move"]
    values = record.columns()
    assert {column.name for column in NCU_COLUMNS} - set(values) <= {
        "ncu_shared_store_conflicts",
        "ncu_shared_load_conflicts",
    }
    assert values["ncu_global_load_sectors_per_request"] == pytest.approx(4.0, abs=0.1)
    assert values["ncu_dram_read_bytes"] >= 0.5 * 4 * N
    assert values["ncu_instructions"] > 2 * N / 32
    assert wanted.report.stat().st_size > 10_000
    strided = profile_arm(step(project, 32)).columns()
    # x by strides of 128 bytes (32 sectors a request), t coalesced (4): 18 on average.
    assert strided["ncu_global_load_sectors_per_request"] == pytest.approx(18.0, abs=1.0)


def test_a_launch_that_dies_under_ncu_gives_no_figures(project: Path) -> None:
    record = profile_arm(step(project, 0))
    assert record.status in ("target_crashed", "no_permission")
    assert record.columns() == {}
    assert record.kernels == []
