"""A project on disk: y = alpha x + beta y, one kernel that is right, and whatever kernels a test adds."""

from __future__ import annotations

from pathlib import Path

from kernelab.build.compiler import compile_source
from kernelab.build.toolchain import Toolchain, find_toolchain
from kernelab.check.arm import check_arm, make_job
from kernelab.check.job import CheckJob
from kernelab.errors import UserError
from kernelab.plan.arms import Device, Plan
from kernelab.plan.load import load_plan
from kernelab.records.check import CheckRecord
from kernelab.records.record import read_record

OPERATION = """\
import numpy as np

def reference(problem, arrays):
    y = problem["alpha"] * arrays["x"].astype(np.float64)
    if problem["beta"] != 0:
        y = y + problem["beta"] * arrays["y"].astype(np.float64)
    return {"y": y}
"""
CATALOGUE = """\
operation:
  name: axpby
  title: y = alpha x + beta y
  problem: {n: int, alpha: float, beta: float}
  arrays:
    x: {shape: [n], role: input}
    y: {shape: [n], role: output, read_when: beta != 0}
  arguments: [n, alpha, x, beta, y]
  flops: 3*n
  bytes: 8*n
  tolerance: {absolute: 1.0e-3, relative: 1.0e-2, frobenius: 1.0e-5}
  checks:
    one: {n: 1, alpha: 1.0, beta: 0.0}
    ragged: {n: 301, alpha: 1.5, beta: 0.0}
    general: {n: 256, alpha: -0.5, beta: 2.0}
kernels:
"""
CONFIG = """\
device: emulated
check: {limit_s: LIMIT, seed: 7}
problems:
  large: {n: 5000, alpha: 2.0, beta: 0.0}
experiments:
  all: {question: which is right, base: right, vary: {kernel: [KERNELS]}}
"""
SIGNATURE = 'extern "C" __global__ void axpby(int n, float alpha, float* x, float beta, float* y)'
HEAD = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
RIGHT = "if (i < n) y[i] = beta == 0.0f ? alpha * x[i] : alpha * x[i] + beta * y[i];"
ONE_LAUNCH = '{entry: axpby, grid: ["ceil_div(n, 64)"], block: 64}'


class CheckProject:
    """kernels/axpby below a folder; `add` gives it kernels, `check` runs the step on one of them."""

    def __init__(self, root: Path, device: Device, limit_s: float = 60.0) -> None:
        self.root, self.device, self.limit_s = root, device, limit_s
        self.folder = root / "kernels" / "axpby"
        self.folder.mkdir(parents=True)
        self.operation(OPERATION)
        self._kernels: dict[str, str] = {}
        self.add("right", RIGHT)

    def operation(self, text: str) -> None:
        (self.folder / "operation.py").write_text(text)

    def hook(self, kernel: str, text: str) -> None:
        (self.folder / f"{kernel}.py").write_text(text)

    def add(
        self, name: str, body: str, launches: str = f"[{ONE_LAUNCH}]", more: str = "", source: str = ""
    ) -> None:
        """A kernel with this body (or this whole source), with its launches and further keys of the catalogue in YAML."""
        (self.folder / f"{name}.cu").write_text(source or f"{SIGNATURE} {{ {HEAD} {body} }}\n")
        self._kernels[name] = f"  {name}: {{source: {name}.cu, idea: a test, launches: {launches}{more}}}\n"

    def library(self) -> None:
        self._kernels["00_scal"] = "  00_scal: {library: scal, idea: the library}\n"

    def plan(self) -> Plan:
        sources = [name for name in self._kernels if name != "00_scal"]
        (self.folder / "kernels.yaml").write_text(CATALOGUE + "".join(self._kernels.values()))
        others = ", ".join(name for name in sources if name != "right") or "right"
        config = CONFIG.replace("LIMIT", str(self.limit_s)).replace("KERNELS", others)
        if others == "right":
            config = config.replace("vary: {kernel: [right]}", "vary: {beta: [0.0, 1.0]}")
        (self.root / "config.yaml").write_text(config)
        return load_plan(self.root, lambda wanted: self.device)

    def build(self, kernel: str, arch: str = "") -> Path:
        """The folder with a kernel's code, compiled for the device or for `arch`."""
        folder = self.root / "build" / kernel
        folder.mkdir(parents=True, exist_ok=True)
        made = compile_source(
            self.folder / f"{kernel}.cu", arch=arch or self.device.arch, toolchain=toolchain()
        )
        assert made.ok, made.log
        (folder / "kernel.cubin").write_bytes(made.cubin or b"")
        (folder / "kernel.ptx").write_text(made.ptx)
        return folder

    def job(self, kernel: str, which: str = "small", arch: str = "") -> CheckJob:
        """What a checking process would be told."""
        return make_job(self.plan(), f"{kernel}/default", which, self.build(kernel, arch), self.root)

    def check(self, kernel: str, which: str = "small") -> CheckRecord:
        """Build a kernel, check it in a process of its own, and read the record back."""
        plan = self.plan()
        out = self.root / "results" / "check" / kernel / f"{which}.json"
        build = None if kernel == "00_scal" else self.build(kernel)
        key = kernel if build is None else f"{kernel}/default"
        returned = check_arm(plan, key, which, build, out, "d" * 64, self.root)
        record = read_record(out, CheckRecord, "d" * 64)
        assert record == returned
        return record


def toolchain() -> Toolchain:
    """The compiler that is here."""
    try:
        return find_toolchain("nvrtc")
    except UserError:
        return find_toolchain("nvcc")
