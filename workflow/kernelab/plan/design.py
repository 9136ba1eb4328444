"""From an experiment's design to its arms and its one-variable comparisons."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kernelab.plan.arms import Comparison, PlannedExperiment
from kernelab.plan.config import DESIGNS, Experiment
from kernelab.plan.model import level_text
from kernelab.plan.resolve import Resolver, Unresolvable, made_from

Settings = dict[str, str]


class Designer:
    """Expands one experiment.

    Raises:
        Unresolvable: from `expand`, with the reason; a comparison that would move anything but its one
            variable, and two equal arms, are such reasons.
    """

    def __init__(self, resolver: Resolver, name: str, experiment: Experiment) -> None:
        self._resolver = resolver
        self._name = name
        self._experiment = experiment
        self._design = next(name for name in DESIGNS if getattr(experiment, name) is not None)
        # The keys that name its kernels: with them, a level that does not fit may be another file's fault.
        self._kernel_keys = ("ladder", "operation") if self._design == "ladder" else ("base", "bases")
        self._arms: list[str] = []
        self._comparisons: list[Comparison] = []

    def expand(self) -> PlannedExperiment:
        experiment = self._experiment
        is_ladder = self._design == "ladder"
        with made_from(*self._kernel_keys):
            kernels = self._ladder() if is_ladder else (experiment.bases or (experiment.base or "",))
            operation = self._operation(kernels)
        problems = experiment.at or (self._resolver.default_problem(operation),)
        for problem in problems:
            if is_ladder:
                with made_from(*self._kernel_keys, "hold"):
                    self._expand_ladder(kernels, problem)
                continue
            for kernel in kernels:
                with made_from(*self._kernel_keys, "hold", self._design):
                    self._expand_from(self._held(self._settings(kernel, problem)))
        return PlannedExperiment(
            name=self._name,
            question=experiment.question,
            design=self._design,
            arms=tuple(self._arms),
            comparisons=tuple(self._comparisons),
            references=self._references(operation),
        )

    def _expand_from(self, base: Settings) -> None:
        experiment = self._experiment
        if experiment.vary is not None:
            ((variable, levels),) = experiment.vary.items()
            self._expand_vary(base, variable, levels)
        elif experiment.steps is not None:
            self._expand_steps(base, experiment.steps)
        elif experiment.factorial is not None:
            self._expand_factorial(base, experiment.factorial)
        elif experiment.configurations is not None:
            self._expand_configurations(base, experiment.configurations)

    def _ladder(self) -> tuple[str, ...]:
        ladder = self._experiment.ladder
        if ladder != "rungs":
            return tuple(ladder or ())
        if self._experiment.operation is None and len(self._resolver.catalogues) > 1:
            with_rungs = [name for name, c in self._resolver.catalogues.items() if len(list(c.rungs())) > 1]
            if len(with_rungs) != 1:
                raise Unresolvable(
                    f"ladder: rungs needs operation: one of {', '.join(self._resolver.catalogues)}"
                )
            operation = with_rungs[0]
        else:
            operation = self._experiment.operation or next(iter(self._resolver.catalogues))
        if operation not in self._resolver.catalogues:
            raise Unresolvable(
                f"operation: {operation} is no operation (known: {', '.join(self._resolver.catalogues)})"
            )
        catalogue = self._resolver.catalogues[operation]
        return tuple(name for name in catalogue.rungs() if catalogue.kernels[name].source is not None)

    def _operation(self, kernels: Iterable[str]) -> str:
        owners = {}
        for kernel in kernels:
            self._resolver.kernel(kernel)
            owners[self._resolver.owner[kernel]] = kernel
        if len(owners) > 1:
            raise Unresolvable(
                "its kernels compute different operations: "
                + ", ".join(f"{k} {o}" for o, k in owners.items())
            )
        return next(iter(owners))

    def _settings(self, kernel: str, problem: str) -> Settings:
        with made_from(*self._kernel_keys, "at"):
            return self._resolver.base_settings(kernel, problem)

    def _held(self, settings: Settings) -> Settings:
        moving = self._moving()
        for variable, level in self._experiment.hold.items():
            if variable == "kernel":
                raise Unresolvable("hold.kernel: the kernel is what base names")
            if variable in moving:
                raise Unresolvable(f"{variable} is both held and varied; drop it from hold")
            with made_from(*self._kernel_keys, "hold"):
                settings = self._resolver.move(settings, variable, level)
        return settings

    def _moving(self) -> set[str]:
        experiment = self._experiment
        steps = {name for step in experiment.steps or () for name in step}
        configurations = {name for settings in experiment.configurations or () for name in settings}
        return steps | configurations | set(experiment.vary or ()) | set(experiment.factorial or ())

    def _moved(self, settings: Settings, variable: str, level: Any) -> Settings:
        if variable == "kernel":
            return self._resolver.change_kernel(settings, self._experiment.hold, level_text(level))
        with made_from(*self._kernel_keys, self._design):
            return self._resolver.move(settings, variable, level)

    def _expand_vary(self, base: Settings, variable: str, levels: Sequence[Any]) -> None:
        if variable == "kernel" and base["kernel"] not in levels:
            levels = (base["kernel"], *levels)
        texts = [level_text(level) for level in levels]
        for index, text in enumerate(texts):
            if text in texts[:index]:
                raise Unresolvable(
                    f"vary.{variable}: the level {text} stands twice, so two arms would be equal"
                )
        if len(texts) < 2:
            raise Unresolvable(f"vary.{variable}: needs two levels or more (the first is the base level)")
        first = self._moved(base, variable, levels[0])
        self._add(first, new=True)
        for level in levels[1:]:
            other = self._moved(base, variable, level)
            self._add(other, new=True)
            self._compare(first, other, variable, texts[0], level_text(level))

    def _expand_steps(self, base: Settings, steps: Sequence[Mapping[str, Any]]) -> None:
        self._add(base, new=True)
        current = base
        for index, step in enumerate(steps, start=1):
            ((variable, level),) = step.items()
            following = self._moved(current, variable, level)
            if following == current:
                raise Unresolvable(
                    f"step {index} ({variable}: {level_text(level)}) changes nothing, so two arms would be equal"
                )
            self._add(following, new=True)
            self._compare(current, following, variable, self._level(current, variable), level_text(level))
            if index > 1:
                self._compare_with_start(base, following, index)
            current = following

    def _level(self, settings: Settings, variable: str) -> str:
        """The level that a variable stands at; for a composite, its level if one matches, else its parameters."""
        if variable in settings:
            return settings[variable]
        composite = self._resolver.kernel(settings["kernel"]).composites.get(variable)
        if composite is not None:
            for level, values in composite.levels.items():
                if all(settings[name] == level_text(value) for name, value in values.items()):
                    return level
            names = next(iter(composite.levels.values()))
            return ",".join(f"{name}={settings[name]}" for name in names)
        return self._resolver.arm(settings).problem

    def _expand_factorial(self, base: Settings, factorial: Mapping[str, Sequence[Any]]) -> None:
        names = list(factorial)
        if "kernel" in names:
            raise Unresolvable("factorial.kernel: use bases for several kernels")
        grid: dict[tuple[int, ...], Settings] = {}
        for point in itertools.product(*(range(len(factorial[name])) for name in names)):
            settings = base
            for name, index in zip(names, point, strict=True):
                settings = self._moved(settings, name, factorial[name][index])
            grid[point] = settings
            self._add(settings, new=True)
        for point, settings in grid.items():
            for axis, name in enumerate(names):
                if point[axis] > 0:
                    start = (*point[:axis], 0, *point[axis + 1 :])
                    levels = factorial[name]
                    self._compare(
                        grid[start], settings, name, level_text(levels[0]), level_text(levels[point[axis]])
                    )

    def _expand_configurations(self, base: Settings, configurations: Sequence[Mapping[str, Any]]) -> None:
        start = self._resolver.arms[self._add(base, new=True)]
        for index, setting in enumerate(configurations, start=1):
            settings = base
            for variable, level in setting.items():
                with made_from(*self._kernel_keys, self._design):
                    kind = self._resolver.kind(base["kernel"], variable)
                    if kind not in ("parameter", "composite"):
                        raise Unresolvable(
                            f"configuration {index}: {variable} is no parameter of {base['kernel']}; "
                            "hold it, or vary it alone"
                        )
                settings = self._moved(settings, variable, level)
            if settings == base:
                raise Unresolvable(f"configuration {index} is the base itself; drop it")
            other = self._resolver.arms[self._add(settings, new=True)]
            self._comparisons.append(
                Comparison(
                    base=start.name,
                    arm=other.name,
                    variable="configuration",
                    kind="configuration",
                    base_level=self._resolver.builds[start.build].variant,
                    level=self._resolver.builds[other.build].variant,
                    composite=True,
                )
            )

    def _expand_ladder(self, kernels: Sequence[str], problem: str) -> None:
        if len(kernels) < 2:
            raise Unresolvable("a ladder needs two kernels or more")
        rungs = [self._held(self._settings(kernel, problem)) for kernel in kernels]
        for settings in rungs:
            self._add(settings, new=True)
        for lower, upper in itertools.pairwise(rungs):
            self._compare(lower, upper, "kernel", lower["kernel"], upper["kernel"])

    def _add(self, settings: Settings, *, new: bool) -> str:
        arm = self._resolver.arm(settings)
        if arm.name in self._arms:
            if new:
                raise Unresolvable(f"two arms are equal ({arm.name}); drop one of the levels")
        else:
            self._arms.append(arm.name)
        return arm.name

    def _compare(self, base: Settings, other: Settings, variable: str, base_level: str, level: str) -> None:
        kind = self._resolver.kind(base["kernel"], variable)
        moved = {name for name in base.keys() | other.keys() if base.get(name) != other.get(name)}
        allowed = self._parts(base, other, variable)
        if stray := sorted(moved - allowed):
            raise Unresolvable(
                f"the comparison moves {variable} and {' and '.join(stray)}; it may move one variable only"
            )
        self._comparisons.append(
            Comparison(
                base=self._add(base, new=False),
                arm=self._add(other, new=False),
                variable=variable,
                kind=kind,
                base_level=base_level,
                level=level,
                composite=kind == "composite" or (variable == "problem" and len(moved) > 1),
            )
        )

    def _compare_with_start(self, base: Settings, other: Settings, steps: int) -> None:
        self._comparisons.append(
            Comparison(
                base=self._add(base, new=False),
                arm=self._add(other, new=False),
                variable=f"steps 1 to {steps}",
                kind="steps",
                base_level="start",
                level=str(steps),
                composite=True,
            )
        )

    def _parts(self, base: Settings, other: Settings, variable: str) -> set[str]:
        """The settings that a variable may move."""
        if variable == "kernel":
            # The parameters of a kernel belong to it: another kernel has its own.
            kernels = (self._resolver.kernel(base["kernel"]), self._resolver.kernel(other["kernel"]))
            own = {name for kernel in kernels for name in kernel.parameters}
            machine = set() if all(kernel.source for kernel in kernels) else {"options", "arch", "toolchain"}
            return {"kernel"} | own | machine
        declared = self._resolver.kernel(base["kernel"])
        if variable in declared.composites:
            return {name for values in declared.composites[variable].levels.values() for name in values}
        if variable == "problem":
            return set(self._resolver.catalogues[self._resolver.owner[base["kernel"]]].operation.problem)
        return {variable}

    def _references(self, operation: str) -> tuple[str, ...]:
        library = self._resolver.catalogues[operation].library()
        if library is None:
            return ()
        names: dict[str, None] = {}
        for key in self._arms:
            arm = self._resolver.arms[key]
            settings = self._resolver.base_settings(library, self._resolver.default_problem(operation))
            settings |= {
                name: arm.settings[name]
                for name in (*self._resolver.catalogues[operation].operation.problem, "data", "l2")
            }
            reference = self._resolver.arm(settings).name
            if reference not in self._arms:
                names[reference] = None
        return tuple(names)
