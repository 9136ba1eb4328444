"""check/<kernel>/<variant>/<problem>.json: whether a build computes what its operation says, and what is wrong where not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from kernelab.records.record import Record

CheckStatus = Literal[
    "ok", "not_measured", "hazard", "wrong_result", "launch_error", "timeout", "memory_fault", "compile_error"
]
# From harmless to grave. A problem that could not be checked outweighs those that passed.
SEVERITY: tuple[CheckStatus, ...] = (
    "ok",
    "not_measured",
    "hazard",
    "wrong_result",
    "launch_error",
    "timeout",
    "memory_fault",
    "compile_error",
)


class MemorySite(BaseModel):
    """The shared-memory accesses of one source line on the emulated device, over the whole grid.

    `wavefronts` are the passes through the banks that `requests` of warps took, `fewest` what the same words need at least.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: str
    line: int
    kind: str
    requests: int
    wavefronts: int
    fewest: int


class CheckedProblem(BaseModel):
    """One problem's result.

    `correct` is None where no result was obtained. `max_abs_error` is the largest |out - ref| over all outputs, `rel_error` the
    largest relative Frobenius error, `library_difference` the largest |out - library's out|, where a library computes the
    operation too. `note` is one line. `hazards` are what the emulated device found, `counters` what it
    counted, `sites` the source lines with most wavefronts; all empty on a GPU. `seconds` is wall-clock time.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    status: CheckStatus
    correct: bool | None = None
    max_abs_error: float | None = None
    rel_error: float | None = None
    library_difference: float | None = None
    note: str = ""
    seconds: float = 0.0
    hazards: tuple[str, ...] = ()
    counters: dict[str, float] = {}
    sites: tuple[MemorySite, ...] = ()


class CheckRecord(Record):
    """A build (or library function) on a device, on one problem or on the operation's small ones.

    `status` is the gravest of its problems', and `note` the first that has it and what was wrong there (or, when all are
    ok, the first remark on any).
    """

    version: ClassVar[int] = 1

    kernel: str
    variant: str
    device: str
    status: CheckStatus
    note: str
    problems: dict[str, CheckedProblem]


def gravest(statuses: Iterable[CheckStatus]) -> CheckStatus:
    """The gravest of some statuses; `ok` of none."""
    return max(statuses, key=SEVERITY.index, default="ok")
