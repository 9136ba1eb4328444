"""Arms, builds and comparisons: the objects of a plan."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import cached_property
from typing import Literal

from pydantic import Field

from kernelab.plan.catalogue import Kernel, Operation
from kernelab.plan.config import CheckPolicy, Claim, ProfilePolicy, TimingPolicy
from kernelab.plan.model import Scalar, Strict

MachineKind = Literal["options", "arch", "toolchain", "problem", "data", "l2"]
VariableKind = Literal["kernel", "parameter", "composite", MachineKind, "steps", "configuration"]
DATA = ("uniform", "normal", "integers")
L2 = ("cold", "hot")
_SAFE = re.compile(r"[^A-Za-z0-9_.+=,-]")
MAX_VARIANT = 120


class Problem(Strict):
    """A named problem: the values of the operation's variables."""

    name: str
    operation: str
    values: dict[str, int | float]


class Build(Strict):
    """The part of an arm that determines machine code. Equal builds are built once."""

    kernel: str
    variant: str
    operation: str
    source: str  # below the operation's catalogue folder
    levels: dict[str, str]
    defines: dict[str, int]
    options: tuple[str, ...]
    arch: str
    toolchain: str

    @property
    def key(self) -> str:
        return f"{self.kernel}/{self.variant}"


class Arm(Strict):
    """A full assignment of all variables.

    `settings` maps every variable that can be moved to its level; two arms are compared by it.
    `build` is the key of the build, empty for a library function. `excluded` says why the arm cannot be built,
    `static_only` why it is built but cannot run on the plan's device; both are empty for most arms.
    """

    name: str
    kernel: str
    operation: str
    build: str
    problem: str
    data: str
    l2: str
    settings: dict[str, str]
    excluded: str = ""
    static_only: str = ""

    @property
    def record_key(self) -> str:
        """What its check and profile records are filed under: the build's key, or `<kernel>/default` for a library."""
        return self.build or f"{self.kernel}/default"

    @property
    def runs(self) -> bool:
        """Whether it can be launched on the plan's device."""
        return not self.excluded and not self.static_only


class Comparison(Strict):
    """A base arm against one other arm; exactly one variable differs.

    Of kind `steps` it is the steps so far, of kind `configuration` all that one configuration sets.
    """

    base: str
    arm: str
    variable: str
    kind: VariableKind
    base_level: str
    level: str
    composite: bool


class PlannedExperiment(Strict):
    """An experiment with its arms, in order, and its comparisons. `reference` arms are the library's, one per problem."""

    name: str
    question: str
    design: str
    arms: tuple[str, ...]
    comparisons: tuple[Comparison, ...]
    references: tuple[str, ...]


class PlannedSearch(Strict):
    """A search: the parameters of one kernel, on one problem, whose levels span a space around a base.

    hold, at    as config.yaml has them; the base is the kernel with `hold` applied
    machine     what differs from the config's own options, architecture and toolchain; it is part of every variant
    over        parameter or composite -> its levels, in the order of the file; the last key moves fastest
    """

    name: str
    question: str
    kernel: str
    operation: str
    problem: str
    hold: dict[str, Scalar]
    at: str | None
    machine: dict[str, str]
    base: Arm
    base_build: Build
    over: dict[str, tuple[str, ...]]
    sampler: Literal["all", "random", "tpe"]
    configurations: int
    budget_s: float
    confirm: int
    seed: int


class Configuration(Strict):
    """One point of a search's space.

    name        the variant of its build, such as BK=8,TM=16; `default` is the kernel's default point
    levels      of the keys of the search's `over` alone
    build, arm  None where it is excluded; `excluded` then says why (the constraint that it breaks)
    """

    name: str
    levels: dict[str, str]
    build: Build | None = None
    arm: Arm | None = None
    excluded: str = ""


class Device(Strict):
    """Where arms run: a GPU by its UUID, or `emulated`. `recorded`: the GPU is elsewhere, and only its records are here."""

    id: str
    kind: Literal["gpu", "emulated"]
    name: str
    arch: str
    uuid: str = ""
    recorded: bool = Field(default=False, exclude=True)


class OperationPlan(Strict):
    """An operation with the kernels of its catalogue, and the folder that they live in."""

    folder: str
    operation: Operation
    kernels: dict[str, Kernel]


class Plan(Strict):
    """Everything that the steps need to know. Written to results/plan.json; plan.csv is its readable half.

    Searches are no part of what is written, nor of the plan's digest: a search has a digest and records of its own, so
    that a space can grow without a table being made again. `arms` are those of the experiments; `builds` has the base of
    every search as well.
    """

    device: Device
    target_card: str | None
    operations: dict[str, OperationPlan]
    problems: dict[str, Problem]
    builds: dict[str, Build]
    arms: dict[str, Arm]
    experiments: dict[str, PlannedExperiment]
    claims: dict[str, Claim]
    timing: TimingPolicy
    check: CheckPolicy
    profile: ProfilePolicy
    searches: dict[str, PlannedSearch] = Field(default={}, exclude=True)

    def kernel(self, arm: Arm) -> Kernel:
        return self.operations[arm.operation].kernels[arm.kernel]

    def operation(self, arm: Arm) -> Operation:
        return self.operations[arm.operation].operation

    def experiment_arms(self, name: str) -> list[Arm]:
        """The arms of an experiment that run on the plan's device, its references last."""
        experiment = self.experiments[name]
        return [arm for key in (*experiment.arms, *experiment.references) if (arm := self.arms[key]).runs]

    @cached_property
    def profiled(self) -> frozenset[str]:
        """The arms that are to be profiled where they run: those of the experiments that the config names."""
        policy = self.profile
        chosen = [
            e
            for e in self.experiments.values()
            if policy.experiments == "all" or e.name in policy.experiments
        ]
        return (
            frozenset(arm for e in chosen for arm in (*e.arms, *e.references))
            if policy.enabled
            else frozenset()
        )

    def timed_comparisons(self, name: str) -> list[Comparison]:
        """The comparisons of an experiment whose two arms both run on the plan's device."""
        return [
            c for c in self.experiments[name].comparisons if self.arms[c.base].runs and self.arms[c.arm].runs
        ]


def variant_name(differing: Mapping[str, str]) -> str:
    """`default`, or what differs from the defaults, readable: A_PAD=2,MIN_BLOCKS=none.

    A path component: anything that is unsafe there is replaced, and a digest then keeps the name unique.
    """
    if not differing:
        return "default"
    readable = ",".join(f"{name}={level}" for name, level in differing.items())
    safe = _SAFE.sub("_", readable)
    if safe == readable and len(safe) <= MAX_VARIANT:
        return safe
    return f"{safe[:MAX_VARIANT]}~{hashlib.sha256(readable.encode()).hexdigest()[:10]}"
