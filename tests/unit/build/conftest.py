from __future__ import annotations

from collections.abc import Callable

import pytest

from kernelab.build.sass import Instruction
from kernelab.build.toolchain import Toolchain, find_toolchain
from kernelab.errors import UserError

Listing = Callable[[str], list[Instruction]]

_BRANCHES = ("BRA", "CALL", "BSSY", "WARPSYNC")


@pytest.fixture
def listing() -> Listing:
    """Reads SASS in short, `@P0 BRA 0x10`: one instruction a line, 16 bytes each, `//` opens a comment."""
    return _listing


def _listing(text: str) -> list[Instruction]:
    found = []
    for i, line in enumerate(line for line in text.split("\n") if line.strip()):
        words = line.split("//")[0].split()
        predicate = words.pop(0) if words[0].startswith("@") else ""
        opcode, operands = words[0], " ".join(words[1:])
        branches = opcode.split(".")[0] in _BRANCHES and words[-1].startswith("0x")
        found.append(
            Instruction(16 * i, predicate, opcode, operands, int(words[-1], 16) if branches else None)
        )
    return found


@pytest.fixture(params=["nvrtc", "nvcc"])
def toolchain(request: pytest.FixtureRequest) -> Toolchain:
    """Each toolchain of this machine; nvrtc is a dependency, nvcc is skipped where it is not installed."""
    if request.param == "nvcc":
        try:
            return find_toolchain("nvcc")
        except UserError as missing:
            pytest.skip(str(missing))
    return find_toolchain("nvrtc")
