"""A small project for results that are invented: every design, and texts that a page must not take for markup."""

from __future__ import annotations

import json
from pathlib import Path

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)> "
    "\"quoted\" 'single' & {{ 7*7 }} \u202eé世\U0001f600 ${x} </style>"
)
LONG = "an endless question " + "x" * 400
KERNELS = ("01_first", "02_second", "03_third")

CATALOGUE = """\
operation:
  name: scale
  title: y = s x
  problem: {n: int, s: float}
  arrays:
    x: {shape: [n], role: input}
    y: {shape: [n], role: output}
  arguments: [n, s, x, y]
  flops: 2*n*n
  bytes: 8*n
  tolerance: {absolute: 1.0e-6, relative: 1.0e-6, frobenius: 1.0e-6}
  checks: {tiny: {n: 8, s: 2.0}}
kernels:
  00_library: {library: cublas, idea: reference}
"""
KERNEL = """\
  NAME:
    source: NAME.cu
    idea: IDEA
    parameters:
      UNROLL: {type: int, default: 1, levels: [1, 2, 4], about: elements of a thread}
      WIDE: {type: choice, default: narrow, levels: {narrow: 0, wide: 1}, about: width}
      TUNE: {type: int, default: 0, levels: TUNES, about: any number}
    launches: [{entry: scale, grid: "ceil_div(n, 64)", block: 64}]
"""
CONFIG = """\
device: auto
check: {emulate: false}
problems:
  long: {n: 100000, s: 2.0}
  short: {n: 10000, s: 2.0}
experiments:
  ladder: {question: "What does each rung gain?", ladder: rungs, operation: scale}
  unroll: {question: HOSTILE, base: 01_first, vary: {UNROLL: [1, 2, 4]}}
  both_bases: {question: "Does the answer flip?", bases: [01_first, 02_second], vary: {UNROLL: [1, 2]}}
  steps: {question: "Which step pays?", base: 01_first, steps: [{UNROLL: 2}, {WIDE: wide}]}
  grid: {question: LONG, base: 02_second, factorial: {UNROLL: [1, 2], WIDE: [narrow, wide]}}
claims:
  C1: {experiment: unroll, level: 2, expect: faster, by_pct: 3.0, card: another card, source: HOSTILE, text: HOSTILE}
  C2: {experiment: unroll, level: 4, expect: slower, card: another card, source: somebody, text: unrolling by four loses}
"""
PUBLISHED = """\
figures:
  - source: an article
    card: another card
    pct_of_cublas: {01_first: 40.0, 03_third: 90.5}
"""


def write_project(root: Path, config: str = CONFIG, tunes: int = 1) -> None:
    """Write config.yaml and kernels/ into a folder. `tunes`: levels of the parameter TUNE."""
    folder = root / "kernels" / "scale"
    folder.mkdir(parents=True)
    texts = {"HOSTILE": json.dumps(HOSTILE, ensure_ascii=False), "LONG": json.dumps(LONG)}
    for word, text in texts.items():
        config = config.replace(word, text)
    (root / "config.yaml").write_text(config, encoding="utf-8")
    ideas = dict.fromkeys(KERNELS, "another") | {KERNELS[0]: texts["HOSTILE"]}
    kernel = KERNEL.replace("TUNES", str(list(range(tunes))))
    catalogue = CATALOGUE + "".join(
        kernel.replace("NAME", name).replace("IDEA", ideas[name]) for name in KERNELS
    )
    (folder / "kernels.yaml").write_text(catalogue, encoding="utf-8")
    (folder / "operation.py").write_text("def reference(problem, arrays):\n    return {}\n")
    (folder / "published.yaml").write_text(PUBLISHED)
    for name in KERNELS:
        (folder / f"{name}.cu").write_text(f"int {name[3:]} = UNROLL + WIDE + TUNE;\n")
