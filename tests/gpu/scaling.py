"""The operation of the small projects that these tests make: y = a x."""

from __future__ import annotations

OPERATION = """\
import numpy as np
def reference(problem, arrays):
    return {"y": problem["a"] * arrays["x"].astype(np.float64)}
"""


def declaration(name: str) -> str:
    """The catalogue's part `operation`, under a name."""
    return f"""\
operation:
  name: {name}
  title: y = a x
  problem: {{n: int, a: float}}
  arrays: {{x: {{shape: [n], role: input}}, y: {{shape: [n], role: output}}}}
  arguments: [n, a, x, y]
  flops: n
  bytes: 8*n
  tolerance: {{absolute: 1.0e-6, relative: 1.0e-6, frobenius: 1.0e-6}}
  checks: {{tiny: {{n: 64, a: 2.0}}}}
"""
