"""What the parent asks of a worker process, and what it gets back."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from kernelab.plan.arms import Plan
from kernelab.records.timing import ArmStatus, CardFacts


class Message(BaseModel):
    """A frozen message between the two."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class JobMember(Message):
    """See groups.Member."""

    name: str
    arm: str
    role: str


class JobGroup(Message):
    """See groups.Group."""

    members: list[JobMember]
    anchor: str


class BuiltArm(Message):
    """A build's machine code (an absolute path) and the digest that says which code it is."""

    cubin: str
    sass_sha256: str


class Sizes(Message):
    """Decided by the first process of a session and kept by the others."""

    rounds: int
    launches: dict[str, int]
    strides: dict[str, int]


class Job(Message):
    """One fresh process of a session.

    root             the project's folder, which the catalogue's paths start from
    builds           by build key
    budget_s         measuring time of this process, warm-up included
    sizes            None: decide them
    references       a folder where float64 references are kept between the processes of the run
    result           the file to write
    """

    root: str
    plan: Plan
    session: str
    process: int
    seed: int
    groups: list[JobGroup]
    builds: dict[str, BuiltArm]
    budget_s: float
    sizes: Sizes | None
    references: str
    result: str


class InputFacts(Message):
    """The digests (sha256) of the inputs' bytes at a problem with one kind of data."""

    problem: str
    data: str
    inputs_sha256: dict[str, str]


class ProcessResult(Message):
    """What one process measured. rows: samples in the order of samples.COLUMNS; wrong: arm name to what was wrong."""

    seed: int
    warmup_s: float
    steady: bool
    sizes: Sizes
    rows: list[list[int | float | str | None]]
    wrong: dict[str, str]
    card: CardFacts
    driver: str
    cuda_runtime: str
    cupy: str
    cublas: str
    inputs: list[InputFacts]


class Announcement(Message):
    """A line from a worker: what it is about to do, and how long that may take. A dead man's switch."""

    step: str
    member: str = ""
    limit_s: float


class Fault(Message):
    """A worker's last line when an arm failed: it then ends with FAULT_EXIT."""

    member: str
    status: ArmStatus
    note: str


FAULT_EXIT = 3
BROKEN_EXIT = 4
"""Exit of a worker that met a broken machine; its last line on stderr says what."""
