"""Everything that a report shows, read from a results folder or from a snapshot of one."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from kernelab.device.identify import EMULATED
from kernelab.errors import UserError
from kernelab.plan.arms import Arm, Plan, PlannedExperiment
from kernelab.records.build import BuildRecord
from kernelab.records.check import CheckRecord, MemorySite
from kernelab.records.compare import CompareRecord
from kernelab.records.layout import SMALL, Layout
from kernelab.records.profile import ProfileRecord
from kernelab.records.record import R, read_record
from kernelab.records.timing import TimingRecord
from kernelab.timing.samples import Sample, read_samples

Row = dict[str, str]


@dataclass(frozen=True)
class Results:
    """A results folder. Tables are lists of rows by column name, cells as text; empty cells are empty strings.

    Raises (from `read_results` and the methods): UserError for a file that is missing, damaged or of another version.
    """

    folder: Path
    plan: Plan
    table: list[Row]
    comparisons: list[Row]
    claims: list[Row]
    toolchain: dict[str, dict[str, str]]
    provenance: list[str]
    _kept: dict[Path, Any] = field(default_factory=dict)

    @property
    def layout(self) -> Layout:
        return Layout(self.folder, self.plan.device.id)

    @property
    def on_gpu(self) -> bool:
        return self.plan.device.kind == "gpu"

    def rows_of(self, experiment: str) -> list[Row]:
        """The rows of table.csv of one experiment, in order."""
        return self._rows_by_experiment.get(experiment, [])

    @cached_property
    def _rows_by_experiment(self) -> dict[str, list[Row]]:
        found: dict[str, list[Row]] = {}
        for row in self.table:
            found.setdefault(row["experiment"], []).append(row)
        return found

    def compared(self, experiment: str) -> CompareRecord | None:
        """The verdicts of an experiment; None where they were not made."""
        return self._record(self.layout.compare(experiment), CompareRecord)

    def timed(self, experiment: str) -> TimingRecord | None:
        """The timing record of an experiment; None where nothing was timed."""
        return self._record(self.layout.timing(experiment), TimingRecord)

    def samples(self, experiment: str) -> list[Sample]:
        """The raw samples of an experiment; empty where nothing was timed."""
        path = self.layout.samples(experiment)
        if path not in self._kept:
            self._kept[path] = read_samples(path) if path.is_file() else []
        found: list[Sample] = self._kept[path]
        return found

    def sites(self, name: str, problem: str) -> tuple[MemorySite, ...] | None:
        """The source lines of an arm with most emulated wavefronts, on a check problem; None where it was not emulated."""
        key = self.plan.arms[name].build
        record = self._record(self.layout.check(key, SMALL, EMULATED.id), CheckRecord) if key else None
        found = record.problems.get(problem) if record else None
        return found.sites if found else None

    def build(self, key: str) -> BuildRecord | None:
        """The build record of an arm; None for a library function, or where nothing was built."""
        return self._record(self.layout.build_record(key), BuildRecord) if key else None

    def profile(self, arm: Arm) -> ProfileRecord | None:
        """The profile record of an arm; None where no profile was tried."""
        return self._record(self.layout.profile(arm.record_key, arm.problem), ProfileRecord)

    def sass(self, key: str) -> str | None:
        """The listing of a build; None where it is not kept (a snapshot has none)."""
        path = self.layout.build(key) / "kernel.sass"
        return path.read_text(encoding="utf-8", errors="replace") if key and path.is_file() else None

    def experiments(self) -> Iterator[PlannedExperiment]:
        """The experiments, in the plan's order."""
        yield from self.plan.experiments.values()

    def arm(self, name: str) -> Arm:
        """An arm by name."""
        return self.plan.arms[name]

    def _record(self, path: Path, model: type[R]) -> R | None:
        """A record, read once; None where there is no such file."""
        if path not in self._kept:
            self._kept[path] = read_record(path, model) if path.is_file() else None
        found: R | None = self._kept[path]
        return found


def read_results(folder: Path) -> Results:
    """The results of one plan: the live folder `results`, or a snapshot of it."""
    plan = _plan(folder / "plan.json")
    return Results(
        folder=folder,
        plan=plan,
        table=_table(folder / "table.csv"),
        comparisons=_table(folder / "comparisons.csv"),
        claims=_table(folder / "claims.csv"),
        toolchain=_toolchain(folder / "toolchain.json"),
        provenance=_lines(folder / "provenance.txt"),
    )


def _plan(path: Path) -> Plan:
    try:
        return Plan.model_validate_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(
            f"{path}: not made yet; run snakemake results/table.csv, or name a snapshot with --results"
        ) from None
    except ValueError as error:
        raise UserError(
            f"{path}: not a plan of this kernelab ({str(error).splitlines()[0]}); make it again"
        ) from None


def _table(path: Path) -> list[Row]:
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            return list(csv.DictReader(stream))
    except FileNotFoundError:
        raise UserError(f"{path}: not made yet; run snakemake {path}") from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise UserError(f"{path}: damaged ({error}); delete it and run snakemake {path}") from None


def _toolchain(path: Path) -> dict[str, dict[str, str]]:
    if not path.is_file():
        return {}
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return {str(name): {str(k): str(v) for k, v in facts.items()} for name, facts in found.items()}
    except (ValueError, AttributeError) as error:
        raise UserError(f"{path}: damaged ({error}); delete it and run snakemake {path}") from None


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
