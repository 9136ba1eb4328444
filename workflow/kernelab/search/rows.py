"""From what is known of every configuration to the rows, the samples and the record of a search. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from kernelab.plan.arms import Configuration, PlannedSearch
from kernelab.records.search import (
    SearchCard,
    SearchCounts,
    SearchRecord,
    SearchRow,
    SearchSeconds,
    settings_text,
)
from kernelab.search.builds import BuiltConfiguration
from kernelab.search.contest import Entrant, samples_of
from kernelab.search.journal import Journal
from kernelab.search.racing import Placed, ranking
from kernelab.timing.samples import Sample

FAILED = ("compile_error", "launch_error", "wrong_result", "memory_fault", "timeout")


@dataclass
class Seconds:
    """Wall-clock seconds of the phases, which overlap."""

    build: float = 0.0
    check: float = 0.0
    race: float = 0.0
    total: float = 0.0


@dataclass
class Findings:
    """What is known so far.

    configurations   in the order of enumeration, excluded ones too
    digests          build digest by name; none of an excluded one
    built            by build digest
    entrants         by name: those that have code
    placed, slow     how each came out of the race; those that were not raced: a launch's time (ms) and ratio
    sass             hash of the machine code, of the finalists
    keys             of the heats of the stages
    done             how many are screened, or need not be
    """

    planned: PlannedSearch
    configurations: dict[str, Configuration] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    built: dict[str, BuiltConfiguration] = field(default_factory=dict)
    entrants: dict[str, Entrant] = field(default_factory=dict)
    placed: dict[str, Placed] = field(default_factory=dict)
    slow: dict[str, tuple[float, float]] = field(default_factory=dict)
    sass: dict[str, str] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)
    done: int = 0
    seconds: Seconds = field(default_factory=Seconds)

    def add(self, configuration: Configuration, digest: str) -> None:
        """A configuration that is to be tried; digest: of its build, empty where it is excluded."""
        self.configurations[configuration.name] = configuration
        if digest:
            self.digests[configuration.name] = digest


def make_rows(findings: Findings, journal: Journal | None) -> list[SearchRow]:
    """A row for every configuration, in the order of enumeration. journal: None where there is no card."""
    order = [*ranking(findings.placed), *sorted(findings.slow, key=lambda name: findings.slow[name][1])]
    ranks = {name: rank for rank, name in enumerate(order, start=1)}
    return [_row(findings, journal, name, ranks.get(name)) for name in findings.configurations]


def make_samples(findings: Findings, journal: Journal) -> list[Sample]:
    """The raw samples that the rows are made from: the screenings, and the stages of this race."""
    names = {digest: name for name, digest in findings.digests.items()}
    return [
        sample
        for heat in journal.heats
        if (heat.key in findings.keys if heat.stage else not names.keys().isdisjoint(heat.digests.values()))
        for sample in samples_of(heat, names)
    ]


def make_record(
    findings: Findings,
    rows: Iterable[SearchRow],
    digest: str,
    device: str,
    card: SearchCard | None,
    started: str,
) -> SearchRecord:
    """The record beside the rows."""
    rows = list(rows)
    statuses = [row.status for row in rows]
    seconds = findings.seconds
    return SearchRecord(
        digest=digest,
        name=findings.planned.name,
        device=device,
        base=findings.planned.base.name,
        problem=findings.planned.problem,
        counts=SearchCounts(
            points=len(rows),
            excluded=statuses.count("excluded"),
            built=len(findings.entrants),
            failed=sum(status in FAILED for status in statuses),
            raced=sum(row.rank is not None for row in rows),
            finalists=statuses.count("finalist"),
        ),
        seconds=SearchSeconds(
            build=round(seconds.build, 3),
            check=round(seconds.check, 3),
            race=round(seconds.race, 3),
            total=round(seconds.total, 3),
        ),
        card=card,
        started=started,
    )


def _row(findings: Findings, journal: Journal | None, name: str, rank: int | None) -> SearchRow:
    configuration = findings.configurations[name]
    settings = settings_text(configuration.levels)
    if configuration.excluded:
        return SearchRow(None, name, "excluded", configuration.excluded, settings=settings)
    digest = findings.digests[name]
    built = findings.built[digest]
    code = {
        "registers": built.registers,
        "spill_bytes": built.spill_bytes,
        "shared_bytes": built.shared_bytes,
        "sass_sha256": findings.sass.get(name, ""),
        "build_digest": digest,
        "settings": settings,
    }
    if (placed := findings.placed.get(name)) is not None:
        return SearchRow(
            rank,
            name,
            placed.fate,
            "the budget ended before its fate was decided" if placed.fate == "raced" else "",
            stage=placed.stage,
            rounds=len(placed.standing.rounds),
            time_ms=placed.standing.time_ms,
            ratio=math.exp(placed.bounds.centre),
            ratio_low=math.exp(placed.bounds.low),
            ratio_high=math.exp(placed.bounds.high),
            **code,  # type: ignore[arg-type]
        )
    if name in findings.slow:
        time_ms, ratio = findings.slow[name]
        note = "far slower than others by its first launches; no rounds were spent on it"
        return SearchRow(rank, name, "dropped", note, 0, 0, time_ms, ratio, **code)  # type: ignore[arg-type]
    status, note = _unraced(findings, journal, built)
    return SearchRow(None, name, status, note, **code)  # type: ignore[arg-type]


def _unraced(findings: Findings, journal: Journal | None, built: BuiltConfiguration) -> tuple[str, str]:
    if built.cubin is None:
        return built.status, built.note
    if journal is None:
        return "not_measured", "there is no GPU in the plan"
    verdict = journal.verdicts.get(built.digest)
    if verdict is not None and verdict.status != "ok":
        return verdict.status, verdict.note
    return "not_measured", f"the budget of {findings.planned.budget_s:g} s was spent before it was screened"
