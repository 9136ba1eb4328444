"""A fault that compute-sanitizer can see, and its clean twin.

In a source `{{clean||planted}}` marks what differs. Each twin becomes an entry of its own in one file of CUDA C++, so that one
compilation serves all. They are written so that the tool must see them by its manual: an access outside an array is outside
every allocation, one outside shared memory is outside the block's whole allotment.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Tool = Literal["memcheck", "racecheck", "initcheck", "synccheck"]
Twin = Literal["planted", "clean"]
TWINS: tuple[Twin, ...] = ("planted", "clean")

FLOATS = np.arange(4096, dtype=np.float32)
OUT = np.zeros(64, np.float32)
IN_OUT: dict[str, Any] = {"A": FLOATS, "C": OUT}


@dataclass(frozen=True)
class SanitizedFault:
    """One mistake.

    name           what it is, in words
    tool           the tool of compute-sanitizer that looks for it
    kind           the hazard that the emulated device must report
    source         of a kernel: parameters and body
    arguments      in the order of the parameters: device arrays; int and float as int32 and float32; None is a null pointer
    uninitialised  arrays that nobody writes before the launch
    unseen         why the tool cannot see it all the same; empty where it must
    """

    name: str
    tool: Tool
    kind: str
    source: str
    arguments: dict[str, Any]
    grid: int = 1
    block: int = 64
    uninitialised: tuple[str, ...] = ()
    dynamic_shared: int = 0
    unseen: str = ""

    def entry(self, twin: Twin) -> str:
        """The name of a twin's entry."""
        return re.sub(r"\W+", "_", f"{self.name} {twin}")

    def text(self, twin: Twin) -> str:
        """CUDA C++ of one twin."""
        group = 2 if twin == "planted" else 1
        chosen = re.sub(r"\{\{(.*?)\|\|(.*?)\}\}", lambda m: m[group], self.source, flags=re.S)
        return f'extern "C" __global__ void {self.entry(twin)}{chosen.strip()}\n'


COMMIT = 'asm volatile("cp.async.commit_group;" ::: "memory");'
WAIT = 'asm volatile("cp.async.wait_group 0;" ::: "memory");'


def copy_16(source: str) -> str:
    """A cp.async of 16 bytes, of thread t."""
    return f"""asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
    :: "r"((unsigned)__cvta_generic_to_shared(tile + 4 * t)), "l"({source}) : "memory");"""


def pipeline(copy: str, wait: str, barrier: str) -> str:
    """A kernel that copies a tile with cp.async, waits, synchronises and reads what other threads copied."""
    return f"""(const float* A, float* C) {{
  __shared__ __align__(16) float tile[256];
  const int t = threadIdx.x;
  {copy}
  {COMMIT}
  {wait}
  {barrier}
  C[t] = tile[255 - t];
}}"""
