"""The figures of a ladder: speed, roofline, stalls, occupancy, and what is known without a GPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kernelab.plan.arms import PlannedExperiment
from kernelab.report.charts import rungs as rung_charts
from kernelab.report.charts.theme import Figure
from kernelab.report.reader import Results
from kernelab.report.rungs import ceilings, flops, least_bytes, read_rungs


def speed(results: Results, experiment: PlannedExperiment, root: Path) -> Figure | None:
    """The ladder beside the published figures."""
    rungs, _ = read_rungs(results, experiment, root)
    against = "pct_of_cublas" if any(rung.number("pct_of_cublas") for rung in rungs) else "pct_of_peak"
    unit = "% of the library's speed" if against == "pct_of_cublas" else "% of FP32 peak"
    rows: list[dict[str, Any]] = []
    for rung in rungs:
        share = rung.number(against)
        if against == "pct_of_cublas" and rung.row["variable"] == "reference":
            share = 100.0 if rung.number("time_ms") else None
        if share is not None:
            rows.append({"kernel": rung.kernel, "share": share, "text": f"{rung.number('tflops') or 0:.3g}"})
    if not rows:
        return None
    published = [
        {"kernel": rung.kernel, "share": share, "source": source}
        for rung in rungs
        for source, share in rung.published.items()
        if against == "pct_of_cublas"
    ]
    best = max(rows, key=lambda row: row["share"])
    words = (
        f"Bar chart of {len(rows)} kernels, {unit}; the fastest is {best['kernel']}, at {best['share']:.1f}%."
    )
    return Figure(
        f"{experiment.name}-speed",
        "Speed of each rung, with TFLOP/s on the right",
        words,
        "table.csv",
        rung_charts.speed(rows, published, unit),
    )


def roofline(results: Results, experiment: PlannedExperiment, root: Path) -> Figure | None:
    """Speed under the ceilings of compute and bandwidth."""
    rungs, _ = read_rungs(results, experiment, root)
    points: list[dict[str, Any]] = []
    for rung in rungs:
        tflops = rung.number("tflops")
        if tflops is None:
            continue
        counted = (rung.number("ncu_dram_read_bytes") or 0.0) + (rung.number("ncu_dram_write_bytes") or 0.0)
        moved = counted or least_bytes(results, rung.row)
        points.append(
            {
                "kernel": rung.kernel,
                "tflops": tflops,
                "intensity": flops(results, rung.row) / moved,
                "bytes": "as ncu counted" if counted else "the fewest possible",
            }
        )
    roof = ceilings(results, rungs)
    if not points or roof is None:
        return None
    ridge = roof.tflops * 1e3 / roof.gb_s
    low = min(min(point["intensity"] for point in points) / 2, ridge / 4)
    high = max(max(point["intensity"] for point in points) * 2, ridge * 4)
    memory = f"{roof.gb_s:.0f} GB/s ({roof.gb_s_from})"
    compute = f"{roof.tflops:.1f} TFLOP/s ({roof.tflops_from})"
    lines = [
        {"intensity": low, "tflops": low * roof.gb_s * 1e-3, "ceiling": memory},
        {"intensity": ridge, "tflops": roof.tflops, "ceiling": memory},
        {"intensity": ridge, "tflops": roof.tflops, "ceiling": compute},
        {"intensity": high, "tflops": roof.tflops, "ceiling": compute},
    ]
    words = f"Roofline of {len(points)} kernels under {memory} and {compute}; the ceilings meet at {ridge:.1f} FLOP per byte."
    return Figure(
        f"{experiment.name}-roofline",
        "Roofline",
        words,
        "table.csv",
        rung_charts.roofline(points, lines, ridge),
    )


def stalls(results: Results, experiment: PlannedExperiment, root: Path) -> Figure | None:
    """Why warps wait."""
    rungs, _ = read_rungs(results, experiment, root)
    rows = [
        {"kernel": rung.kernel, "reason": column.removeprefix("ncu_stall_").replace("_", " "), "warps": value}
        for rung in rungs
        for column in rung.row
        if column.startswith("ncu_stall_") and (value := rung.number(column)) is not None
    ]
    if not rows:
        return None
    kernels = list(dict.fromkeys(str(row["kernel"]) for row in rows))
    words = (
        f"Stacked bars of {len(kernels)} kernels: what the waiting warps wait for, in shares, "
        "and how many wait per issued instruction. "
        "The figures are in the columns ncu_stall_* of table.csv."
    )
    return Figure(
        f"{experiment.name}-stalls",
        "Why warps wait, with the warps waiting per instruction issued on the right",
        words,
        "table.csv",
        rung_charts.stalls(rows, kernels),
    )


def occupancy(results: Results, experiment: PlannedExperiment, root: Path) -> Figure | None:
    """Occupancy against speed."""
    rungs, _ = read_rungs(results, experiment, root)
    achieved = all(rung.number("ncu_warps_active_pct") is not None for rung in rungs if rung.number("tflops"))
    column = "ncu_warps_active_pct" if achieved else "occupancy_pct"
    rows = [
        {"kernel": rung.kernel, "short": rung.kernel.partition("_")[0], "occupancy": share, "tflops": tflops}
        for rung in rungs
        if (share := rung.number(column)) is not None and (tflops := rung.number("tflops")) is not None
    ]
    if len(rows) < 2:
        return None
    words = f"Scatter of {len(rows)} kernels: occupancy against speed."
    return Figure(
        f"{experiment.name}-occupancy",
        "Occupancy against speed",
        words,
        "table.csv",
        rung_charts.occupancy(rows, achieved),
    )


def bound(results: Results, experiment: PlannedExperiment, root: Path) -> Figure | None:
    """What the hot loop's instructions allow, without a GPU."""
    return _static(
        results,
        experiment,
        root,
        "bound",
        "bound_pct_of_peak",
        "What the hot loop allows",
        "at most, % of FP32 peak",
    )


def wavefronts(results: Results, experiment: PlannedExperiment, root: Path) -> Figure | None:
    """Passes through shared memory, counted by emulation."""
    return _static(
        results,
        experiment,
        root,
        "wavefronts",
        "emu_wavefronts_per_load",
        "Passes of a shared load",
        "wavefronts per shared load of a warp, emulated",
    )


def _static(
    results: Results, experiment: PlannedExperiment, root: Path, kind: str, column: str, title: str, unit: str
) -> Figure | None:
    rungs, _ = read_rungs(results, experiment, root)
    rows = [
        {"kernel": rung.kernel, "value": value, "text": f"{value:.3g}"}
        for rung in rungs
        if (value := rung.number(column)) is not None
    ]
    if not rows:
        return None
    words = f"Bar chart of {len(rows)} kernels: {unit}. The figures are in the column {column} of table.csv."
    return Figure(f"{experiment.name}-{kind}", title, words, "table.csv", rung_charts.static(rows, unit))


OF_LADDER: dict[str, Callable[[Results, PlannedExperiment, Path], Figure | None]] = {
    "speed": speed,
    "roofline": roofline,
    "stalls": stalls,
    "occupancy": occupancy,
    "bound": bound,
    "wavefronts": wavefronts,
}
