"""Every figure of a report, by name: which rows of the results it is drawn from."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kernelab.plan.arms import PlannedExperiment
from kernelab.records.compare import ComparedPair, CompareRecord
from kernelab.report.answers import WORDS, change, effect
from kernelab.report.charts import judged, raw
from kernelab.report.charts.theme import Figure
from kernelab.report.ladder_figures import OF_LADDER
from kernelab.report.reader import Results
from kernelab.statistics.estimate import estimate
from kernelab.statistics.policy import VerdictPolicy
from kernelab.timing.rounds import pair_rounds
from kernelab.timing.samples import Sample

MOST_COMPARISONS = 40
MOST_ARMS = 12
MOST_SAMPLES, LEAST_SAMPLES, ALL_SAMPLES = 1500, 120, 30_000
"""Raw samples of one figure and of all together: beyond, a figure shows one round in several. The CSV has them all."""
MARGIN = VerdictPolicy().margin


@dataclass(frozen=True)
class Drawing:
    """A figure that can be drawn: its name, and how."""

    name: str
    draw: Callable[[], Figure | None]


def drawings(results: Results, root: Path) -> Iterator[Drawing]:
    """Every figure that the plan has a place for; drawing one gives None where nothing is there to be drawn."""
    for experiment in results.experiments():
        name = experiment.name
        if experiment.design == "ladder":
            for kind, ladder in OF_LADDER.items():
                yield Drawing(f"{name}-{kind}", partial(ladder, results, experiment, root))
        for kind, draw in OF_EXPERIMENT.items():
            if kind != "waterfall" or experiment.design == "steps":
                yield Drawing(f"{name}-{kind}", partial(draw, results, experiment))


def forest(results: Results, experiment: PlannedExperiment) -> Figure | None:
    """The ratios of an experiment, with its A/A controls."""
    record = results.compared(experiment.name)
    timed = [pair for pair in record.comparisons if pair.ratio is not None] if record else []
    if record is None or not timed:
        return None
    shown = sorted(timed, key=lambda pair: -abs(pair.ratio.log_mean if pair.ratio else 0.0))[
        :MOST_COMPARISONS
    ]
    rows = [
        {
            "label": _label(results, record, pair),
            "ratio": pair.ratio.value,
            "low": pair.ratio.low,
            "high": pair.ratio.high,
            "verdict": WORDS.get(pair.verdict, pair.verdict),
        }
        for pair in timed
        if pair.ratio is not None and pair in shown
    ]
    rows += _controls(results, experiment)
    told = "; ".join(f"{row['label']} {row['verdict']}" for row in rows[:6])
    words = f"Forest plot of {len(rows)} ratios of times with 95% intervals: {told}{' and more' if len(rows) > 6 else ''}."
    title = (
        "Time of each arm against its base"
        if len(timed) == len(shown)
        else f"The {len(shown)} largest of {len(timed)} effects"
    )
    return Figure(f"{experiment.name}-forest", title, words, "comparisons.csv", judged.forest(rows, MARGIN))


def _label(results: Results, record: CompareRecord, pair: ComparedPair) -> str:
    bases = list(dict.fromkeys(other.base for other in record.comparisons))
    if record.design in ("ladder", "steps") or len(bases) == 1:
        return change(pair)
    return f"{change(pair)} on {_short(results, bases)[pair.base]}"


def _short(results: Results, arms: list[str]) -> dict[str, str]:
    """What tells some arms apart, where one word does: the kernel or the problem; else their names."""
    for part in ("kernel", "problem"):
        words = {name: str(getattr(results.arm(name), part)) for name in arms}
        if len(set(words.values())) == len(arms):
            return words
    return {name: name for name in arms}


def _controls(results: Results, experiment: PlannedExperiment) -> list[dict[str, object]]:
    """The A/A controls: what the clock says of two copies of the same code."""
    record = results.timed(experiment.name)
    if record is None:
        return []
    taken = results.samples(experiment.name)
    policy = VerdictPolicy.of_timing(results.plan.timing)
    rows: list[dict[str, object]] = []
    for session in record.sessions:
        for base, again in record.controls(session.id):
            rounds = pair_rounds(taken, session.id, (base, again))
            if len(rounds.time) < 2:
                continue
            found = estimate(rounds.time, policy)
            rows.append(
                {
                    "label": f"A/A on {base}",
                    "ratio": found.ratio,
                    "low": found.low,
                    "high": found.high,
                    "verdict": "A/A",
                }
            )
    return rows[:4]


def waterfall(results: Results, experiment: PlannedExperiment) -> Figure | None:
    """What each step takes off the time."""
    record = results.compared(experiment.name)
    timed = results.timed(experiment.name)
    if record is None or timed is None:
        return None
    single = [pair for pair in record.comparisons if pair.kind != "steps"]
    first = single[0].base if single else ""
    single = [
        pair
        for pair in single
        if record.arms and results.arm(pair.base).problem == results.arm(first).problem
    ]
    times = {name: arm.time_ms for name, arm in timed.arms.items()}
    # One chain only: further bases or problems have their own rows in the tables.
    chain: list[ComparedPair] = []
    for pair in single:
        if not chain or pair.base == chain[-1].arm:
            chain.append(pair)
    if not chain or any(times.get(name) is None for pair in chain for name in (pair.base, pair.arm)):
        return None
    start, end = times[chain[0].base] or 0.0, times[chain[-1].arm] or 0.0
    rows = [{"label": "start", "before": 0.0, "after": start, "kind": "start", "text": f"{start:.3f} ms"}]
    for pair in chain:
        before, after = times[pair.base] or 0.0, times[pair.arm] or 0.0
        rows.append(
            {
                "label": change(pair),
                "before": before,
                "after": after,
                "kind": "gain" if after <= before else "loss",
                "text": effect(pair.ratio) or f"{after - before:+.3f} ms",
            }
        )
    rows.append({"label": "end", "before": 0.0, "after": end, "kind": "end", "text": f"{end:.3f} ms"})
    words = f"Waterfall of {len(chain)} steps from {start:.3f} to {end:.3f} ms."
    return Figure(
        f"{experiment.name}-waterfall",
        "What each step changes",
        words,
        "comparisons.csv",
        judged.waterfall(rows),
    )


def interaction(results: Results, experiment: PlannedExperiment) -> Figure | None:
    """The same levels on several bases, at several problems, or in a factorial: do the lines run in parallel?"""
    record = results.compared(experiment.name)
    if record is None or experiment.design not in ("vary", "factorial"):
        return None
    variable = record.comparisons[-1].variable if record.comparisons else ""
    pairs = [pair for pair in record.comparisons if pair.variable == variable and pair.ratio is not None]
    bases = list(dict.fromkeys(pair.base for pair in pairs))
    if len(bases) < 2 or len(bases) > MOST_ARMS:
        return None
    rows = []
    names = _short(results, bases)
    for base in bases:
        mine = [pair for pair in pairs if pair.base == base]
        rows.append({"level": mine[0].base_level, "ratio": 1.0, "low": 1.0, "high": 1.0, "line": names[base]})
        rows += [
            {
                "level": p.level,
                "ratio": p.ratio.value,
                "low": p.ratio.low,
                "high": p.ratio.high,
                "line": names[base],
            }
            for p in mine
            if p.ratio
        ]
    levels = list(dict.fromkeys(str(row["level"]) for row in rows))
    words = f"Lines of {variable} over {len(levels)} levels on {len(bases)} bases; lines that are not parallel interact."
    return Figure(
        f"{experiment.name}-interaction",
        f"{variable} on each base",
        words,
        "comparisons.csv",
        judged.interaction(rows, levels),
    )


def samples(results: Results, experiment: PlannedExperiment) -> Figure | None:
    """Every raw sample, the clock and the power."""
    taken = results.samples(experiment.name)
    if not taken:
        return None
    arms = list(dict.fromkeys(sample.arm for sample in taken))
    shown = _most_telling(results, experiment, arms)
    of_arms = [sample for sample in taken if sample.arm in shown]
    rounds = 1 + max(sample.round for sample in of_arms)
    room = max(LEAST_SAMPLES, min(MOST_SAMPLES, ALL_SAMPLES // len(results.plan.experiments)))
    every = -(-len(of_arms) // room)
    chosen = [sample for sample in of_arms if sample.round % every == 0]
    processes = {
        key: order for order, key in enumerate(dict.fromkeys((s.session, s.process) for s in chosen))
    }
    arms_table = [
        {"a": number, "arm": arm, "middle": statistics.median(s.time_ms for s in of_arms if s.arm == arm)}
        for number, arm in enumerate(shown)
    ]
    numbers = {arm: number for number, arm in enumerate(shown)}
    lines = ["at,a,time,clock,power"]
    lines += [_line(s, processes[(s.session, s.process)] * rounds, numbers[s.arm]) for s in chosen]
    words = (
        f"{len(chosen)} raw samples of {len(shown)} arms over {len(processes)} processes: "
        "time against each arm's median, SM clock and power."
    )
    title = "Samples in the order in which they were taken"
    if every > 1:
        title += f", one round in {every}"
    if len(shown) < len(arms):
        title += f", {len(shown)} of {len(arms)} arms"
    source = results.layout.samples(experiment.name).relative_to(results.folder).as_posix()
    starts = [order * rounds for order in processes.values()]
    has = any(s.sm_clock_mhz for s in chosen), any(s.power_w for s in chosen)
    return Figure(
        f"{experiment.name}-samples",
        title,
        words,
        source,
        raw.samples("\n".join(lines), arms_table, starts, rounds, *has),
    )


def _most_telling(results: Results, experiment: PlannedExperiment, arms: list[str]) -> list[str]:
    """All arms where they are few; else the bases, the A/A controls and the arms of the largest effects."""
    if len(arms) <= MOST_ARMS:
        return arms
    record = results.compared(experiment.name)
    pairs = [pair for pair in record.comparisons if pair.ratio is not None] if record else []
    ranked = [
        pair.arm for pair in sorted(pairs, key=lambda pair: -abs(pair.ratio.log_mean if pair.ratio else 0.0))
    ]
    bases = [pair.base for pair in pairs]
    controls = [arm for arm in arms if arm.endswith("#aa")]
    if experiment.design == "ladder":
        ranked, bases = list(reversed(arms)), []
    wanted = list(dict.fromkeys([*bases[:2], *controls[:2], *ranked, *arms]))[:MOST_ARMS]
    return [arm for arm in arms if arm in wanted]


def _line(sample: Sample, start: int, arm: int) -> str:
    at = start + sample.round + (0.5 if sample.half == "mirror" else 0.0)
    clock = "" if sample.sm_clock_mhz is None else f"{sample.sm_clock_mhz:.0f}"
    power = "" if sample.power_w is None else f"{sample.power_w:.0f}"
    return f"{at:g},{arm},{sample.time_ms:.5g},{clock},{power}"


OF_EXPERIMENT: dict[str, Callable[[Results, PlannedExperiment], Figure | None]] = {
    "forest": forest,
    "waterfall": waterfall,
    "interaction": interaction,
    "samples": samples,
}
