"""A project on disk whose one kernel compiles in a blink: y = N x, with N to be searched; N = 13 does not compile."""

from __future__ import annotations

from pathlib import Path

import yaml

from kernelab.build.toolchain import Toolchain, find_toolchain
from kernelab.device.identify import EMULATED
from kernelab.digests import Digests
from kernelab.plan.arms import Plan
from kernelab.plan.load import load_plan
from kernelab.plan.space import Space
from kernelab.records.layout import Layout
from kernelab.search.builds import BuildPool, BuildRequest, BuiltConfiguration

OPERATION = """\
import numpy as np

def reference(problem, arrays):
    return {"y": 3.0 * arrays["x"].astype(np.float64)}
"""
CATALOGUE = """\
operation:
  name: scale
  title: y = N x
  problem: {n: int}
  arrays:
    x: {shape: [n], role: input}
    y: {shape: [n], role: output}
  arguments: [n, x, y]
  flops: n
  bytes: 8*n
  tolerance: {absolute: 1.0e-3, relative: 1.0e-2, frobenius: 1.0e-5}
  checks: {one: {n: 1}}
kernels:
  scaled:
    source: scaled.cu
    idea: one thread an element
    parameters:
      N: {type: int, default: 3, about: the factor}
      PAD: {type: int, default: 0, about: floats beside the shared tile, controls: [shared]}
    constraints:
      - {require: N != 99, reason: 99 is not a factor}
    composites:
      both: {about: factor and padding, levels: {small: {N: 3, PAD: 0}, large: {N: 30, PAD: 32}}}
    launches:
      - {entry: scaled, when: n % 64 == 0, grid: ["ceil_div(n, 64)"], block: 64, dynamic_shared: 512}
      - {entry: guarded, when: n % 64 != 0, grid: ["ceil_div(n, 64)"], block: 64}
"""
SOURCE = """\
// y = N x
#include "factor.cuh"
#ifndef PAD
#define PAD 0
#endif
extern "C" __global__ void scaled(int n, const float* x, float* y) {
  __shared__ float tile[64 + PAD];
  tile[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
  __syncthreads();
  y[blockIdx.x * 64 + threadIdx.x] = N * tile[(threadIdx.x + 1) % 64];
}
extern "C" __global__ void guarded(int n, const float* x, float* y) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  if (i < n) y[i] = N * x[i];
}
"""
HEADER = """\
#ifndef N
#define N 3
#endif
#if N == 13
#error thirteen is not a factor
#endif
"""


class ScaledProject:
    """The project below a folder. Its search `factors` is over N; `over` and more of the config may be given."""

    def __init__(self, root: Path, over: dict[str, list[object]] | None = None, **config: object) -> None:
        self.root = root
        self.folder = root / "kernels" / "scale"
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "operation.py").write_text(OPERATION)
        (self.folder / "kernels.yaml").write_text(CATALOGUE)
        (self.folder / "scaled.cu").write_text(SOURCE)
        (self.folder / "factor.cuh").write_text(HEADER)
        self.config: dict[str, object] = {
            "device": "emulated",
            "problems": {"whole": {"n": 4096}, "ragged": {"n": 1000}},
            "experiments": {"one": {"question": "?", "base": "scaled", "vary": {"N": [3, 4]}}},
            "search": {
                "factors": {"question": "Which?", "base": "scaled", "over": over or {"N": [2, 3, 4, 5]}}
            },
            **config,
        }
        self.layout = Layout(root / "results", EMULATED.id)

    @property
    def plan(self) -> Plan:
        (self.root / "config.yaml").write_text(yaml.safe_dump(self.config, sort_keys=False))
        return load_plan(self.root, lambda _: EMULATED)

    def digests(self) -> Digests:
        return Digests(self.plan, self.root)

    def requests(self) -> list[BuildRequest]:
        digests = self.digests()
        points = Space.of(self.plan, "factors").points()
        return [BuildRequest(c, digests.of_build(c.build)) for c in points if c.build]

    def pool(
        self, workers: int = 2, timeout_s: float = 60.0, toolchain: Toolchain | None = None
    ) -> BuildPool:
        found = toolchain or find_toolchain("nvrtc")
        return BuildPool(found, self.plan, self.layout, self.root, workers, timeout_s)

    def build(self, **how: object) -> dict[str, BuiltConfiguration]:
        """What a pool of its own makes of every request, by the configuration's name."""
        with self.pool(**how) as pool:  # type: ignore[arg-type]
            return {one.configuration.name: one for one in pool.run(self.requests())}
