"""The parts of the page that are about one ladder or one experiment."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from kernelab.compare.static import arm_launches
from kernelab.operation.launches import LaunchRefused
from kernelab.plan.arms import PlannedExperiment
from kernelab.records.check import MemorySite
from kernelab.records.compare import Change, ComparedPair, CompareRecord
from kernelab.records.timing import TimingRecord
from kernelab.report.answers import answer, change, effect, interval, percent
from kernelab.report.charts.theme import Figure
from kernelab.report.code import Run, SideBySide, runs_of, sass_side_by_side, source_side_by_side
from kernelab.report.grids import Grid, GridRow, Heading, effects_grid, rungs_grid, written
from kernelab.report.ladder_figures import OF_LADDER
from kernelab.report.reader import Results
from kernelab.report.rungs import read_rungs

MOST_DETAILED = 200
"""Comparisons with their details on the page; the rest are rows of a table."""
DIFF_ROWS = 6000
"""Rows of all side-by-side views together: each comparison has its share."""
MOST_DIFF_ROWS = 120
LEAST_DIFF_ROWS = 12
AXIS, LEGEND = 40, 50
"""Room kept for a chart's axis and legend, in pixels, so that nothing moves when it is drawn."""
LEGENDS = re.compile(r'"legend":\{')


@dataclass(frozen=True)
class Plot:
    """A figure with what its place on the page needs."""

    name: str
    title: str
    alt: str
    source: str
    height: int
    spec_json: Markup


@dataclass(frozen=True)
class Ladder:
    """A ladder's part of the page."""

    name: str
    title: str
    question: str
    sources: list[str]
    figures: list[Plot]
    columns: list[Heading]
    rows: list[GridRow]


@dataclass(frozen=True)
class PairView:
    """The details of one comparison."""

    id: str
    verdict: str
    change: str
    effect: str
    interval: str
    on: str
    reason: str
    notes: list[str]
    confounds: list[str]
    figures: list[tuple[str, str]]
    facts: list[Change]
    outcomes: list[Change]
    source: SideBySide | None
    hot: SideBySide | None
    cold: SideBySide | None
    sites: list[tuple[str, list[MemorySite]]]
    base: str
    arm: str
    certificate: str


@dataclass(frozen=True)
class ExperimentView:
    """An experiment's part of the page."""

    name: str
    question: str
    sentence: str
    design: str
    figures: list[Plot]
    same_question: list[str]
    effects: Grid | None
    pairs: list[PairView]
    left_out: int
    raw: Plot | None
    conditions: list[tuple[str, str]]


def plot(figure: Figure) -> Plot:
    """A figure for the page. The look that all share is on the page once."""
    text = json.dumps(
        {key: value for key, value in figure.spec.items() if key != "config"},
        separators=(",", ":"),
        ensure_ascii=False,
    )
    heights = [int(view.get("height", 100)) for view in figure.spec.get("vconcat", [figure.spec])]
    return Plot(
        figure.name,
        figure.title,
        figure.alt,
        figure.source,
        sum(heights) + AXIS + (LEGEND if LEGENDS.search(text) else 0),
        in_script(text),
    )


def in_script(text: str) -> Markup:
    """JSON for a script element, which it cannot end."""
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))


def ladder_view(
    results: Results, experiment: PlannedExperiment, figures: Mapping[str, Plot], root: Path
) -> Ladder | None:
    """The part of a ladder; None where its rows are not in the table."""
    rungs, published = read_rungs(results, experiment, root)
    if not rungs:
        return None
    own = [name for kind in OF_LADDER if (name := f"{experiment.name}-{kind}") in figures]
    rows = rungs_grid(rungs, [source.source for source in published])
    operation = results.arm(experiment.arms[0]).operation
    return Ladder(
        name=experiment.name,
        title=f"The ladder of {operation}",
        question=experiment.question,
        sources=[f"{source.source} ({source.card})" for source in published],
        figures=[figures[name] for name in own],
        columns=rows.columns,
        rows=rows.rows,
    )


class ExperimentViews:
    """Makes the parts of all experiments; listings are read once, and long diffs share the page's room."""

    def __init__(self, results: Results, figures: Mapping[str, Plot]) -> None:
        self._results = results
        self._figures = figures
        records = [record for e in results.experiments() if (record := results.compared(e.name))]
        pairs = [(record, pair) for record in records for pair in record.comparisons]
        pairs.sort(key=lambda item: -abs(item[1].ratio.log_mean) if item[1].ratio else 0.0)
        self._detailed = {(record.experiment, pair.base, pair.arm) for record, pair in pairs[:MOST_DETAILED]}
        differing = sum(1 for _, pair in pairs[:MOST_DETAILED] if pair.base_sass != pair.arm_sass)
        share = DIFF_ROWS // max(1, differing)
        self._diff_rows = min(MOST_DIFF_ROWS, share) if share >= LEAST_DIFF_ROWS else 0
        self._runs: dict[str, list[Run]] = {}

    def view(self, experiment: PlannedExperiment) -> ExperimentView:
        """The part of one experiment."""
        name = experiment.name
        record = self._results.compared(name)
        timing = self._results.timed(name)
        pairs = record.comparisons if record else []
        chosen = [pair for pair in pairs if (name, pair.base, pair.arm) in self._detailed]
        figures = [
            self._figures[key]
            for key in (f"{name}-waterfall", f"{name}-interaction", f"{name}-forest")
            if key in self._figures
        ]
        return ExperimentView(
            name=name,
            question=experiment.question,
            sentence=answer(record).sentence if record else "Not compared yet.",
            design=_design(self._results, experiment),
            figures=figures,
            same_question=[
                _asked(asked) for asked in record.same_question if asked.answer in ("flip", "fade")
            ]
            if record
            else [],
            effects=effects_grid(record) if record else None,
            pairs=[self._pair(record, pair, number) for number, pair in enumerate(chosen)] if record else [],
            left_out=len(pairs) - len(chosen),
            raw=self._figures.get(f"{name}-samples"),
            conditions=_conditions(timing) if timing else [],
        )

    def _pair(self, record: CompareRecord, pair: ComparedPair, number: int) -> PairView:
        bases = {other.base for other in record.comparisons}
        hot, cold = self._machine_code(pair)
        return PairView(
            id=f"pair-{record.experiment}-{number}",
            verdict=pair.verdict,
            change=change(pair) + (" (composite)" if pair.composite and pair.kind != "steps" else ""),
            effect=effect(pair.ratio),
            interval=interval(pair.ratio),
            on=pair.base if len(bases) > 1 and record.design not in ("ladder", "steps") else "",
            reason=pair.reason,
            notes=pair.notes,
            confounds=[phrase for phrase in pair.confounds if phrase not in pair.reason],
            figures=_pair_figures(pair),
            facts=pair.control_facts_changed,
            outcomes=[_shown(outcome) for outcome in pair.outcomes_changed],
            source=source_side_by_side(pair.source_diff) if pair.source_diff.count("\n") else None,
            hot=hot,
            cold=cold,
            sites=self._sites(record, pair),
            base=pair.base,
            arm=pair.arm,
            certificate=pair.certificate,
        )

    def _sites(self, record: CompareRecord, pair: ComparedPair) -> list[tuple[str, list[MemorySite]]]:
        """Emulated wavefronts by source line of both arms; none where they are the same."""
        found = []
        for name in (pair.base, pair.arm):
            sites = self._results.sites(name, str(record.arms.get(name, {}).get("emu_problem")))
            if sites is None:
                return []
            found.append((name, list(sites)))
        return found if found[0][1] != found[1][1] else []

    def _machine_code(self, pair: ComparedPair) -> tuple[SideBySide | None, SideBySide | None]:
        if not self._diff_rows or not pair.base_sass or not pair.arm_sass or pair.base_sass == pair.arm_sass:
            return None, None
        base, arm = (self._listing(name) for name in (pair.base, pair.arm))
        if not base or not arm:
            return None, None
        hot = sass_side_by_side([r for r in base if r.hot], [r for r in arm if r.hot], self._diff_rows)
        cold = sass_side_by_side(
            [r for r in base if not r.hot], [r for r in arm if not r.hot], self._diff_rows // 3
        )
        return hot, cold

    def _listing(self, name: str) -> list[Run]:
        """The runs of an arm's main launch; empty where its listing is not kept."""
        if name not in self._runs:
            arm = self._results.arm(name)
            sass, build = self._results.sass(arm.build), self._results.build(arm.build)
            try:
                launches = arm_launches(self._results.plan, arm) if arm.build else ()
            except LaunchRefused:
                launches = ()
            found = runs_of(sass, launches[-1].entry, build.arch) if sass and build and launches else []
            self._runs[name] = found
        return self._runs[name]


def _pair_figures(pair: ComparedPair) -> list[tuple[str, str]]:
    figures = [
        (name, f"{ratio.value:.5f} ({ratio.low:.5f} to {ratio.high:.5f})")
        for name, ratio in (
            ("time ratio", pair.ratio),
            ("cycles ratio", pair.cycles),
            ("clock ratio", pair.clock),
        )
        if ratio
    ]
    if pair.aa_half_width is not None:
        figures.append(("A/A half-width", percent(pair.aa_half_width, signed=False)))
    if pair.p_value is not None:
        figures.append(
            (
                "p of no difference",
                f"{pair.p_value:.2g}" + (f", of {pair.levels} levels" if pair.levels > 1 else ""),
            )
        )
    if pair.ratio:
        figures.append(("processes and rounds", f"{pair.processes} and {pair.rounds}"))
    return figures


def _shown(outcome: Change) -> Change:
    return Change(
        name=outcome.name.replace("sass_", "hot loop "), base=_short(outcome.base), arm=_short(outcome.arm)
    )


def _short(text: str) -> str:
    try:
        return written(float(text))
    except ValueError:
        return text


def _asked(asked: Any) -> str:
    return f"{asked.change}: from {asked.first} to {asked.second} the answer {asked.answer}s: {asked.reason}"


def _design(results: Results, experiment: PlannedExperiment) -> str:
    """What is varied, in a line."""
    problems = list(dict.fromkeys(results.arm(name).problem for name in experiment.arms))
    compared = experiment.comparisons
    if experiment.design == "ladder":
        what = f"{len(experiment.arms)} kernels, each against the one before it"
    elif experiment.design == "steps":
        what = f"{sum(c.kind != 'steps' for c in compared)} steps, each on top of the last"
    else:
        levels: dict[str, list[str]] = {}
        for c in compared:
            for level in (c.base_level, c.level):
                if level not in levels.setdefault(c.variable, []):
                    levels[c.variable].append(level)
        what = "; ".join(f"{variable}: {_list(names)}" for variable, names in levels.items())
        bases = list(dict.fromkeys(results.arm(c.base).kernel for c in compared))
        what += f", on {_list(bases)}" if "kernel" not in levels else ""
    return f"{experiment.design}: {what}, at {_list(problems)}."


def _list(names: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(name or "none" for name in names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def _conditions(timing: TimingRecord) -> list[tuple[str, str]]:
    """How the newest session was measured."""
    if not timing.sessions:
        return []
    session = timing.sessions[-1]
    where = session.conditions
    found = [
        ("sessions", str(len(timing.sessions))),
        (
            "processes",
            f"{len(session.processes)}{', extended' if session.extended else ''} ({session.reason})",
        ),
        ("rounds a process", str(session.rounds)),
        ("driver, runtime", f"{where.driver}, CUDA {where.cuda_runtime}"),
        ("cuBLAS, CuPy", f"{where.cublas}, {where.cupy}"),
        ("clocks", f"locked at {session.locked_clock_mhz} MHz" if session.locked_clock_mhz else "not locked"),
        (
            "warm-up",
            ", ".join(f"{p.warmup_s:.1f} s{'' if p.steady else ' (not steady)'}" for p in session.processes),
        ),
    ]
    return [*found, *sorted(session.environment_before.items()), *sorted(where.environment.items())]
