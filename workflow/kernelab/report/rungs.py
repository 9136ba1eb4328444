"""A ladder as rows: what was measured of each rung, what is known of its code, and what others published of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelab.plan.arms import PlannedExperiment
from kernelab.plan.expression import parse
from kernelab.report.published import PublishedFigures, read_published
from kernelab.report.reader import Results, Row
from kernelab.timing.peak import fp32_peak_tflops, memory_peak_gb_s


@dataclass(frozen=True)
class Rung:
    """One arm of a ladder. `row` is its row of table.csv, `published` the share of the library's speed by source."""

    kernel: str
    idea: str
    row: Row
    published: dict[str, float]

    def number(self, column: str) -> float | None:
        """A cell of table.csv as a number; None where it is empty."""
        return number(self.row, column)


@dataclass(frozen=True)
class Ceilings:
    """What the card can do: FP32 peak in TFLOP/s, bandwidth in GB/s, and where each figure is from."""

    tflops: float
    gb_s: float
    tflops_from: str
    gb_s_from: str


def number(row: Row, column: str) -> float | None:
    """A cell as a number; None where it is empty or there is no such column."""
    text = row.get(column, "")
    try:
        return float(text) if text else None
    except ValueError:
        return None


def read_rungs(
    results: Results, experiment: PlannedExperiment, root: Path
) -> tuple[list[Rung], tuple[PublishedFigures, ...]]:
    """The rungs of a ladder with its library arms first, and the sources of the published figures."""
    rows = results.rows_of(experiment.name)
    if not rows:
        return [], ()
    operation = results.plan.operations[results.arm(experiment.arms[0]).operation]
    published = read_published(root / operation.folder)
    ordered = sorted(
        rows, key=lambda row: row["variable"] != "reference"
    )  # stable: the library, then the rungs in order
    several = len({row["problem"] for row in rows}) > 1
    rungs = [
        Rung(
            kernel=row["kernel"] + (f" at {row['problem']}" if several else ""),
            idea=operation.kernels[row["kernel"]].idea if row["kernel"] in operation.kernels else "",
            row=row,
            published={
                source.source: source.pct_of_cublas[row["kernel"]]
                for source in published
                if row["kernel"] in source.pct_of_cublas
            },
        )
        for row in ordered
    ]
    return rungs, published


def ceilings(results: Results, rungs: Sequence[Rung]) -> Ceilings | None:
    """The ceilings of the card; None where nothing was timed.

    The bandwidth is the highest that an arm of the results reached while moving no fewer bytes than its operation must
    and doing at most one operation a byte (the triad kernels); where none did, the memory bus's peak.
    """
    card = next(
        (record.card for e in results.experiments() if (record := results.timed(e.name)) and record.card),
        None,
    )
    if card is None or card.fp32_lanes is None:
        return None
    clocks = [clock for rung in rungs if (clock := rung.number("sm_clock_mhz"))]
    clock = max(clocks, default=card.max_sm_clock_mhz or 0.0)
    if not clock:
        return None
    reached = [
        (rate, row["arm"]) for row in results.table if (rate := _streaming_rate(results, row)) is not None
    ]
    rate, source = max(reached, default=(memory_peak_gb_s(card), "the memory bus's peak"))
    if not rate:
        return None
    if reached:
        source = f"measured: {source}"
    return Ceilings(
        fp32_peak_tflops(card.multiprocessors, card.fp32_lanes, clock),
        rate,
        f"FP32 peak at {clock:.0f} MHz, the measured clock",
        source,
    )


def least_bytes(results: Results, row: Row) -> float:
    """The fewest bytes that the operation of a row must move at its problem."""
    arm = results.arm(row["arm"])
    return float(parse(results.plan.operation(arm).bytes)(results.plan.problems[arm.problem].values))


def flops(results: Results, row: Row) -> float:
    """The floating-point operations of a row's problem."""
    arm = results.arm(row["arm"])
    return float(parse(results.plan.operation(arm).flops)(results.plan.problems[arm.problem].values))


def _streaming_rate(results: Results, row: Row) -> float | None:
    """GB/s of a row whose operation streams; None for any other, or where it was not timed."""
    time = number(row, "time_ms")
    if time is None or row["arm"] not in results.plan.arms:
        return None
    moved = least_bytes(results, row)
    return moved / time * 1e-6 if flops(results, row) <= moved else None
