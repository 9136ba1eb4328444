"""config.yaml as typed, frozen objects: device, toolchain, policies, problems, experiments, claims."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from kernelab.plan.model import Bool, Float, Int, Name, Scalar, Strict, level_text, suggestion

ARCH_PATTERN = r"^(auto|sm_\d{2,3}[af]?)$"
DESIGNS = ("vary", "steps", "factorial", "ladder", "configurations")

CONFIRMATION = "search_"


def _device(value: Any) -> Any:
    # An index is written as a number; everything behind the model sees text.
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _levels(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _names(value: Any) -> Any:
    # A name such as 12 is a number in YAML, and again where the command line has it.
    return [level_text(name) if isinstance(name, bool | int | float) else name for name in _levels(value)]


Levels = Annotated[tuple[Scalar, ...], BeforeValidator(_levels), Field(min_length=1)]
Settings = dict[str, Scalar]
# Short enough to be an experiment's name behind CONFIRMATION.
SearchName = Annotated[Name, Field(max_length=80 - len(CONFIRMATION))]


class TimingPolicy(Strict):
    """How an experiment is timed; every figure of it is a control fact."""

    processes: Int = Field(default=6, ge=1, le=100, description="fresh processes per experiment")
    extend_to: Int = Field(
        default=12,
        ge=1,
        le=200,
        description="processes after the one extension, when the interval is too wide",
    )
    half_width: Float = Field(
        default=0.005, gt=0, lt=1, description="95% half-width of a ratio above which the session is extended"
    )
    rounds: Int = Field(default=12, ge=1, le=10_000, description="mirrored rounds per process, at most")
    budget_s: Float = Field(
        default=60.0, gt=0, description="measuring time of one experiment, warm-up included, in seconds"
    )
    sample_ms: Float = Field(
        default=2.0, gt=0, description="shortest sample; a fast kernel is launched as often as this needs"
    )
    warmup_s: Float = Field(default=15.0, ge=0, description="longest warm-up of one process, in seconds")
    steady_pct: Float = Field(
        default=1.0, gt=0, description="SM clock spread, in %, over half a second that counts as steady"
    )
    launch_limit_s: Float = Field(default=30.0, gt=0, description="wall-clock limit of one launch")
    slow_factor: Float = Field(
        default=10.0, ge=1, description="arms slower than the base by more than this get fewer rounds"
    )
    busy: Literal["refuse", "warn"] = Field(
        default="refuse", description="when another process uses the card"
    )
    lock_clocks: Bool | Int = Field(
        default=False, description="false, or the SM clock in MHz to lock where permitted"
    )

    @model_validator(mode="after")
    def _extension(self) -> TimingPolicy:
        if self.extend_to < self.processes:
            raise ValueError(f"extend_to ({self.extend_to}) must not be below processes ({self.processes})")
        return self


class CheckPolicy(Strict):
    """How results are checked."""

    limit_s: Float = Field(default=120.0, gt=0, description="wall-clock limit of one arm's check")
    seed: Int = Field(default=20240, ge=0, description="seed of the inputs")
    timed_problem: Bool = Field(
        default=True, description="on a GPU, check the very problem that is timed as well"
    )
    emulate: Bool = Field(default=True, description="fill the emu_* counters, on a GPU box too")


class ProfilePolicy(Strict):
    """Whether and how ncu is run."""

    enabled: Bool = Field(default=True, description="profile timed arms where ncu works")
    experiments: tuple[Name, ...] | Literal["all"] = Field(default="all", description="whose arms to profile")
    limit_s: Float = Field(default=300.0, gt=0, description="wall-clock limit of one profile")
    clock_control: Literal["none", "base"] = Field(default="none", description="ncu --clock-control")


class Experiment(Strict):
    """One question, a base arm, and one variable (or an ordered list of single steps) to vary."""

    question: str = Field(min_length=1, description="what the experiment asks, in a sentence")
    base: Name | None = Field(default=None, description="the kernel that is varied")
    bases: tuple[Name, ...] | None = Field(
        default=None, min_length=1, description="the same question asked of several kernels"
    )
    hold: Settings = Field(default={}, description="levels that all arms share")
    vary: dict[str, Levels] | None = Field(
        default=None, description="one variable and its levels; the first is the base level"
    )
    steps: tuple[Settings, ...] | None = Field(
        default=None, min_length=1, description="single steps, each on top of the last"
    )
    factorial: dict[str, Levels] | None = Field(
        default=None, description="two or more variables, every combination"
    )
    ladder: tuple[Name, ...] | Literal["rungs"] | None = Field(
        default=None,
        description="kernels in order, each compared with the one before; 'rungs' means all of the catalogue",
    )
    configurations: tuple[Settings, ...] | None = Field(
        default=None,
        min_length=1,
        description="several parameters set together, each set compared with the base",
    )
    operation: Name | None = Field(default=None, description="whose rungs, for ladder: rungs")
    at: tuple[Name, ...] = Field(
        default=(), description="problems; the first that fits the operation where none is named"
    )

    @model_validator(mode="after")
    def _one_design(self) -> Experiment:
        designs = [name for name in DESIGNS if getattr(self, name) is not None]
        if len(designs) != 1:
            found = " and ".join(designs) or "none"
            raise ValueError(f"needs exactly one of {', '.join(DESIGNS)} (found: {found})")
        design = designs[0]
        if design == "ladder":
            if self.base or self.bases:
                raise ValueError("a ladder has no base; its kernels are compared in order")
        elif (self.base is None) == (self.bases is None):
            raise ValueError("needs either base (one kernel) or bases (a list)")
        if self.operation is not None and self.ladder != "rungs":
            raise ValueError("operation belongs to ladder: rungs")
        if self.vary is not None and len(self.vary) != 1:
            moved = " and ".join(self.vary) or "nothing"
            raise ValueError(
                f"vary moves {moved}; a comparison moves exactly one variable. Use steps or factorial, "
                "or declare a composite in the catalogue"
            )
        for index, step in enumerate(self.steps or ()):
            if len(step) != 1:
                moved = " and ".join(step) or "nothing"
                raise ValueError(f"step {index + 1} moves {moved}; each step moves exactly one variable")
        for index, settings in enumerate(self.configurations or ()):
            if not settings:
                raise ValueError(f"configuration {index + 1} sets nothing; name a parameter and its level")
        if self.factorial is not None:
            if len(self.factorial) < 2:
                raise ValueError("a factorial needs two variables or more; use vary for one")
            for name, levels in self.factorial.items():
                if len(levels) < 2:
                    raise ValueError(f"factorial.{name} needs two levels or more")
        return self


class Search(Strict):
    """Which point of a kernel's parameter space is fastest: all are screened, the best are compared with the base."""

    question: str = Field(min_length=1, description="what the search asks, in a sentence")
    base: Name = Field(description="the kernel whose parameters are searched")
    hold: Settings = Field(default={}, description="levels that all configurations share")
    over: dict[str, Levels] = Field(
        min_length=1, description="parameters or composites and their levels; every combination is a point"
    )
    at: Name | None = Field(
        default=None, description="the problem; the first that fits the operation where none is named"
    )
    sampler: Literal["all", "random", "tpe"] = Field(
        default="all", description="all valid points, a random choice, or tpe (Optuna)"
    )
    configurations: Int = Field(
        default=500, ge=1, le=100_000, description="how many points at most, for random and tpe"
    )
    budget_s: Float = Field(default=60.0, gt=0, description="GPU seconds of racing")
    confirm: Int = Field(
        default=3, ge=1, le=50, description="how many of the best are compared with the base, controlled"
    )
    seed: Int = Field(default=1, ge=0, description="seed of the sampler and of the order of the race")


class Claim(Strict):
    """A figure that somebody published, to be set beside what an experiment measures."""

    text: str = Field(min_length=1, description="the claim, in a sentence")
    experiment: Name = Field(description="the experiment that tests it")
    level: Scalar | None = Field(
        default=None, description="which arm of the experiment: the level, or the step's number from 1"
    )
    base: Name | None = Field(default=None, description="which base, where the experiment has several")
    metric: Name = Field(default="time", description="time, or a column of table.csv")
    expect: Literal["faster", "slower", "equal", "higher", "lower", "value", "refused"] = "faster"
    by_pct: Float | None = Field(default=None, description="size of the effect claimed, in %")
    value: Float | None = Field(default=None, description="value of the metric claimed, for expect: value")
    card: str = Field(min_length=1, description="where it was measured")
    source: str = Field(min_length=1, description="who says so")


class Config(Strict):
    """The whole of config.yaml."""

    device: Annotated[str, BeforeValidator(_device)] = Field(
        default="auto", min_length=1, description="auto, emulated, or a GPU's index, UUID or name"
    )
    arch: Annotated[str, Field(pattern=ARCH_PATTERN)] = Field(
        default="auto", description="auto (the device's; sm_86 where there is no GPU) or sm_75 to sm_120"
    )
    toolchain: Literal["nvrtc", "nvcc"] = Field(
        default="nvrtc", description="nvrtc (pinned) or the system's nvcc"
    )
    options: tuple[str, ...] = Field(default=(), description="compiler options for every build")
    target_card: str | None = Field(
        default=None, description="card for the static figures where there is no GPU"
    )
    timing: TimingPolicy = TimingPolicy()
    check: CheckPolicy = CheckPolicy()
    profile: ProfilePolicy = ProfilePolicy()
    problems: dict[Name, Settings] = Field(
        min_length=1, description="named problems, each for the operation whose variables it sets"
    )
    experiments: dict[Name, Experiment] = Field(min_length=1)
    only: Annotated[tuple[Name, ...], BeforeValidator(_names)] = Field(
        default=(), description="the experiments to plan, with their claims; all where none is named"
    )
    search: dict[SearchName, Search] = Field(default={}, description="searches of a kernel's parameter space")
    claims: dict[Name, Claim] = {}

    @model_validator(mode="after")
    def _names_are_declared(self) -> Config:
        for name, claim in self.claims.items():
            if claim.experiment not in self.experiments:
                raise ValueError(f"claims.{name}: the experiment {claim.experiment} is not declared")
            if claim.expect == "value" and claim.value is None:
                raise ValueError(f"claims.{name}: expect: value needs a value")
        profiled = () if self.profile.experiments == "all" else self.profile.experiments
        for key, names in (("only", self.only), ("profile.experiments", profiled)):
            for name in names:
                if name not in self.experiments:
                    known = suggestion(name, list(self.experiments))
                    raise ValueError(f"{key}: {name} is no experiment{known}")
        for name in self.search:
            if CONFIRMATION + name in self.experiments and CONFIRMATION + name not in self.only:
                raise ValueError(
                    f"search.{name}: its confirmation is called {CONFIRMATION}{name}; rename that experiment"
                )
        return self
