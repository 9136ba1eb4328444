"""compare/<experiment>.json: one verdict a comparison, with everything that it rests on."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from kernelab.records.record import Record

VERDICTS = (
    "faster",
    "slower",
    "equivalent",
    "within_margin",
    "inconclusive",
    "unstable",
    "identical_code",
    "confounded",
    "not_measured",
)


class Part(BaseModel):
    """A frozen part of a record."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Ratio(Part):
    """A ratio arm / base and its 95% interval; half_width is half of it in log ratio."""

    value: float
    low: float
    high: float
    half_width: float
    log_mean: float
    standard_error: float
    degrees: float


class Change(Part):
    """A control fact or an outcome with both values. `declared`: the variable controls it (always true of an outcome)."""

    name: str
    base: str
    arm: str
    declared: bool = True


class ArmCode(Part):
    """What an arm's verdicts were made with: architecture, compiler, digest of its source's tokens, hash of its machine
    code. Empty for a library function."""

    arch: str
    compiler: str
    source_sha256: str
    sass: str


class ComparedPair(Part):
    """One comparison.

    variable, kind, base_level, level, composite   from the plan
    verdict, direction, reason, notes              see compare.verdict; direction -1: the arm takes less time
    confounds          phrases, each naming a fact and both values
    ratio, cycles, clock   time, SM cycles and SM clock of the arm over the base's; None where not measured
    aa_half_width      95% half-width of the widest A/A control of its session, in log ratio
    p_value, levels    of "no difference", after Holm's correction over the levels judged together
    base_sass, arm_sass   hashes of the machine code that was judged; empty for a library function
    control_facts_changed, outcomes_changed   what differs between the two arms
    source_diff        token diff of the preprocessed sources; empty where the sources are one
    certificate        one portable line that `kernelab verify` checks against these results
    """

    base: str
    arm: str
    variable: str
    kind: str
    base_level: str
    level: str
    composite: bool
    problem: str
    verdict: str
    direction: int
    reason: str
    notes: list[str]
    confounds: list[str]
    ratio: Ratio | None
    cycles: Ratio | None
    clock: Ratio | None
    aa_half_width: float | None
    p_value: float | None
    levels: int
    processes: int
    rounds: int
    session: str
    base_sass: str
    arm_sass: str
    control_facts_changed: list[Change]
    outcomes_changed: list[Change]
    source_diff: str
    certificate: str


class FactorialEffect(Part):
    """A main effect (one variable) or an interaction (several) of a factorial, as a ratio of times; see compare.effects."""

    problem: str
    kernel: str
    variables: list[str]
    levels: list[str]
    ratio: Ratio
    p_value: float


class SameQuestion(Part):
    """The same change on two bases (or at two problems): does the answer agree, flip or fade?

    change   variable: base level -> level
    first, second   the base arms
    ratio    of the second ratio over the first; None where one was not timed
    """

    change: str
    first: str
    second: str
    answer: str
    reason: str
    ratio: Ratio | None
    size_differs: bool


class CompareRecord(Record):
    """See the module.

    method      how it was measured and judged: two records are comparable only where it is equal
    card        name of the card that timed; empty where nothing was timed
    conditions  per session, the environment in which it was measured
    arms        per arm, its outcomes by their names in table.csv
    code        per arm, what it was compiled from and to: a verdict is stale once that has changed
    effects_note   why a factorial has no effects
    """

    version: ClassVar[int] = 1

    experiment: str
    question: str
    design: str
    device: str
    card: str
    method: dict[str, str]
    conditions: dict[str, dict[str, str]]
    arms: dict[str, dict[str, int | float | str | None]]
    code: dict[str, ArmCode]
    comparisons: list[ComparedPair]
    effects: list[FactorialEffect]
    effects_note: str
    same_question: list[SameQuestion]

    def pair(self, base: str, arm: str) -> ComparedPair | None:
        """The comparison of two arms, or None."""
        return next((pair for pair in self.comparisons if (pair.base, pair.arm) == (base, arm)), None)
