"""Planted faults: small kernels, each with one mistake and a clean twin.

In a source `{{good||bad}}` marks what differs; the line that the report must name ends in `// HERE`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np

FLOATS = np.arange(4096, dtype=np.float32)


def zeros(count: int, dtype: type = np.float32) -> np.ndarray:
    return np.zeros(count, dtype)


@dataclass
class Fault:
    """One planted mistake, the kind of hazard that it must give, and how to launch it."""

    name: str
    kind: str
    source: str
    arguments: dict = field(default_factory=dict)
    grid: tuple[int, ...] = (1,)
    block: tuple[int, ...] = (64,)
    uninitialised: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    dynamic_shared: int = 0
    options: dict = field(default_factory=dict)
    arch: str = "compute_86"

    def text(self, bad: bool) -> str:
        chosen = re.sub(
            r"\{\{(.*?)\|\|(.*?)\}\}", lambda m: m.group(2 if bad else 1), self.source, flags=re.S
        )
        return 'extern "C" __global__ void ' + chosen.strip()

    @property
    def lines(self) -> set[int]:
        return {i for i, line in enumerate(self.text(True).splitlines(), 1) if "// HERE" in line}


IN_OUT = {"A": FLOATS, "C": zeros(64)}
