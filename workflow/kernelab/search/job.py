"""What the parent asks of the worker that holds the card, and what it gets back: one JSON a line, either way.

The worker also sends timing's announcements (what it is about to do, and how long that may take) and, as its last line, a fault.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from kernelab.plan.arms import Arm, Build, Plan
from kernelab.timing.job import Message

BASE = "#base"
AGAIN = "#base#aa"
"""The base and its second instance; neither can be the name of a configuration."""


class Contender(Message):
    """A configuration with its code. cubin: an absolute path."""

    name: str
    arm: Arm
    build: Build
    cubin: str


class SearchJob(Message):
    """The first line to a worker.

    root        the project's folder, which the catalogue's paths start from
    plan        its operations, problems and policies; its arms are not used
    base        what everything is compared with
    references  a folder where the float64 reference is kept between workers
    """

    root: str
    plan: Plan
    base: Arm
    references: str


class Heat(Message):
    """Members that share rounds with the base.

    base        its code: known once it is compiled, while the worker has long begun
    check       names of the members that were never checked
    slow        whose first sample takes more than so many times the base's is not sampled any more; None: all are
    session, number, seed   of the samples
    """

    base: Contender
    members: list[Contender]
    check: list[str]
    rounds: int
    slow: float | None
    session: str
    number: int
    seed: int


class Checked(Message):
    """What the check of one member said: ok, wrong_result or launch_error; the worker goes on."""

    kind: Literal["checked"] = "checked"
    name: str
    status: Literal["ok", "wrong_result", "launch_error"]
    note: str
    seconds: float


class Raced(Message):
    """What the rounds of a heat gave.

    rows     samples in the order of timing.samples.COLUMNS
    slow     members that were not raced, and the time of a first launch in ms; base_ms: of the base's at that moment
    wrong    members whose output was wrong when it was judged again while they raced
    seconds  of warming up and sampling
    """

    kind: Literal["raced"] = "raced"
    rows: list[list[int | float | str | None]]
    slow: dict[str, float]
    base_ms: float
    wrong: dict[str, str]
    seconds: float


class Ruined(Message):
    """The worker's last line when the base is wrong after a member was: something that the card holds was written over."""

    kind: Literal["ruined"] = "ruined"
    name: str
    note: str


Reply = Annotated[Checked | Raced | Ruined, Field(discriminator="kind")]
REPLY: TypeAdapter[Checked | Raced | Ruined] = TypeAdapter(Reply)
