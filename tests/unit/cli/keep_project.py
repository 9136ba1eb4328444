"""A project with one search and a result of it, and a catalogue whose layout must survive an edit."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from kernelab.device.identify import EMULATED
from kernelab.digests import Digests
from kernelab.plan.load import load_plan
from kernelab.plan.space import Space
from kernelab.records.layout import RESULTS, Layout
from kernelab.records.search import SearchRow, write_search

CATALOGUE = """\
# The first line stays.
operation:
  name: scale
  title: "y = s x"   # two blanks before this
  problem: {n: int, s: float}
  arrays:
    x: {shape: [n], role: input}
    y: {shape: [n], role: output}
  arguments: [n, s, x, y]
  flops: n
  bytes: 8*n
  tolerance: {absolute: 1.0e-6, relative: 1.0e-6, frobenius: 1.0e-6}
  checks: {tiny: {n: 8, s: 2.0}}

kernels:
  one:
    source: one.cu
    idea: "the base: \N{GREEK SMALL LETTER ALPHA}"
    parameters:
      UNROLL: &U {type: int, default: 1, levels: [1, 2, 4], about: elements}  # an anchor
      BLOCK: {type: int, default: 64, levels: [64, 128], about: threads, controls: [block]}
      CACHE: {type: bool, default: true, about: keep}
      BOUND: {type: choice, default: none, levels: {none: 0, "1": 1}, about: bound}
    launches:
      - {entry: scale, grid: 1, block: BLOCK}  # the last line of one

  # A comment that belongs to two.
  two: {source: one.cu, idea: flow, parameters: {UNROLL: *U, BLOCK: *U}, launches: [{entry: scale, grid: 1, block: 32}]}
"""
CONFIG = """\
device: emulated
problems:
  long: {n: 1000, s: 2.0}
experiments:
  unroll: {question: q, base: one, vary: {UNROLL: [1, 2]}}
search:
  best: {question: q, base: one, over: {UNROLL: [1, 2, 4], BLOCK: [64, 128]}}
  bound: {question: q, base: one, hold: {CACHE: false}, over: {BOUND: [none, 1]}}
  flow: {question: q, base: two, over: {UNROLL: [1, 2, 4]}}
"""
RANKED = ({"UNROLL": "4", "BLOCK": "128"}, {"UNROLL": "1", "BLOCK": "64"}, {"UNROLL": "2", "BLOCK": "64"})


class KeepProject:
    """The working directory is the project's folder (commands read config.yaml there)."""

    def __init__(self, root: Path) -> None:
        self.file = root / "kernels" / "scale" / "kernels.yaml"
        self.file.parent.mkdir(parents=True)
        self.file.write_text(CATALOGUE, encoding="utf-8")
        (self.file.parent / "operation.py").write_text("")
        (self.file.parent / "one.cu").write_text("int a;\n")
        (root / "config.yaml").write_text(CONFIG)

    def searched(self, name: str, *ranked: dict[str, str]) -> None:
        """Write the result of a search, best first."""
        plan = load_plan(Path(), lambda _: EMULATED)
        space, digests = Space.of(plan, name), Digests(plan, Path())
        rows = []
        for rank, levels in enumerate(ranked, start=1):
            point = space.point(levels)
            assert point.build is not None
            rows.append(
                SearchRow(
                    rank=rank,
                    configuration=point.name,
                    status="finalist",
                    build_digest=digests.of_build(point.build),
                    settings=json.dumps(levels),
                )
            )
        path = Layout(RESULTS, EMULATED.id).search(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_search(path, rows)


def arguments(name: str, level: str, rank: int = 1) -> argparse.Namespace:
    return argparse.Namespace(name=name, level=level, rank=rank, override="{}", configfile=[])
