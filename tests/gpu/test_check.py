"""Checking on a real card. Kernels that ruin the context run in a process of their own, the others in this one."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "unit" / "check"))

from check_project import HEAD, ONE_LAUNCH, RIGHT, SIGNATURE, CheckProject

from kernelab.check.arm import check_arm
from kernelab.device.identify import identify, list_gpus
from kernelab.device.lock import ENVIRONMENT
from kernelab.plan.load import load_plan
from kernelab.records.check import CheckedProblem, CheckRecord

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not list_gpus(), reason="CUDA shows no GPU here"),
]
REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CheckProject:
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "locks"))
    return CheckProject(tmp_path, identify("0"))


def here(
    project: CheckProject, kernel: str, which: str = "small", arch: str = ""
) -> dict[str, CheckedProblem]:
    """Check in this process: only for kernels that leave the context alive."""
    from kernelab.check.on_cuda import CudaChecker

    job = project.job(kernel, which, arch)
    checker = CudaChecker(job)
    results = {}
    for name, values in job.problems.items():
        results[name], stopped = checker.check(values, lambda stage: None)
        assert not stopped
    return results


def statuses(record: CheckRecord) -> dict[str, str]:
    return {name: problem.status for name, problem in record.problems.items()}


def only(results: Mapping[str, CheckedProblem]) -> CheckedProblem:
    """The one result, where all problems have the same status."""
    assert len({result.status for result in results.values()}) == 1, results
    return next(iter(results.values()))


def test_a_right_kernel_is_ok_in_a_process_of_its_own(project: CheckProject) -> None:
    for which, names in (("small", {"one", "ragged", "general"}), ("large", {"large"})):
        record = project.check("right", which)
        assert (record.status, record.note) == ("ok", "")
        assert set(record.problems) == names
        for problem in record.problems.values():
            assert problem.correct
            assert problem.rel_error is not None
            assert problem.rel_error < 1e-6
            assert problem.hazards == ()
            assert problem.seconds > 0


@pytest.mark.parametrize(
    ("body", "status", "note"),
    [
        ("", "wrong_result", "the kernel wrote nothing to y"),
        ("if (i < n) y[i] = y[i];", "wrong_result", "the kernel wrote nothing to y"),
        (
            "if (i < n && i % 2) y[i] = alpha * x[i];",
            "wrong_result",
            "2501 of 5001 elements of y were never written, the first at y[0]",
        ),
        (
            "if (i < n) y[i] = alpha * x[i] + beta * y[i];",
            "wrong_result",
            "5001 of 5001 elements of y are NaN",
        ),
        (
            "if (i < n) y[i] = alpha * x[i] + (i == 4096);",
            "wrong_result",
            "1 of 5001 elements of y are wrong, the first at y[4096]",
        ),
        (
            "y[i] = alpha * x[i];",
            "memory_fault",
            "writes outside y: 55 of the 4-byte words past its end, the first at byte 0",
        ),
        (
            "if (i < n) y[i] = alpha * x[i]; if (i == 5) y[-3] = 1;",
            "memory_fault",
            "writes outside y: 1 of the 4-byte words before its start, the first at byte -12",
        ),
        (
            "if (i < n) { y[i] = alpha * x[i]; x[i] = 3; }",
            "wrong_result",
            "changed its input x: 5001 elements",
        ),
    ],
)
def test_what_is_wrong_is_named(project: CheckProject, body: str, status: str, note: str) -> None:
    project.add("wrong", body)
    job = project.job("wrong", "large")
    from kernelab.check.on_cuda import CudaChecker

    # 5,001 is no multiple of the block, so that the last block runs past the arrays.
    result, stopped = CudaChecker(job).check({"n": 5001, "alpha": 2.0, "beta": 0.0}, lambda stage: None)
    assert not stopped
    assert result.status == status
    assert note in result.note


def test_reading_past_an_input_brings_nan(project: CheckProject) -> None:
    project.add("reads_on", "if (i < n) y[i] = alpha * x[i] + 0.0f * x[i + 1];")
    result = here(project, "reads_on", "large")["large"]
    assert result.status == "wrong_result"
    assert "1 of 5000 elements of y are NaN or infinite, the first at y[4999]" in result.note


def test_runs_that_differ_in_bits_are_ok_with_a_note(project: CheckProject) -> None:
    project.add(
        "noisy", "if (i < n) y[i] = __int_as_float(__float_as_int(alpha * x[i]) ^ (clock64() >> 3 & 1));"
    )
    result = here(project, "noisy", "large")["large"]
    assert result.status == "ok"
    assert "two runs differ in " in result.note


@pytest.mark.parametrize(
    ("launch", "note"),
    [
        ("{entry: axpby, when: n < 0, grid: 1, block: 64}", "no launch applies to n="),
        ("{entry: missing, grid: 1, block: 64}", "the entry does not exist"),
        ("{entry: axpby, grid: 1, block: 256}", "a block of 256 threads, but its code allows 128"),
        (
            "{entry: axpby, grid: 1, block: 64, dynamic_shared: 400000}",
            "a block needs 400000 bytes of shared memory",
        ),
        ("{entry: axpby, grid: [1, 70000], block: 64}", "grid.y is 70000"),
        ("{entry: axpby, grid: 1, block: 64, arguments: [n, alpha, x, beta]}", "takes 5 arguments"),
        (
            "{entry: axpby, grid: 1, block: 64, arguments: [n, alpha, beta, x, y]}",
            "takes 5 arguments of [4, 4, 8, 4, 8]",
        ),
    ],
)
def test_launches_that_cannot_be(project: CheckProject, launch: str, note: str) -> None:
    if "takes" in note and list_driver_version() < 12040:
        pytest.skip("this driver does not tell the parameters of a kernel")
    source = SIGNATURE.replace("__global__", "__global__ __launch_bounds__(128)") + f"{{ {HEAD} {RIGHT} }}"
    project.add("refused", "", f"[{launch}]", source=source)
    result = only(here(project, "refused"))
    assert result.status == "launch_error"
    assert result.correct is None
    assert note in result.note


def list_driver_version() -> int:
    import cupy

    return int(cupy.cuda.runtime.driverGetVersion())


@pytest.mark.parametrize(("static", "dynamic"), [(0, 60000), (40960, 16384), (1024, 1024)])
def test_shared_memory_is_opted_in(project: CheckProject, static: int, dynamic: int) -> None:
    body = f"""
        extern __shared__ float late[];
        __shared__ float early[{static // 4 + 1}];
        for (int j = threadIdx.x; j < {dynamic // 4}; j += 64) late[j] = j;
        for (int j = threadIdx.x; j < {static // 4}; j += 64) early[j] = j;
        __syncthreads();
        if (i < n) y[i] = late[{dynamic // 4 - 1}] == {dynamic // 4 - 1}.0f && ({static} == 0 || early[{static // 4} - 1] >= 0.0f)
            ? (beta == 0.0f ? alpha * x[i] : alpha * x[i] + beta * y[i]) : 0.0f;
    """
    project.add("shared", body, f"[{ONE_LAUNCH[:-1]}, dynamic_shared: {dynamic}}}]")
    assert only(here(project, "shared")).status == "ok"


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


def test_a_sequence_with_workspaces_and_an_epoch(project: CheckProject) -> None:
    project.add("sequence", "", STEPS, SPACES.replace("LENGTH", "n"), SEQUENCE)
    assert only(here(project, "sequence")).status == "ok"


def test_a_workspace_that_is_too_small_is_a_memory_fault(project: CheckProject) -> None:
    project.add("sequence", "", STEPS, SPACES.replace("LENGTH", "n - 1"), SEQUENCE)
    result = here(project, "sequence", "large")["large"]
    assert result.status == "memory_fault"
    assert "writes outside workspace W: 1 of the 4-byte words past its end" in result.note


def test_a_kernel_that_is_right_only_once_is_wrong(project: CheckProject) -> None:
    once = SEQUENCE.replace("F[0] == epoch", "F[0] == 1")
    project.add("once", "", STEPS, SPACES.replace("LENGTH", "n"), once)
    result = only(here(project, "once"))
    assert result.status == "wrong_result"
    assert result.note.startswith("second run: the kernel wrote nothing to y")


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
    assert table.data.ptr % 64 == 0
    return {"pair": struct.pack("if", values["n"], values["alpha"]), "one": np.int32(1), "table": table}
"""


def test_a_prepare_hook_makes_arguments(project: CheckProject) -> None:
    launch = (
        '[{entry: axpby, grid: ["ceil_div(n, 64)"], block: 64, arguments: [n, pair, one, table, x, beta, y]}]'
    )
    project.add("hooked", "", launch, ", prepare: prepare", HOOKED)
    project.hook("hooked", HOOK)
    assert only(here(project, "hooked")).status == "ok"


TILED = """
struct alignas(64) Map { char bytes[128]; };
__device__ void fetch(const void* map, float* tile, unsigned long long* barrier)
{
    unsigned to = (unsigned)__cvta_generic_to_shared(tile), bar = (unsigned)__cvta_generic_to_shared(barrier), done = 0;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(bar) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("{ .reg .b64 t; mbarrier.arrive.expect_tx.shared::cta.b64 t, [%0], 256; }" :: "r"(bar) : "memory");
        asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];"
            :: "r"(to), "l"(map), "r"(blockIdx.x * 64), "r"(bar) : "memory");
    }
    __syncthreads();
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
            : "=r"(done) : "r"(bar) : "memory");
}
extern "C" __global__ void axpby(int n, float alpha, const __grid_constant__ Map value, const Map* pointer, float beta, float* y)
{
    __shared__ alignas(128) float a[64], b[64];
    __shared__ alignas(8) unsigned long long bars[2];
    fetch(&value, a, bars);
    fetch(pointer, b, bars + 1);
    int i = blockIdx.x * 64 + threadIdx.x;
    float v = alpha * 0.5f * (a[threadIdx.x] + b[threadIdx.x]);
    if (i < n) y[i] = beta == 0.0f ? v : v + beta * y[i];
}
"""
MAPS = """
def prepare(values, arrays, workspaces, device):
    made = device.tensor_map(arrays["x"], (64,))
    assert len(made) == 128
    return {"value": made, "pointer": device.upload(made)}
"""


def test_tma_descriptors_by_value_and_by_pointer(project: CheckProject) -> None:
    if int(project.device.arch.removeprefix("sm_")) < 90:
        pytest.skip("TMA needs sm_90 or newer")
    launch = '[{entry: axpby, grid: ["ceil_div(n, 64)"], block: 64, arguments: [n, alpha, value, pointer, beta, y]}]'
    project.add("tiled", "", launch, ", prepare: prepare", TILED)
    project.hook("tiled", MAPS)
    assert only(here(project, "tiled")).status == "ok"


def test_code_for_another_architecture_goes_by_its_ptx(project: CheckProject) -> None:
    if project.device.arch == "sm_75":
        pytest.skip("needs a card newer than sm_75")
    result = here(project, "right", arch="sm_75")["ragged"]
    assert (result.status, result.note) == (
        "ok",
        "the cubin is for another architecture: the driver compiled the PTX",
    )


@pytest.mark.parametrize(
    ("body", "note"),
    [
        ("((volatile float*)16)[i] = 1;", "illegal"),
        ("if (i == 0) *(float2*)(x + 1) = make_float2(1, 2);", "misaligned"),
    ],
)
def test_memory_faults_end_the_process_not_the_run(project: CheckProject, body: str, note: str) -> None:
    project.add("faulty", body)
    record = project.check("faulty")
    assert record.status == "memory_fault"
    assert record.note.startswith("one: ")
    assert note in record.note
    assert statuses(record) == {"one": "memory_fault", "ragged": "not_measured", "general": "not_measured"}


def test_a_kernel_that_hangs_is_a_timeout(project: CheckProject) -> None:
    project.limit_s = 12.0
    project.add("hangs", f"{RIGHT} while (n == 301 && ((volatile float*)x)[0] != 1e30f);")
    record = project.check("hangs")
    assert record.status == "timeout"
    assert record.note.startswith("ragged: the kernel did not end in 12 s")
    assert statuses(record) == {"one": "ok", "ragged": "timeout", "general": "not_measured"}


def test_cublas_and_a_comparison_with_it(tmp_path: Path, project: CheckProject) -> None:
    pytest.importorskip("cupy")
    try:
        from cupy.cuda import cublas  # noqa: F401
    except ImportError:
        pytest.skip("cuBLAS is not installed")
    root = tmp_path / "sgemm"
    shutil.copytree(REPOSITORY / "kernels" / "sgemm", root / "kernels" / "sgemm")
    (root / "config.yaml").write_text(
        "problems: {small: {m: 64, n: 64, k: 64, alpha: 1.0, beta: 0.0}}\n"
        "experiments: {x: {question: q, base: 01_naive, vary: {kernel: [02_gmem_coalesced]}}}\n"
    )
    plan = load_plan(root, lambda wanted: project.device)
    record = check_arm(plan, "00_cublas", "small", None, root / "library.json", "d", root)
    assert record.status == "ok", record
    assert all(problem.library_difference is None for problem in record.problems.values())
    project.folder = root / "kernels" / "sgemm"
    build = project.build("01_naive")
    record = check_arm(plan, "01_naive/default", "small", build, root / "ours.json", "d", root)
    assert record.status == "ok", record
    assert all(0 <= (problem.library_difference or 0) < 1e-3 for problem in record.problems.values())
    assert any(problem.library_difference for problem in record.problems.values())
