"""What every record is made from, as one digest each.

The Snakefile compares these digests (as params) to decide what to rebuild, and `table` refuses a record whose
digest is not the plan's; so a lost .snakemake folder, or a record copied from elsewhere, is never believed.
A digest is made of what a step reads (settings, comment-stripped sources, toolchain) and never of times or paths.
"""

from __future__ import annotations

import ast
import hashlib
import json
from functools import cached_property
from pathlib import Path
from typing import Any

from kernelab.build.source import source_closure, source_digest
from kernelab.build.toolchain import find_toolchain
from kernelab.errors import UserError
from kernelab.plan.arms import Arm, Build, Plan
from kernelab.plan.catalogue import Kernel
from kernelab.plan.model import suggestion
from kernelab.records.layout import RESULTS, SMALL
from kernelab.records.record import settings_digest

# Raised by hand when a step's method changes so that its old records no longer mean the same.
METHODS = {"build": 3, "check": 1, "timing": 1, "profile": 1, "compare": 1, "search": 1, "confirm": 1}
ABSENT = "absent"


class Digests:
    """The digests of one plan, in the project folder `root`. Each source is read once."""

    def __init__(self, plan: Plan, root: Path) -> None:
        self._plan = plan
        self._root = root
        self._builds: dict[str, str] = {}
        self._operations: dict[str, Any] = {}
        self._fingerprints: dict[str, str] = {}
        self._sources: dict[Path, str] = {}
        self._declared: dict[tuple[str, str], Any] = {}

    def source_files(self, build: Build) -> tuple[Path, ...]:
        """The source of a build and every header that it includes, below the project folder.

        Raises:
            UserError: an included file is missing.
        """
        source = self._folder(build.operation) / build.source
        return tuple(path.relative_to(self._root) for path in source_closure(source))

    def toolchain(self, name: str) -> str:
        """The fingerprint of a toolchain on this machine, or `absent`.

        Of a card that is elsewhere, the one beside its records: they were made with it.
        """
        if name not in self._fingerprints:
            self._fingerprints[name] = self._recorded(name) or _installed(name)
        return self._fingerprints[name]

    def is_foreign(self, name: str) -> bool:
        """Whether the records here are of another toolchain than this machine's, since their card is elsewhere."""
        return self.toolchain(name) != _installed(name)

    @cached_property
    def toolchains(self) -> dict[str, str]:
        """The fingerprints of every toolchain that the plan uses."""
        return {
            name: self.toolchain(name) for name in sorted({b.toolchain for b in self._plan.builds.values()})
        }

    def _recorded(self, name: str) -> str:
        """The fingerprint that results/toolchain.json holds, where the card is elsewhere; empty where there is none."""
        if not self._plan.device.recorded:
            return ""
        try:
            described = json.loads((self._root / RESULTS / "toolchain.json").read_text(encoding="utf-8"))
            return str(described[name].get("fingerprint", ""))
        except (OSError, ValueError, KeyError, AttributeError):
            return ""

    def build(self, key: str) -> str:
        """The digest of a build of the plan."""
        if key not in self._builds:
            self._builds[key] = self.of_build(self._plan.builds[key])
        return self._builds[key]

    def of_build(self, build: Build) -> str:
        """The digest of any build: tokens of its sources, macros, options, architecture and toolchain.

        Its operation and kernel are of the plan's catalogue; the plan need not hold the build itself.
        """
        return settings_digest(
            {
                "method": METHODS["build"],
                "source": self._source(self._folder(build.operation) / build.source),
                "entries": self._launches(build.operation, build.kernel),
                "defines": build.defines,
                "options": build.options,
                "arch": build.arch,
                "toolchain": self.toolchain(build.toolchain),
            }
        )

    def check(self, key: str, problem: str, device: str) -> str:
        """The digest of a check: the build, the operation and its Python, the problem and the device.

        Args:
            key: a build's key, or `<kernel>/default` for a library function.
            problem: a problem's name, or SMALL for the operation's own check problems.
            device: the plan's device's id, or `emulated`, which is there on every machine.
        """
        operation, what = self._what(key)
        plan = self._plan
        if problem != SMALL and problem not in plan.problems:
            raise UserError(
                f"{problem}: no problem of the plan{suggestion(problem, [SMALL, *plan.problems])}"
            )
        problems = (
            plan.operations[operation].operation.checks if problem == SMALL else plan.problems[problem].values
        )
        return settings_digest(
            {
                "method": METHODS["check"],
                "what": what,
                "operation": self._operation(operation),
                "problems": problems,
                "seed": plan.check.seed,
                "device": device,
            }
        )

    def timing_arm(self, arm: Arm, build: Build | None = None) -> str:
        """The digest of what one arm's samples depend on. `build` is its build where the plan does not hold it."""
        return settings_digest(
            {
                "what": self._of(build, self.of_build(build)) if build else self._what(arm.record_key)[1],
                "problem": self._plan.problems[arm.problem].values,
                "data": arm.data,
                "l2": arm.l2,
                "operation": self._operation(arm.operation),
            }
        )

    def timing(self, experiment: str) -> str:
        """The digest of an experiment's timing: its arms, their comparisons, the policy and the device."""
        plan = self._plan
        return settings_digest(
            {
                "method": METHODS["timing"],
                "arms": {arm.name: self.timing_arm(arm) for arm in plan.experiment_arms(experiment)},
                "comparisons": [(c.base, c.arm) for c in plan.timed_comparisons(experiment)],
                "policy": plan.timing.model_dump(mode="json"),
                "seed": plan.check.seed,
                "device": plan.device.id,
            }
        )

    def profile(self, arm: Arm) -> str:
        """The digest of an arm's profile."""
        return settings_digest(
            {
                "method": METHODS["profile"],
                "arm": self.timing_arm(arm),
                "policy": self._plan.profile.model_dump(mode="json"),
                "seed": self._plan.check.seed,
                "device": self._plan.device.id,
            }
        )

    def compare(self, experiment: str) -> str:
        """The digest of an experiment's verdicts: its comparisons, its builds and the records that they are read from."""
        plan = self._plan
        planned = plan.experiments[experiment]
        arms = [plan.arms[name] for name in planned.arms]
        running = [arm for arm in arms if arm.runs]
        kernels = {arm.kernel: plan.kernel(arm) for arm in arms}
        checks = [(arm.record_key, problem) for arm in running for problem in (SMALL, arm.problem)]
        return settings_digest(
            {
                "method": METHODS["compare"],
                "experiment": planned.model_dump(mode="json"),
                "controls": {
                    name: {p: d.controls for p, d in k.parameters.items()} for name, k in kernels.items()
                },
                "card": plan.target_card,
                "builds": {
                    arm.build: self.build(arm.build) for arm in arms if arm.build and not arm.excluded
                },
                "timing": self.timing(experiment),
                "checks": {
                    f"{key} {problem}": self.check(key, problem, plan.device.id) for key, problem in checks
                },
                "profiles": {arm.name: self.profile(arm) for arm in running},
            }
        )

    def search(self, name: str) -> str:
        """The digest of a search: its space and method, its base, the operation, the policy and the device."""
        plan = self._plan
        planned = plan.searches[name]
        kernel = plan.operations[planned.operation].kernels[planned.kernel]
        # What the base holds and runs on is in its own digest.
        outside = {"name", "question", "base", "base_build", "hold", "at"}
        # A level that `keep` adds to the catalogue is in no space before it is named there.
        space = {
            "constraints": [constraint.require for constraint in kernel.constraints],
            "parameters": {
                name: [p.type, p.default, p.levels if isinstance(p.levels, dict) else None]
                for name, p in kernel.parameters.items()
            },
            "composites": {name: c.levels for name, c in kernel.composites.items() if name in planned.over},
        }
        return settings_digest(
            {
                "method": METHODS["search"],
                "search": planned.model_dump(mode="json", exclude=outside),
                "space": space,
                "base": self.timing_arm(planned.base, planned.base_build),
                "policy": plan.timing.model_dump(mode="json"),
                "seed": plan.check.seed,
                "device": plan.device.id,
            }
        )

    def confirm(self, name: str) -> str:
        """The digest of a search's confirmation: the search, and how its winners are checked and compared."""
        return settings_digest(
            {
                "method": [METHODS[step] for step in ("confirm", "check", "timing", "compare")],
                "search": self.search(name),
                "check": self._plan.check.model_dump(mode="json"),
                "card": self._plan.target_card,
            }
        )

    @cached_property
    def plan(self) -> str:
        """The digest of the whole plan."""
        return settings_digest(self._plan.model_dump(mode="json"))

    def _what(self, key: str) -> tuple[str, Any]:
        """The operation of a build key, and what determines its behaviour."""
        build = self._plan.builds.get(key)
        if build is not None:
            return build.operation, self._of(build, self.build(key))
        kernel = key.partition("/")[0]
        for name, operation in self._plan.operations.items():
            if kernel in operation.kernels:
                return name, {"library": operation.kernels[kernel].library}
        raise UserError(f"{key}: no build and no library function of the plan; see results/plan.csv")

    def _of(self, build: Build, digest: str) -> Any:
        return {"build": digest, "prepare": self._prepare(build)}

    def _prepare(self, build: Build) -> str:
        kernel: Kernel = self._plan.operations[build.operation].kernels[build.kernel]
        if kernel.prepare is None:
            return ""
        return python_digest((self._folder(build.operation) / build.source).with_suffix(".py"))

    def _source(self, path: Path) -> str:
        if path not in self._sources:
            self._sources[path] = source_digest(path)
        return self._sources[path]

    def _launches(self, operation: str, kernel: str) -> Any:
        if (operation, kernel) not in self._declared:
            declared: Kernel = self._plan.operations[operation].kernels[kernel]
            self._declared[operation, kernel] = [
                launch.model_dump(mode="json") for launch in declared.launches
            ] + [
                {name: workspace.model_dump(mode="json") for name, workspace in declared.workspaces.items()},
                declared.derived,
            ]
        return self._declared[operation, kernel]

    def _operation(self, name: str) -> Any:
        if name not in self._operations:
            operation = self._plan.operations[name].operation
            self._operations[name] = {
                "declared": operation.model_dump(mode="json", exclude={"title", "checks"}),
                "python": python_digest(self._folder(name) / "operation.py"),
            }
        return self._operations[name]

    def _folder(self, operation: str) -> Path:
        return self._root / self._plan.operations[operation].folder


def _installed(toolchain: str) -> str:
    """The fingerprint of a toolchain of this machine, or `absent`."""
    try:
        return find_toolchain(toolchain).fingerprint
    except UserError:
        return ABSENT


def python_digest(path: Path) -> str:
    """The digest of a Python file by its syntax tree, so that comments and layout do not count.

    Raises:
        UserError: missing, or not Python.
    """
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path.as_posix()}: no such file; the catalogue needs it") from None
    except (SyntaxError, ValueError) as error:
        raise UserError(f"{path.as_posix()}: not valid Python: {error}") from None
    return hashlib.sha256(repr(_plain(tree)).encode()).hexdigest()


def _plain(node: Any) -> Any:
    """A syntax tree without what is absent: other versions of Python have other fields for that, and ast.dump shows them."""
    if isinstance(node, list):
        return [_plain(part) for part in node]
    if not isinstance(node, ast.AST):
        return node
    fields = ((name, _plain(value)) for name, value in ast.iter_fields(node))
    return (type(node).__name__, [(name, value) for name, value in fields if value not in (None, [])])
