"""A small project on disk: one catalogue and one config, as text that a test edits."""

from __future__ import annotations

from pathlib import Path

from kernelab.device.identify import EMULATED
from kernelab.plan.arms import Plan
from kernelab.plan.load import load_plan

CATALOGUE = """\
operation:
  name: sgemm
  title: C = alpha A B + beta C
  problem: {m: int, n: int, k: int, alpha: float, beta: float}
  arrays:
    A: {shape: [m, k], role: input}
    B: {shape: [k, n], role: input}
    C: {shape: [m, n], role: output, read_when: beta != 0}
  arguments: [m, n, k, alpha, A, B, beta, C]
  flops: 2*m*n*k
  bytes: 4*(m*k + k*n + m*n)
  tolerance: {absolute: 1.0e-3, relative: 1.0e-2, frobenius: 1.0e-5}
  checks:
    square: {m: 128, n: 128, k: 128, alpha: 1.0, beta: 0.0}
kernels:
  00_library: {library: cublas, idea: reference}
  12_double:
    source: k.cu
    idea: two buffers
    parameters:
      BM: {type: int, default: 128, levels: [64, 128, 256], about: rows, controls: [grid]}
      TM: {type: int, default: 4, levels: [4, 8, 16, 48], about: rows of a thread, controls: [block]}
      A_PAD: {type: int, default: 2, levels: [0, 2, 4], about: padding, controls: [shared]}
      MIN_BLOCKS: {type: choice, default: none, levels: {none: 0, 1: 1, 2: 2}, about: bound, controls: [min_blocks]}
      BETA_READ: {type: bool, default: true, about: read C}
    derived: {NT: BM // TM}
    constraints:
      - {require: BM % TM == 0, reason: a block is made of whole thread tiles}
    composites:
      tile: {about: shape, levels: {narrow: {TM: 4, BM: 128}, wide: {TM: 16, BM: 256}}}
    launches:
      - {entry: sgemm, grid: ["ceil_div(n, BM)", "ceil_div(m, BM)"], block: NT}
"""
_TWELVE = CATALOGUE[CATALOGUE.index("  12_double") :]
CATALOGUE += _TWELVE.replace("12_double", "13_final")
CATALOGUE += "  20_new: {source: k.cu, idea: newer cards, min_arch: 90, launches: [{entry: sgemm, grid: m, block: 32}]}\n"

CONFIG = """\
device: emulated
problems:
  square: {m: 4096, n: 4096, k: 4096, alpha: 1.0, beta: 0.0}
  small: {m: 1024, n: 1024, k: 1024, alpha: 1.0, beta: 0.0}
experiments:
  bounds:
    question: Does the bound pay?
    base: 13_final
    vary: {MIN_BLOCKS: [none, 1]}
"""


class Project:
    """A project folder whose two files are edited as text."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "kernels" / "sgemm"
        self.folder.mkdir(parents=True)
        (self.folder / "k.cu").write_text("")
        (self.folder / "operation.py").write_text("")
        self.catalogue(CATALOGUE)
        self.config(CONFIG)

    def config(self, text: str) -> None:
        (self.root / "config.yaml").write_text(text)

    def catalogue(self, text: str) -> None:
        (self.folder / "kernels.yaml").write_text(text)

    def experiment(self, body: str) -> None:
        """Replace the experiments by one, `x`, given as flow YAML."""
        self.config(CONFIG.partition("experiments:")[0] + f"experiments:\n  x: {{question: q, {body}}}\n")

    def plan(self, **kwargs: object) -> Plan:
        return load_plan(self.root, lambda wanted: EMULATED, **kwargs)  # type: ignore[arg-type]
