"""A project in a temporary folder, run by real Snakemake: the repository's own workflow with three tiny kernels."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
Job = tuple[str, str]  # rule, wildcard values joined by spaces

CONFIG = """\
device: emulated
problems:
  long: {n: 1000, s: 2.0}
experiments:
  unroll:
    question: Does unrolling help?
    base: left
    vary: {UNROLL: [1, 2]}
  versus:
    question: Is right better than left?
    base: left
    vary: {kernel: [right]}
  alone:
    question: Does the block size matter?
    base: alone
    vary: {BLOCK: [64, 128]}
"""

CATALOGUE = """\
operation:
  name: scale
  title: y = s x
  problem: {n: int, s: float}
  arrays:
    x: {shape: [n], role: input}
    y: {shape: [n], role: output}
  arguments: [n, s, x, y]
  flops: n
  bytes: 8*n
  tolerance: {absolute: 1.0e-6, relative: 1.0e-6, frobenius: 1.0e-6}
  checks:
    one: {n: 1, s: 2.0}
    odd: {n: 77, s: 2.0}
kernels:
  left: &kernel
    source: left.cu
    idea: with a header
    parameters:
      UNROLL: {type: int, default: 1, levels: [1, 2], about: elements of a thread, controls: [grid]}
    launches: [{entry: scale, grid: "ceil_div(n, 64*UNROLL)", block: 64}]
  right:
    source: right.cu
    idea: with the same header
    launches: [{entry: scale, grid: "ceil_div(n, 64)", block: 64}]
  alone:
    source: alone.cu
    idea: without a header
    parameters:
      BLOCK: {type: int, default: 64, levels: [64, 128], about: threads of a block, controls: [grid, block]}
    launches: [{entry: scale, grid: "ceil_div(n, BLOCK)", block: BLOCK}]
"""

OPERATION = '''\
"""y = s x"""


def reference(problem, arrays):
    return {"y": problem["s"] * arrays["x"].astype("float64")}
'''

HEADER = """\
// one product
__device__ inline float product(float a, float b) { return a * b; }
"""
LEFT = """\
#include "common/product.cuh"
#ifndef UNROLL
#define UNROLL 1
#endif
extern "C" __global__ void scale(int n, float s, const float *x, float *y)
{
    #pragma unroll
    for (int j = 0; j < UNROLL; j++) {
        int i = (blockIdx.x * UNROLL + j) * 64 + threadIdx.x;
        if (i < n) y[i] = product(s, x[i]); // one element
    }
}
"""
RIGHT = """\
#include "common/product.cuh"
extern "C" __global__ void scale(int n, float s, const float *x, float *y)
{
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) y[i] = product(x[i], s);
}
"""
ALONE = """\
#ifndef BLOCK
#define BLOCK 64
#endif
extern "C" __global__ void scale(int n, float s, const float *x, float *y)
{
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n) y[i] = s * x[i];
}
"""


class Run:
    """What one call of Snakemake did."""

    def __init__(self, completed: subprocess.CompletedProcess[str]) -> None:
        self.status = completed.returncode
        self.output = completed.stdout + completed.stderr
        self.jobs = set(_jobs(self.output))


class Project:
    """A project folder that Snakemake runs in."""

    def __init__(self, root: Path) -> None:
        self.root = root
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "workflow", root / "workflow", ignore=ignore)
        shutil.copytree(ROOT / "profiles", root / "profiles")
        shutil.copy(ROOT / "Snakefile", root)
        (root / "envs").mkdir()
        shutil.copy(ROOT / "envs/kernelab.yaml", root / "envs")
        self.write("config.yaml", CONFIG)
        self.write("kernels/scale/kernels.yaml", CATALOGUE)
        self.write("kernels/scale/operation.py", OPERATION)
        self.write("kernels/scale/common/product.cuh", HEADER)
        self.write("kernels/scale/left.cu", LEFT)
        self.write("kernels/scale/right.cu", RIGHT)
        self.write("kernels/scale/alone.cu", ALONE)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def read(self, name: str) -> str:
        return (self.root / name).read_text()

    def edit(self, name: str, old: str, new: str) -> None:
        text = self.read(name)
        assert old in text
        self.write(name, text.replace(old, new, 1))

    def snakemake(self, *arguments: str, env: dict[str, str] | None = None) -> Run:
        command = [sys.executable, "-m", "snakemake", "--nocolor", *(arguments or ("results/table.csv",))]
        # The copy of the package runs, not the one that runs these tests.
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | (env or {})
        return Run(
            subprocess.run(
                command, cwd=self.root, capture_output=True, text=True, timeout=300, env=environment
            )
        )

    def kernelab(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"PYTHONPATH": str(self.root / "workflow")}
        command = [sys.executable, "-m", "kernelab", *arguments]
        return subprocess.run(
            command, cwd=self.root, capture_output=True, text=True, timeout=120, env=environment
        )


def _jobs(output: str) -> list[Job]:
    """The jobs that a run (or a dry run) announces, by rule and wildcards."""
    jobs = []
    for block in re.split(r"\n(?=(?:local)?rule \w+:)", output):
        found = re.match(r"(?:\[.*?\]\n)?(?:local)?rule (\w+):", block)
        if found and found[1] != "all":
            wildcards = re.search(r"^ +wildcards: (.*)$", block.split("\n\n")[0], re.MULTILINE)
            values = (
                [part.partition("=")[2] for part in re.split(r", (?=\w+=)", wildcards[1])]
                if wildcards
                else []
            )
            # kernel=left, variant=UNROLL=2: the wildcard's own name ends at the first '='.
            jobs.append((found[1], " ".join(values)))
    return jobs
