"""From variables and levels to arms: what a setting means for one kernel on one machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kernelab.plan.arms import DATA, L2, Arm, Build, Device, Problem, VariableKind, variant_name
from kernelab.plan.catalogue import Catalogue, Kernel
from kernelab.plan.config import Config
from kernelab.plan.model import level_text, suggestion

ARCHS = tuple(f"sm_{n}" for n in (75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121))


class Unresolvable(ValueError):
    """A setting that does not fit; the message names it and says why.

    keys   those of the experiment or search that the setting is made from; none where it may be any
    """

    keys: tuple[str, ...] = ()


@contextmanager
def made_from(*keys: str) -> Iterator[None]:
    """What is resolved inside is made from these keys of an experiment or search; an inner call knows better."""
    try:
        yield
    except Unresolvable as error:
        error.keys = error.keys or keys
        raise


class Resolver:
    """Makes arms, once per distinct assignment, and the builds that they need.

    Args:
        config: the user's config.
        catalogues: by operation name.
        device: where the arms run.
    """

    def __init__(self, config: Config, catalogues: Mapping[str, Catalogue], device: Device) -> None:
        self.config = config
        self.catalogues = catalogues
        self.device = device
        self.arch = device.arch if config.arch == "auto" else config.arch
        self.owner = {kernel: name for name, catalogue in catalogues.items() for kernel in catalogue.kernels}
        self.problems = self._problems()
        self.arms: dict[str, Arm] = {}
        self.builds: dict[str, Build] = {}

    def _problems(self) -> dict[str, Problem]:
        problems = {}
        for name, values in self.config.problems.items():
            matching = [
                c.operation for c in self.catalogues.values() if set(c.operation.problem) == set(values)
            ]
            if len(matching) == 1:
                operation = matching[0]
            else:
                variables = "; ".join(
                    f"{c.operation.name}: {', '.join(c.operation.problem)}" for c in self.catalogues.values()
                )
                which = "no operation" if not matching else "more than one operation"
                raise Unresolvable(
                    f"problems.{name}: its variables ({', '.join(values)}) fit {which} ({variables})"
                )
            try:
                typed = operation.problem_values(values, f"problems.{name}")
            except ValueError as error:
                raise Unresolvable(str(error)) from None
            problems[name] = Problem(name=name, operation=operation.name, values=typed)
        return problems

    def kernel(self, name: str) -> Kernel:
        """The declaration of a kernel, by name."""
        if name not in self.owner:
            raise Unresolvable(f"{name} is no kernel of the catalogue{suggestion(name, list(self.owner))}")
        return self.catalogues[self.owner[name]].kernels[name]

    def default_problem(self, operation: str) -> str:
        """The first problem declared for an operation."""
        for name, problem in self.problems.items():
            if problem.operation == operation:
                return name
        raise Unresolvable(f"no problem is declared for the operation {operation}; add one under problems")

    def kind(self, kernel: str, variable: str) -> VariableKind:
        """What sort of variable a name is for a kernel."""
        declared = self.kernel(kernel)
        if variable in declared.parameters:
            return "parameter"
        if variable in declared.composites:
            return "composite"
        operation = self.catalogues[self.owner[kernel]].operation
        if variable in ("kernel", "options", "arch", "toolchain", "problem", "data", "l2"):
            return variable  # type: ignore[return-value]
        if variable in operation.problem:
            return "problem"
        known = [
            *declared.parameters,
            *declared.composites,
            *("kernel", "options", "arch", "toolchain", "problem", "data", "l2"),
            *operation.problem,
        ]
        raise Unresolvable(f"{variable} is no variable of {kernel}{suggestion(variable, known)}")

    def base_settings(self, kernel: str, problem: str) -> dict[str, str]:
        """Every variable of a kernel at its default level."""
        declared = self.kernel(kernel)
        operation = self.owner[kernel]
        if problem not in self.problems:
            raise Unresolvable(
                f"the problem {problem} is not declared{suggestion(problem, list(self.problems))}"
            )
        chosen = self.problems[problem]
        if chosen.operation != operation:
            raise Unresolvable(
                f"the problem {problem} belongs to {chosen.operation}, but {kernel} computes {operation}"
            )
        settings = {"kernel": kernel, **declared.defaults()}
        if declared.source is not None:
            settings |= {
                "options": " ".join(self.config.options),
                "arch": self.arch,
                "toolchain": self.config.toolchain,
            }
        settings |= {name: level_text(value) for name, value in chosen.values.items()}
        return settings | {"data": "uniform", "l2": "cold"}

    def move(self, settings: Mapping[str, str], variable: str, level: Any) -> dict[str, str]:
        """The settings with one variable at another level; a composite or a problem moves all that it names."""
        moved = dict(settings)
        kernel = settings["kernel"]
        kind = self.kind(kernel, variable)
        text = level_text(level)
        if kind == "parameter":
            try:
                self.kernel(kernel).parameters[variable].macro_value(level)
            except ValueError as error:
                raise Unresolvable(f"{variable}: {error}") from None
            moved[variable] = text
        elif kind == "composite":
            composite = self.kernel(kernel).composites[variable]
            if text not in composite.levels:
                raise Unresolvable(
                    f"{variable}: {text} is not a level (levels: {', '.join(composite.levels)})"
                )
            for name, value in composite.levels[text].items():
                moved[name] = level_text(value)
        elif variable == "problem":
            moved |= {
                name: value
                for name, value in self.base_settings(kernel, text).items()
                if name in self.catalogues[self.owner[kernel]].operation.problem
            }
        elif kind == "problem":
            operation = self.catalogues[self.owner[kernel]].operation
            values = {name: _number(moved[name]) for name in operation.problem} | {variable: level}
            try:
                moved[variable] = level_text(operation.problem_values(values, "")[variable])
            except ValueError as error:
                raise Unresolvable(str(error).removeprefix(": ")) from None
        else:
            moved[variable] = self._machine_level(kernel, variable, text)
        return moved

    def _machine_level(self, kernel: str, variable: str, text: str) -> str:
        if variable not in ("data", "l2") and self.kernel(kernel).source is None:
            raise Unresolvable(f"{variable} cannot be moved: {kernel} is a library function")
        allowed = {"arch": ARCHS, "toolchain": ("nvrtc", "nvcc"), "data": DATA, "l2": L2}.get(variable)
        if variable == "options":
            return "" if text == "none" else " ".join(text.split())
        if allowed is not None and text not in allowed:
            raise Unresolvable(f"{variable}: {text} is not a level (levels: {', '.join(allowed)})")
        return text

    def change_kernel(
        self, settings: Mapping[str, str], hold: Mapping[str, Any], kernel: str
    ) -> dict[str, str]:
        """The settings of another kernel on the same problem and machine, with the same levels held."""
        self.kernel(kernel)
        if self.owner[kernel] != self.owner[settings["kernel"]]:
            raise Unresolvable(
                f"{kernel} computes {self.owner[kernel]}, but {settings['kernel']} {self.owner[settings['kernel']]}"
            )
        operation = self.catalogues[self.owner[kernel]].operation
        moved = self.base_settings(kernel, self.default_problem(operation.name))
        moved |= {name: settings[name] for name in (*operation.problem, "data", "l2")}
        if self.kernel(kernel).source is not None:
            moved |= {name: settings[name] for name in ("options", "arch", "toolchain") if name in settings}
        for variable, level in hold.items():
            if self.kind(kernel, variable) in ("parameter", "composite"):
                moved = self.move(moved, variable, level)
        return moved

    def arm(self, settings: Mapping[str, str]) -> Arm:
        """The arm of a full assignment; equal assignments give the same arm."""
        kernel = settings["kernel"]
        declared = self.kernel(kernel)
        operation = self.owner[kernel]
        levels = {name: settings[name] for name in declared.parameters}
        if (broken := declared.violated(levels)) is not None:
            raise Unresolvable(
                f"{kernel} at {variant_name(declared.differing(levels))} breaks a constraint: {broken}"
            )
        problem = self._problem_name(operation, settings)
        build, excluded, static_only = "", "", ""
        if declared.source is not None:
            build = self._build(kernel, declared, levels, settings).key
            if _arch_number(settings["arch"]) < declared.min_arch:
                excluded = f"needs sm_{declared.min_arch} or newer; this arm is for {settings['arch']}"
            static_only = self._why_not_here(settings["arch"])
        variant = self.builds[build].variant if build else "default"
        method = ",".join(
            f"{name}={settings[name]}"
            for name, d in (("data", "uniform"), ("l2", "cold"))
            if settings[name] != d
        )
        name = f"{kernel}/{variant}@{problem}" + (f",{method}" if method else "")
        if name not in self.arms:
            self.arms[name] = Arm(
                name=name,
                kernel=kernel,
                operation=operation,
                build=build,
                problem=problem,
                data=settings["data"],
                l2=settings["l2"],
                settings=dict(settings),
                excluded=excluded,
                static_only=static_only,
            )
        return self.arms[name]

    def _why_not_here(self, arch: str) -> str:
        """Machine code runs on its own major architecture, from its minor upwards; the emulated device runs any."""
        if self.device.kind == "emulated":
            return ""
        wanted, here = _arch_number(arch), _arch_number(self.device.arch)
        if wanted // 10 == here // 10 and wanted <= here:
            return ""
        return f"{arch} code does not run on {self.device.name} ({self.device.arch})"

    def _problem_name(self, operation: str, settings: Mapping[str, str]) -> str:
        values = {name: _number(settings[name]) for name in self.catalogues[operation].operation.problem}
        for name, problem in self.problems.items():
            if problem.operation == operation and problem.values == values:
                return name
        name = variant_name({key: settings[key] for key in values})
        self.problems[name] = Problem(name=name, operation=operation, values=values)
        return name

    def machine_differing(self, settings: Mapping[str, str]) -> dict[str, str]:
        """Options, architecture and toolchain, as far as they differ from the config's own."""
        defaults = {
            "options": " ".join(self.config.options),
            "arch": self.arch,
            "toolchain": self.config.toolchain,
        }
        return {
            name: settings[name] or "none" for name, default in defaults.items() if settings[name] != default
        }

    def _build(
        self, kernel: str, declared: Kernel, levels: dict[str, str], settings: Mapping[str, str]
    ) -> Build:
        differing = declared.differing(levels) | self.machine_differing(settings)
        build = Build(
            kernel=kernel,
            variant=variant_name(differing),
            operation=self.owner[kernel],
            source=declared.source or "",
            levels=levels,
            defines={name: declared.parameters[name].macro_value(level) for name, level in levels.items()},
            options=tuple(settings["options"].split()),
            arch=_target(settings["arch"], declared),
            toolchain=settings["toolchain"],
        )
        return self.builds.setdefault(build.key, build)


def _target(arch: str, declared: Kernel) -> str:
    """What the compiler is told: sm_90a for sm_90, where a kernel wants what only that architecture has."""
    return f"{arch}a" if declared.arch_specific and arch == f"sm_{declared.min_arch}" else arch


def _number(text: str) -> int | float:
    return float(text) if any(c in text for c in ".en") else int(text)


def _arch_number(arch: str) -> int:
    return int("".join(c for c in arch if c.isdigit()))
