"""An operation, y = alpha x + beta y, as a catalogue would declare it, and its folder on disk."""

from __future__ import annotations

from pathlib import Path

from kernelab.operation.loader import LoadedOperation, load_operation
from kernelab.plan.catalogue import Kernel, Operation

OPERATION = {
    "name": "axpby",
    "title": "y = alpha x + beta y",
    "problem": {"n": "int", "alpha": "float", "beta": "float"},
    "arrays": {
        "x": {"shape": ["n"], "role": "input"},
        "y": {"shape": ["n"], "role": "output", "read_when": "beta != 0"},
    },
    "arguments": ["n", "alpha", "x", "beta", "y"],
    "flops": "2*n",
    "bytes": "8*n",
    "tolerance": {"absolute": 1e-3, "relative": 1e-2, "frobenius": 1e-5},
    "checks": {"small": {"n": 8, "alpha": 1.0, "beta": 0.0}},
}
REFERENCE = """\
import numpy as np

def reference(problem, arrays):
    y = problem["alpha"] * arrays["x"].astype(np.float64)
    if problem["beta"] != 0:
        y = y + problem["beta"] * arrays["y"].astype(np.float64)
    return {"y": y}
"""


def make_kernel(**changes: object) -> Kernel:
    """A kernel with one parameter and two launches that exclude each other, changed as asked."""
    declared: dict[str, object] = {
        "idea": "one thread, one element",
        "source": "k.cu",
        "parameters": {"BLOCK": {"type": "int", "default": 64, "about": "threads", "controls": ["block"]}},
        "derived": {"SPAN": "2*BLOCK"},
        "launches": [
            {"entry": "whole", "when": "n % SPAN == 0", "grid": "n // SPAN", "block": "BLOCK"},
            {
                "entry": "ragged",
                "when": "n % SPAN != 0",
                "grid": ["ceil_div(n, SPAN)", 2],
                "block": ["BLOCK", 2],
            },
        ],
    }
    return Kernel.model_validate(declared | changes)


class Folder:
    """kernels/axpby on disk; `write` replaces operation.py."""

    def __init__(self, root: Path, operation: Operation) -> None:
        self.path = root / "kernels" / "axpby"
        self.path.mkdir(parents=True)
        self.operation = operation
        self.write(REFERENCE)

    def write(self, text: str, name: str = "operation.py") -> None:
        (self.path / name).write_text(text)

    def load(self) -> LoadedOperation:
        return load_operation(self.path, self.operation)
