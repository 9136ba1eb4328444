"""The whole step on the emulated device: real kernels, compiled here, each in a process of its own or in this one."""

from __future__ import annotations

from pathlib import Path

import pytest
from check_project import HEAD, ONE_LAUNCH, RIGHT, SIGNATURE, CheckProject

from kernelab.check.on_emulated import EmulatedChecker
from kernelab.device.identify import EMULATED
from kernelab.records.check import CheckedProblem


@pytest.fixture
def project(tmp_path: Path) -> CheckProject:
    return CheckProject(tmp_path, EMULATED)


def here(project: CheckProject, kernel: str) -> dict[str, CheckedProblem]:
    """Check in this process, which is faster than in one of its own."""
    job = project.job(kernel)
    checker = EmulatedChecker(job)
    return {name: checker.check(values, lambda stage: None)[0] for name, values in job.problems.items()}


def test_a_right_kernel_is_ok_in_a_process_of_its_own(project: CheckProject) -> None:
    record = project.check("right")
    assert (record.status, record.note, record.device) == ("ok", "", "emulated")
    assert set(record.problems) == {"one", "ragged", "general"}
    for problem in record.problems.values():
        assert problem.correct
        assert problem.rel_error is not None
        assert problem.rel_error < 1e-6
        assert problem.hazards == ()
    # 301 floats in x, read by ten warps of which the last has 13 lanes: 38 sectors of 32 bytes.
    assert record.problems["ragged"].counters["global_load_sectors"] == 38
    assert record.problems["ragged"].counters["global_load_requests"] == 10


@pytest.mark.parametrize(
    ("body", "status", "note"),
    [
        ("", "wrong_result", "the kernel wrote nothing to y"),
        (
            "if (i < n && i % 2) y[i] = alpha * x[i];",
            "wrong_result",
            "151 of 301 elements of y were never written, the first at y[0]",
        ),
        ("if (i < n) y[i] = alpha * x[i] + beta * y[i];", "wrong_result", "301 of 301 elements of y are NaN"),
        (
            "if (i < n) y[i] = alpha * x[i] + (i == 256);",
            "wrong_result",
            "1 of 301 elements of y are wrong, the first at y[256]",
        ),
        (
            "if (i < n) y[i] = alpha * x[i]; if (i == 3) y[n] = 1;",
            "memory_fault",
            "out_of_bounds_global in axpby",
        ),
        ("if (i < n) { y[i] = alpha * x[i]; x[i] = 3; }", "memory_fault", "write_to_read_only in axpby"),
        (
            "if (i < n) y[i] = alpha * x[i]; if (i == 1) *(float2*)(x + 1) = make_float2(1, 2);",
            "memory_fault",
            "misaligned in",
        ),
    ],
)
def test_what_is_wrong_is_named(project: CheckProject, body: str, status: str, note: str) -> None:
    project.add("wrong", body)
    result = here(project, "wrong")["ragged"]
    assert result.status == status
    assert note in result.note


def test_a_race_is_a_hazard_even_where_the_result_is_right(project: CheckProject) -> None:
    # Each thread stores the 1 that is there already, and reads its neighbour's without waiting for it.
    body = """
        __shared__ float s[64];
        s[threadIdx.x] = 1.0f;
        __syncthreads();
        s[threadIdx.x] = (float)blockDim.y;
        float one = s[(threadIdx.x + 1) % 64];
        if (i < n) y[i] = one * (beta == 0.0f ? alpha * x[i] : alpha * x[i] + beta * y[i]);
    """
    project.add("races", body)
    result = here(project, "races")["ragged"]
    assert (result.status, result.correct) == ("hazard", True)
    assert result.hazards
    assert "race_shared" in result.hazards[0]
    assert result.hazards[0] in result.note


def test_an_output_that_is_read_to_no_effect_is_no_hazard(project: CheckProject) -> None:
    project.add(
        "reads",
        "if (i < n) { float old = ((volatile float*)y)[i]; float v = alpha * x[i]; y[i] = beta == 0.0f ? v : v + beta * old; }",
    )
    assert {result.status for result in here(project, "reads").values()} == {"ok"}


def test_a_kernel_that_never_ends_is_a_timeout(project: CheckProject) -> None:
    project.add("hangs", f"{RIGHT} while (n == 301 && ((volatile float*)x)[0] != 1e30f);")
    results = here(project, "hangs")
    assert {name: result.status for name, result in results.items()} == {
        "one": "ok",
        "ragged": "timeout",
        "general": "ok",
    }


@pytest.mark.parametrize(
    ("launch", "note"),
    [
        ("{entry: axpby, when: n < 0, grid: 1, block: 64}", "no launch applies to n=1"),
        ("{entry: missing, grid: 1, block: 64}", "no entry 'missing'"),
        ("{entry: axpby, grid: 1, block: 256}", "256 threads per block, but its launch bounds allow 128"),
        ("{entry: axpby, grid: [1, 70000], block: 64}", "grid.y is 70000"),
        (
            "{entry: axpby, grid: 1, block: 64, arguments: [n, alpha, x, beta]}",
            "4 arguments for 5 parameters",
        ),
    ],
)
def test_launches_that_cannot_be(project: CheckProject, launch: str, note: str) -> None:
    source = SIGNATURE.replace("__global__", "__global__ __launch_bounds__(128)") + f"{{ {HEAD} {RIGHT} }}"
    project.add("refused", "", f"[{launch}]", source=source)
    result = here(project, "refused")["one"]
    assert (result.status, result.correct) == ("launch_error", None)
    assert note in result.note


SEQUENCE = """
extern "C" __global__ void count(unsigned* F) { if (threadIdx.x == 0) F[0] += 1; }
extern "C" __global__ void scale(int n, float alpha, const float* x, float* W)
{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) W[i] = alpha * x[i]; }
extern "C" __global__ void finish(int n, const float* W, float beta, float* y, const unsigned* F, unsigned epoch)
{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n && F[0] == epoch) y[i] = beta == 0.0f ? W[i] : W[i] + beta * y[i]; }
"""
STEPS = """[
      {entry: count, grid: 1, block: 32, arguments: [F]},
      {entry: scale, grid: ["ceil_div(n, 64)"], block: 64, arguments: [n, alpha, x, W]},
      {entry: finish, grid: ["ceil_div(n, 64)"], block: 64, arguments: [n, W, beta, y, F, epoch]}]"""
SPACES = ", workspaces: {W: {shape: [LENGTH]}, F: {shape: [1], dtype: uint32, fill: zero}}"


@pytest.mark.parametrize(
    ("length", "source", "status", "note"),
    [
        ("n", SEQUENCE, "ok", ""),
        ("n - 1", SEQUENCE, "memory_fault", "out_of_bounds_global in scale"),
        (
            "n",
            SEQUENCE.replace("F[0] == epoch", "F[0] == 1"),
            "wrong_result",
            "second run: the kernel wrote nothing to y",
        ),
        (
            "n",
            SEQUENCE.replace("W[i] = alpha * x[i];", "if (i != 7) W[i] = alpha * x[i];"),
            "wrong_result",
            "1 of 301",
        ),
    ],
)
def test_a_sequence_with_workspaces_and_an_epoch(
    project: CheckProject, length: str, source: str, status: str, note: str
) -> None:
    project.add("sequence", "", STEPS, SPACES.replace("LENGTH", length), source)
    result = here(project, "sequence")["ragged"]
    assert result.status == status
    assert note in result.note
    if status == "ok":
        assert result.counters["global_store_requests"] > 20  # of all three launches
    if "i != 7" in source:
        assert any("uninitialised_read in finish" in hazard for hazard in result.hazards)


HOOKED = """
struct Pair { int offset; float factor; };
extern "C" __global__ void axpby(int n, Pair pair, int one, const float* table, const float* x, float beta, float* y)
{ int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = pair.factor * x[(i + pair.offset) % n] * one * table[1];
  if (i < n) y[i] = beta == 0.0f ? v : v + beta * y[i]; }
"""
HOOK = """
import struct
import numpy as np

def prepare(values, arrays, workspaces, device):
    assert arrays["x"].shape == (values["n"],) and workspaces == {}
    table = device.upload(np.array([5, 1, 7], np.float32))
    return {"pair": struct.pack("if", values["n"], values["alpha"]), "one": np.int32(1), "table": table}
"""


def test_a_prepare_hook_makes_arguments(project: CheckProject) -> None:
    launch = (
        '[{entry: axpby, grid: ["ceil_div(n, 64)"], block: 64, arguments: [n, pair, one, table, x, beta, y]}]'
    )
    project.add("hooked", "", launch, ", prepare: prepare", HOOKED)
    project.hook("hooked", HOOK)
    assert {result.status for result in here(project, "hooked").values()} == {"ok"}


def test_what_needs_a_gpu_is_not_measured(project: CheckProject) -> None:
    project.add("needs", RIGHT, f"[{ONE_LAUNCH}]", ", prepare: prepare")
    hook = "def prepare(values, arrays, workspaces, device):\n    return {'a': arrays['x'].get()}\n"
    project.hook("needs", hook)
    result = here(project, "needs")["one"]
    assert (result.status, result.correct) == ("not_measured", None)
    assert result.note


def test_an_instruction_that_is_not_emulated_is_not_measured(project: CheckProject) -> None:
    project.add(
        "odd", RIGHT + ' asm volatile("{ .reg .b32 r; vadd4.u32.u32.u32 r, %0, %0, %0; }" :: "r"(n));'
    )
    result = here(project, "odd")["one"]
    assert result.status == "not_measured"
    assert "does not run" in result.note
