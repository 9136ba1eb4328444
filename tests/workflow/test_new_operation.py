"""Adding an operation is an operation.py, a catalogue entry and a .cu file, as docs/writing-a-kernel.md says."""

from __future__ import annotations

import csv
import io

from workflow_project import Project

CATALOGUE = """\
operation:
  name: saxpy
  title: z = a x + y
  problem: {n: int, a: float}
  arrays:
    x: {shape: [n], role: input}
    y: {shape: [n], role: input}
    z: {shape: [n], role: output}
  arguments: [n, a, x, y, z]
  flops: 2*n
  bytes: 12*n
  tolerance: {absolute: 1.0e-6, relative: 1.0e-5, frobenius: 1.0e-6}
  checks:
    one: {n: 1, a: 2.0}
    odd: {n: 1027, a: -0.5}
kernels:
  saxpy:
    source: saxpy.cu
    idea: one thread, one element
    parameters:
      BLOCK: {type: int, default: 256, levels: [64, 256], about: threads per block, controls: [grid, block]}
    launches: [{entry: saxpy, grid: "ceil_div(n, BLOCK)", block: BLOCK}]
"""
OPERATION = """\
def reference(problem, arrays):
    return {"z": problem["a"] * arrays["x"].astype("float64") + arrays["y"]}
"""
SOURCE = """\
#ifndef BLOCK
#define BLOCK 256
#endif
extern "C" __global__ void saxpy(int n, float a, const float *x, const float *y, float *z)
{
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n) z[i] = a * x[i] + y[i];
}
"""
EXPERIMENT = """\
  block:
    question: Does the block size matter?
    base: saxpy
    vary: {BLOCK: [64, 256]}
"""


def rows_of(project: Project, experiment: str) -> list[dict[str, str]]:
    return [
        row
        for row in csv.DictReader(io.StringIO(project.read("results/table.csv")))
        if row["experiment"] == experiment
    ]


def test_adding_one(project: Project) -> None:
    project.write("kernels/saxpy/kernels.yaml", CATALOGUE)
    project.write("kernels/saxpy/operation.py", OPERATION)
    project.write("kernels/saxpy/saxpy.cu", SOURCE)
    config = project.read("config.yaml").replace(
        "problems:\n", "problems:\n  million: {n: 1000000, a: 3.0}\n"
    )
    project.write("config.yaml", config + EXPERIMENT)
    run = project.snakemake()
    assert run.status == 0, run.output
    assert {job for job in run.jobs if job[0] == "build"} == {
        ("build", "saxpy default"),
        ("build", "saxpy BLOCK=64"),
    }
    rows = rows_of(project, "block")
    assert [(row["kernel"], row["level"], row["correct"], row["problem"]) for row in rows] == [
        ("saxpy", "64", "true", "million"),
        ("saxpy", "256", "true", "million"),
    ]
    assert [row["blocks"] for row in rows] == ["15625", "3907"]
    assert int(rows[0]["registers"]) > 0


def test_a_broken_variant_is_data(project: Project) -> None:
    """A kernel that does not compile, and one that is wrong, become rows; the run goes on and succeeds."""
    project.edit("kernels/scale/right.cu", "if (i < n)", "if (i < n) oops")
    project.edit("kernels/scale/alone.cu", "y[i] = s * x[i]", "y[i] = s + x[i]")
    run = project.snakemake()
    assert run.status == 0, run.output
    right = rows_of(project, "versus")[1]
    assert right["status"] == "compile_error"
    assert "oops" in right["note"]
    assert right["correct"] == ""
    assert {row["status"] for row in rows_of(project, "alone")} == {"wrong_result"}
    assert {row["correct"] for row in rows_of(project, "alone")} == {"false"}
    assert {row["status"] for row in rows_of(project, "unroll")} == {"ok"}


def test_an_out_of_bounds_write_is_named(project: Project) -> None:
    project.edit("kernels/scale/alone.cu", "if (i < n) ", "if (i <= n) ")
    run = project.snakemake()
    assert run.status == 0, run.output
    rows = rows_of(project, "alone")
    assert {row["status"] for row in rows} == {"memory_fault"}
    assert "y" in rows[0]["note"]
