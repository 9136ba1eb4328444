"""What the Snakefile asks: the plan, where files live, which digests they carry, which files a step needs.

Runs at every DAG parse, so it stays pure but for finding the device and stamping the toolchains.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

from kernelab.check.wanted import wanted_checks
from kernelab.device.identify import EMULATED, identify
from kernelab.digests import Digests
from kernelab.errors import UserError
from kernelab.plan.arms import Arm, Plan
from kernelab.plan.load import CONFIG_FILES, OVERRIDES, load_plan
from kernelab.plan.strict_yaml import scalar
from kernelab.records.layout import RESULTS, SMALL, Layout
from kernelab.records.record import settings_digest


class Pipeline:
    """One project as the Snakefile sees it."""

    def __init__(
        self,
        workflow: Any,
        plan: Plan,
        layout: Layout,
        digests: Digests,
        overrides: dict[str, Any],
        config_files: list[Path],
    ) -> None:
        self.plan = plan
        self.layout = layout
        self.digests = digests
        self._workflow = workflow
        self._overrides = overrides
        self._config_files = config_files

    @classmethod
    def load(cls, workflow: Any, config: dict[str, Any]) -> Pipeline:
        """The pipeline of the working directory, with Snakemake's --config and --configfile laid over config.yaml.

        A fault in the user's files ends Snakemake with one line: its own WorkflowError would add the Snakefile's lines.
        """
        files = [Path(name) for name in workflow.config_settings.configfiles]
        # `config` holds what the command line gave; with --configfile it holds those files too, read by YAML 1.1.
        given = dict(workflow.config_settings.config)
        overrides = _typed(given if files else config)
        alone = bool(files) or config == given
        source = "--config" if alone else "the Snakefile's config"
        try:
            plan = load_plan(Path(), identify, overrides, files, source, None if alone else _typed(given))
            layout = Layout(RESULTS, plan.device.id)
            digests = Digests(plan, Path())
            for key in plan.builds:
                digests.build(key)  # a missing header or unreadable source is said now, in one line
            return cls(workflow, plan, layout, digests, overrides, files)
        except UserError as error:
            sys.exit("\n".join(f"kernelab: {line}" for line in str(error).splitlines()))

    @property
    def prefix(self) -> str:
        """What the shell of a rule begins with: `python` there is this very interpreter, with this very package and overrides.

        It is no part of any rule, so that a moved project or another Python reruns nothing; what an override
        changes is in the digests.
        """
        package = Path(__file__).parent.parent
        variables = {
            "PYTHONPATH": os.pathsep.join(p for p in (str(package), os.environ.get("PYTHONPATH", "")) if p),
            OVERRIDES: json.dumps(self._overrides, sort_keys=True),
            CONFIG_FILES: os.pathsep.join(path.as_posix() for path in self._config_files),
        }
        exports = " ".join(
            f"{name}={shlex.quote(value)}" for name, value in variables.items() if value not in ("", "{}")
        )
        prefix = f'export {exports}; python() {{ {shlex.quote(sys.executable)} "$@"; }}; '
        return prefix.replace("{", "{{").replace("}", "}}")  # Snakemake formats it

    def constraints(self) -> dict[str, str]:
        """Every wildcard takes known ids only."""
        arms = [*self.plan.arms.values(), *(search.base for search in self.plan.searches.values())]
        keys = [arm.record_key for arm in arms]
        return {
            "kernel": _either(key.partition("/")[0] for key in keys),
            "variant": _either(key.partition("/")[2] for key in keys),
            "experiment": _either(self.plan.experiments),
            "problem": _either([SMALL, *(arm.problem for arm in arms)]),
            "device": _either([self.plan.device.id, EMULATED.id]),
            "search": _either(self.plan.searches),
        }

    def sources(self, key: str) -> list[str]:
        """The files that a build is compiled from."""
        self.remake(self.layout.build_record(key), self.digests.build(key))
        return [path.as_posix() for path in self.digests.source_files(self.plan.builds[key])]

    @property
    def on_gpu(self) -> bool:
        return self.plan.device.kind == "gpu"

    @cached_property
    def runnable(self) -> tuple[Arm, ...]:
        """The arms of this plan that run on its device."""
        return tuple(arm for arm in self.plan.arms.values() if arm.runs)

    def log(self, name: str) -> str:
        """The log file of a job on this device."""
        return (self.layout.results / "logs" / self.plan.device.id / f"{name}.log").as_posix()

    def builds(self, arms: Iterable[Arm] | None = None) -> list[str]:
        """The build records of some arms (of all that can be built)."""
        chosen = self.plan.arms.values() if arms is None else arms
        keys = dict.fromkeys(arm.build for arm in chosen if arm.build and not arm.excluded)
        return [self.layout.build_record(key).as_posix() for key in keys]

    def check_inputs(self, key: str, problem: str, device: str) -> list[str]:
        """The build record that a check starts from; none for a library function."""
        self.remake(self.layout.check(key, problem, device), self.digests.check(key, problem, device))
        return [self.layout.build_record(key).as_posix()] if key in self.plan.builds else []

    def timing_inputs(self, experiment: str) -> list[str]:
        """The builds and checks of an experiment's arms."""
        self.remake(self.layout.timing(experiment), self.digests.timing(experiment))
        arms = self.plan.experiment_arms(experiment)
        return self.builds(arms) + self.checks(arms)

    def profile_inputs(self, key: str, problem: str) -> list[str]:
        """The build and checks of a profiled arm."""
        arm = self.profiled_arm(key, problem)
        self.remake(self.layout.profile(key, problem), self.digests.profile(arm))
        return self.builds([arm]) + self.checks([arm])

    def checks(self, arms: Iterable[Arm] | None = None) -> list[str]:
        """The check records of some arms (of all), on the device and, for the emu_* counters, by emulation."""
        wanted = wanted_checks(self.plan, self.runnable if arms is None else arms)
        return [self.layout.check(key, problem, device).as_posix() for key, problem, device in wanted]

    def timings(self, experiments: Iterable[str] | None = None) -> list[str]:
        """The timing records of some experiments (of all), where there is a card to time on."""
        if not self.on_gpu:
            return []
        names = self.plan.experiments if experiments is None else experiments
        return [self.layout.timing(name).as_posix() for name in names if self.plan.timed_comparisons(name)]

    def profiles(self, arms: Iterable[Arm] | None = None) -> list[str]:
        """The profile records of those among some arms (all) that are to be profiled, where there is a card."""
        if not self.on_gpu:
            return []
        chosen = self.runnable if arms is None else arms
        # Two arms that differ only in how they are timed share a profile.
        paths = (self.layout.profile(a.record_key, a.problem) for a in chosen if a.name in self.plan.profiled)
        return list(dict.fromkeys(path.as_posix() for path in paths))

    def compared(self, experiment: str) -> list[str]:
        """The records that an experiment's verdicts are made from: builds, checks, timing and profiles of its arms."""
        self.remake(self.layout.compare(experiment), self.digests.compare(experiment))
        arms = [self.plan.arms[name] for name in self.plan.experiments[experiment].arms]
        running = [arm for arm in arms if arm.runs]
        return [
            *self.builds(arms),
            *self.checks(running),
            *self.timings([experiment]),
            *self.profiles(running),
        ]

    def compares(self, table: Path) -> list[str]:
        """The verdicts of every experiment, which a table of them is made from."""
        self.remake(table)
        return [self.layout.compare(name).as_posix() for name in self.plan.experiments]

    def search_inputs(self, name: str) -> list[str]:
        """The build and checks of a search's base."""
        digest = self.digests.search(name)
        for path in (self.layout.search(name), self.layout.search_samples(name)):
            self.remake(path)
        self.remake(self.layout.search_record(name), digest)
        base = self.plan.searches[name].base
        return self.builds([base]) + self.checks([base] if base.runs else [])

    def confirm_inputs(self, name: str) -> list[str]:
        """The configurations of a search, ranked."""
        self.remake(self.layout.confirmed(name), self.digests.confirm(name))
        return [self.layout.search(name).as_posix(), self.layout.search_record(name).as_posix()]

    def searched(self) -> list[str]:
        """What the table of searches is made from: the confirmed winners, or what compiled where there is no card."""
        self.remake(self.layout.searches)
        record = self.layout.confirmed if self.on_gpu else self.layout.search_record
        return [record(name).as_posix() for name in self.plan.searches]

    @property
    def searches_digest(self) -> str:
        """The digest of the table of searches."""
        return settings_digest(
            {
                name: [self.digests.confirm(name), search.question]
                for name, search in self.plan.searches.items()
            }
        )

    def profiled_arm(self, key: str, problem: str) -> Arm:
        """The arm that a profile record is about."""
        return next(arm for arm in self.runnable if arm.record_key == key and arm.problem == problem)

    def remake(self, path: Path | str, digest: str = "") -> list[str]:
        """Have the job run that makes a record, where the record is deleted or of other settings than Snakemake knows of.

        For the input functions of rules: they are evaluated before Snakemake decides what needs to run, and it
        would rather live without a deleted record as long as the table is there. Returns no input.
        """
        from snakemake.io import IOFile

        # Where .snakemake is lost, or the record came otherwise, there are no params to compare; the digest is in the record.
        unknown = bool(digest) and not self._workflow.persistence.metadata(IOFile(str(path)))
        recorded = _recorded_digest(Path(path), read=unknown)
        if recorded is None or (unknown and recorded != digest):
            self._workflow.dag.forcefiles.add(str(path))
        return []


def _recorded_digest(path: Path, *, read: bool) -> str | None:
    """The digest that a record carries: None where there is no record, empty where it is damaged or not to be read."""
    if not read:
        return "" if path.is_file() else None
    try:
        return str(json.loads(path.read_text(encoding="utf-8")).get("digest", ""))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, AttributeError):
        return ""


def _typed(value: Any) -> Any:
    """Snakemake leaves what is nested in --config as text; a plain scalar there means what it means in config.yaml."""
    if isinstance(value, dict):
        return {str(key): _typed(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_typed(inner) for inner in value]
    return scalar(value) if isinstance(value, str) else value


def _either(names: Iterable[str]) -> str:
    return "|".join(re.escape(name) for name in sorted(set(names), key=lambda name: (-len(name), name)))
