"""The kernel of the FP32 ceiling: next to nothing but FFMAs, every level right, and no step that could be left out unseen."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from kernelab.build.kernel import Build, build_kernel, write_build
from kernelab.build.toolchain import find_toolchain
from kernelab.check.job import CheckJob
from kernelab.check.on_emulated import EmulatedChecker
from kernelab.operation.inputs import make_inputs, make_reference
from kernelab.operation.loader import load_operation
from kernelab.plan.catalogue import read_catalogue
from kernelab.records.check import CheckedProblem

FOLDER = Path(__file__).parents[3] / "kernels" / "ffma"
CATALOGUE = read_catalogue(FOLDER / "kernels.yaml", "kernels/ffma/kernels.yaml")
KERNEL = CATALOGUE.kernels["ffma"]
CHAINS = KERNEL.composites["chains"].levels
LEVELS = [
    {},
    {"OPERANDS": "own"},
    *({name: str(v) for name, v in level.items()} for level in CHAINS.values()),
]


def built(levels: dict[str, str], source: Path = FOLDER / "ffma.cu", arch: str = "sm_86") -> Build:
    chosen = KERNEL.defaults() | levels
    defines = {name: str(KERNEL.parameters[name].macro_value(level)) for name, level in chosen.items()}
    found = build_kernel(source, arch=arch, toolchain=find_toolchain("nvrtc"), defines=defines)
    assert found.status == "ok", found.compilation.log
    return found


def checked(levels: dict[str, str], kernel: Build, folder: Path) -> dict[str, CheckedProblem]:
    write_build(kernel, folder)
    operation = CATALOGUE.operation
    job = CheckJob(
        device="emulated",
        uuid="",
        folder=str(FOLDER),
        operation=operation,
        kernel_name="ffma",
        kernel=KERNEL,
        levels=KERNEL.defaults() | levels,
        library="",
        cubin=str(folder / "kernel.cubin"),
        ptx=str(folder / "kernel.ptx"),
        problems={name: operation.problem_values(v, name) for name, v in operation.checks.items()},
        seed=7,
    )
    checker = EmulatedChecker(job)
    return {name: checker.check(values, lambda stage: None)[0] for name, values in job.problems.items()}


@pytest.mark.parametrize(
    "levels", LEVELS, ids=lambda levels: ",".join(f"{k}={v}" for k, v in levels.items()) or "default"
)
def test_every_level_is_right(levels: dict[str, str], tmp_path: Path) -> None:
    for name, result in checked(levels, built(levels), tmp_path).items():
        assert (name, result.status, result.note) == (name, "ok", "")


@pytest.mark.parametrize("levels", LEVELS[1:], ids=str)
def test_a_check_makes_a_whole_pass_of_the_loop_and_another_a_part(levels: dict[str, str]) -> None:
    unroll = int((KERNEL.defaults() | levels)["UNROLL"])
    steps = [check["k"] for check in CATALOGUE.operation.checks.values()]
    assert any(k >= unroll for k in steps)
    assert any(k % unroll for k in steps)


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("left = K / UNROLL; left > 0", "left = K / UNROLL; left > 1"),
        ("left = K % UNROLL; left > 0", "left = K % UNROLL; left > 1"),
        ("step < UNROLL", "step < UNROLL - 1"),
    ],
)
def test_a_step_that_is_left_out_is_seen(line: str, instead: str, tmp_path: Path) -> None:
    text = (FOLDER / "ffma.cu").read_text()
    assert text.count(line) == 1
    source = tmp_path / "ffma.cu"
    source.write_text(text.replace(line, instead))
    statuses = {result.status for result in checked({}, built({}, source), tmp_path / "build").values()}
    assert "wrong_result" in statuses


@pytest.mark.parametrize("arch", ["sm_86", "sm_90"])
@pytest.mark.parametrize("levels", LEVELS, ids=str)
def test_the_loop_is_nearly_all_ffma(levels: dict[str, str], arch: str) -> None:
    loop = built(levels, arch=arch).entries["ffma"].hot_loop
    assert loop is not None
    assert loop.mix.ffma >= 512
    assert loop.mix.ffma_share_pct > 99.0


@pytest.mark.parametrize("arch", ["sm_86", "sm_90"])
def test_operands_are_shared_or_own(arch: str) -> None:
    """Shared: one register for every a. Own: eight, of the vector kind that a matrix product's FFMAs read."""
    used = {}
    for level in ("shared", "own"):
        listing = built({"OPERANDS": level}, arch=arch).sass
        ffmas = re.findall(r"FFMA (R\d+), (\S+), (\S+), (\S+) ;", listing)
        # In the loop a chain is its own source, as the destination says.
        steps = [f for f in ffmas if f[0] in (f[1].removesuffix(".reuse"), f[2].removesuffix(".reuse"))]
        assert len(steps) >= 512
        used[level] = {f[3].removesuffix(".reuse") for f in steps}
    assert len(used["shared"]) == 1
    assert len(used["own"]) == 8
    assert all(re.fullmatch(r"R\d+", register) for register in used["own"])


@pytest.mark.parametrize("a", [0.9375, -0.75, 1.0])
def test_the_closed_form_is_the_loop(a: float) -> None:
    loaded = load_operation(FOLDER, CATALOGUE.operation)
    problem = {"n": 100, "k": 23, "a": a, "b": 0.3}
    arrays = make_inputs(loaded, problem, "uniform", 1)
    x = arrays["x"].astype(np.float64)
    for _ in range(23):
        x = a * x + float(np.float32(0.3))
    np.testing.assert_allclose(make_reference(loaded, problem, arrays)["y"], x, rtol=1e-12)
