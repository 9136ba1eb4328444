"""What an arithmetic instruction is to the machine: the dtypes that it reads and writes, and a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .types import ScalarType

Array = Any  # a NumPy array of the dtype of a register view; operations are generic in it


@dataclass(frozen=True, slots=True)
class Alu:
    """`function` maps arrays of the `inputs` dtypes, shape (instructions, lanes), to the `outputs`.

    With one output it returns an array; with several, a tuple of them. An output dtype names the register
    file; None as an input dtype stands for the dtype of the register that is read, unsigned.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    function: Callable


# NumPy's short names (without byte order) name the views of the register files.
def view_of(type_: ScalarType) -> str:
    """The register view for a type: 'u4', 'i4', 'f4', ... or '?' for predicates."""
    if type_.kind == "p":
        return "?"
    if type_.size == 1:
        return "i2" if type_.kind == "s" else "u2"
    return np.dtype(type_.dtype).str[1:]


VIEW_DTYPES = {
    name: np.dtype(np.bool_ if name == "?" else name)
    for name in ("u2", "i2", "f2", "u4", "i4", "f4", "u8", "i8", "f8", "?")
}
VIEW_FILES = {name: 3 if name == "?" else {"2": 0, "4": 1, "8": 2}[name[1]] for name in VIEW_DTYPES}
