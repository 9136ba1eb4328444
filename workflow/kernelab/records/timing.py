"""timing/<experiment>.json: under which conditions the samples beside it were taken, and what they say of each arm."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from kernelab.records.record import Record

ArmStatus = Literal[
    "ok",
    "compile_error",
    "launch_error",
    "wrong_result",
    "hazard",
    "memory_fault",
    "timeout",
    "not_measured",
    "impossible",
]


class Part(BaseModel):
    """A frozen part of a record."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class CardFacts(Part):
    """The card that timed: what a peak is computed from; clocks are the highest. None: the driver did not say."""

    uuid: str
    name: str
    arch: str
    multiprocessors: int
    fp32_lanes: int | None
    l2_bytes: int
    memory_clock_mhz: float | None
    memory_bus_bits: int | None
    max_sm_clock_mhz: float | None
    power_limit_w: float | None


class Conditions(Part):
    """What else a time depends on; sessions of other conditions are never mixed into one ratio."""

    driver: str
    cuda_runtime: str
    cupy: str
    cublas: str
    kernelab_method: int
    environment: dict[str, str]  # NVIDIA_TF32_OVERRIDE and the like, where set
    policy: dict[str, bool | int | float | str]  # the part of TimingPolicy that decides what is measured


class SessionMember(Part):
    """One loaded instance in a session. `digest` is of everything that its time depends on but the conditions."""

    arm: str
    role: Literal["base", "arm", "aa", "reference"]
    digest: str


class ProcessFacts(Part):
    """One fresh process: its seed fixes every order in it (load order and rounds)."""

    seed: int
    warmup_s: float
    steady: bool


class MemberTime(Part):
    """A member's time in a session: see timing.summary. Intervals are None where there is but one process."""

    time_ms: float
    time_low_ms: float | None
    time_high_ms: float | None
    sm_clock_mhz: float | None
    samples: int
    processes: int
    launches: int


class SessionRecord(Part):
    """Processes that timed the same members.

    groups    the members that share rounds, per group
    times     per member
    rounds    mirrored rounds of each process; a member takes part in every `strides`-th of them, from 0
    launches  launches of a sample, per member
    reason    why the session went on to more processes, or did not
    """

    id: str
    conditions: Conditions
    members: dict[str, SessionMember]
    groups: list[list[str]]
    rounds: int
    launches: dict[str, int]
    strides: dict[str, int]
    processes: list[ProcessFacts]
    times: dict[str, MemberTime]
    locked_clock_mhz: int | None
    extended: bool
    reason: str
    other_processes: list[str]  # that used the card, where config.yaml says to warn only
    environment_before: dict[str, str] = {}  # see device.environment; captured before the first process
    environment_after: dict[str, str] = {}  # and after the last


class TimedPair(Part):
    """A comparison (or, where base is the arm itself, an arm that no comparison holds) and the session it is read from."""

    base: str
    arm: str
    session: str


class TimedArm(Part):
    """What is known of an arm; times are None where it was not measured.

    session       the newest session that the record holds of it, which the times are from
    time_ms ...   see MemberTime
    reference_ms  time of the library's arm at the same problem and method, in that same session
    """

    status: ArmStatus
    note: str = ""
    session: str = ""
    time_ms: float | None = None
    time_low_ms: float | None = None
    time_high_ms: float | None = None
    sm_clock_mhz: float | None = None
    samples: int = 0
    processes: int = 0
    launches: int = 0
    reference_ms: float | None = None


class Failure(Part):
    """An arm that could not be timed. It is not tried again while its digest and the conditions stand."""

    arm: str
    status: ArmStatus
    note: str
    digest: str
    conditions: Conditions


class TimedProblem(Part):
    """A problem with one kind of data: its values, its cost, and the digest of the inputs' bytes."""

    problem: str
    data: str
    values: dict[str, int | float]
    flops: float
    bytes: float
    inputs_sha256: dict[str, str]


class TimingRecord(Record):
    """See the module. `pairs` holds the comparisons that were timed, `arms` every arm of the experiment."""

    version: ClassVar[int] = 1

    experiment: str
    card: CardFacts | None
    sessions: list[SessionRecord]
    pairs: list[TimedPair]
    failures: list[Failure]
    arms: dict[str, TimedArm]
    problems: list[TimedProblem]

    def session(self, name: str) -> SessionRecord:
        """The session of an id; KeyError where there is none."""
        for session in self.sessions:
            if session.id == name:
                return session
        raise KeyError(name)

    def controls(self, name: str) -> list[tuple[str, str]]:
        """The A/A pairs of a session: (base, its second name), as the samples call them."""
        return [(m.arm, key) for key, m in sorted(self.session(name).members.items()) if m.role == "aa"]
