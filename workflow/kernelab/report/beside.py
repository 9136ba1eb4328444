"""Two arms side by side, from the records alone: where the time goes, and by how much each figure differs.

A library's kernel has no build record. What ncu says of its launch (registers, shared memory, grid, waves) stands in
the same places as our own kernels' static figures; what only a listing could say of it stays empty.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kernelab.errors import UserError
from kernelab.plan.arms import Arm
from kernelab.plan.model import suggestion
from kernelab.profile.columns import NCU_COLUMNS
from kernelab.records.layout import RESULTS, Layout
from kernelab.records.profile import ProfiledKernel, ProfileRecord
from kernelab.report.reader import Results, Row
from kernelab.table.columns import STATIC

Pair = tuple[float | None, float | None]


@dataclass(frozen=True)
class Figure:
    """One figure of both arms; None: not known of that arm. `ratio` is second over first, None where it may not be formed."""

    section: str
    name: str
    unit: str
    first: float | None
    second: float | None
    may_relate: bool = True

    @property
    def ratio(self) -> float | None:
        if not self.may_relate or self.first is None or self.second is None or self.first == 0:
            return None
        return self.second / self.first

    @property
    def difference(self) -> float | None:
        if not self.may_relate or self.first is None or self.second is None:
            return None
        return self.second - self.first


@dataclass(frozen=True)
class Beside:
    """Two arms: their names, the experiments that their times are from, every figure, and lines that sum it up."""

    first: str
    second: str
    experiments: tuple[str, str]
    figures: tuple[Figure, ...]
    summary: tuple[str, ...]


# What stands in for a static figure of a library's kernel: sums of metrics of its last launch.
_LAUNCHED = {
    "registers": ("launch__registers_per_thread",),
    "shared_bytes": ("launch__shared_mem_per_block_static", "launch__shared_mem_per_block_dynamic"),
    "threads": ("launch__block_size",),
    "blocks": ("launch__grid_size",),
    "waves": ("launch__waves_per_multiprocessor",),
    "occupancy_pct": ("sm__maximum_warps_per_active_cycle_pct",),
}
# Executed instructions by kind.
_EXECUTED = (
    ("global loads", "smsp__sass_inst_executed_op_global_ld.sum"),
    ("global stores", "smsp__sass_inst_executed_op_global_st.sum"),
    ("cp.async", "smsp__inst_executed_op_ldgsts.sum"),
    ("bulk copies (TMA)", "smsp__sass_inst_executed_op_tma_ld.sum"),
    ("shared loads", "smsp__sass_inst_executed_op_shared_ld.sum"),
    ("shared stores", "smsp__sass_inst_executed_op_shared_st.sum"),
    ("matrix loads (ldmatrix)", "smsp__inst_executed_op_ldsm.sum"),
    ("matrix stores (stmatrix)", "smsp__inst_executed_op_shared_stsm.sum"),
    ("local loads", "smsp__sass_inst_executed_op_local_ld.sum"),
    ("local stores", "smsp__sass_inst_executed_op_local_st.sum"),
)
_PIPES = ("alu", "lsu", "uniform", "adu", "tma")  # the FMA pipe is a counter of its own
_SHARED_LOADS = ("smsp__sass_inst_executed_op_shared_ld.sum", "smsp__inst_executed_op_ldsm.sum")
_SHARED_PASSES = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
_MOST_STALLS = 3


def beside(results: Results, first: str, second: str, experiment: str = "", profiles: bool = True) -> Beside:
    """Set two arms side by side.

    Args:
        results: a results folder or a snapshot.
        first, second: arms as table.csv names them; a kernel alone means its default, where that is one arm.
        experiment: the experiment to read times from; by default one that compares the two, or that has both.
        profiles: False leaves the counters out, where there are none.

    Raises:
        UserError: an arm or experiment that is not there, or (with `profiles`) an arm without counters.
    """
    one, other = find_arm(results, first), find_arm(results, second)
    if one.name == other.name:
        raise UserError(f"{one.name}: is both arms; name two")
    rows = _rows(results, one.name, other.name, experiment)
    counted = [_profile(results, arm) for arm in (one, other)] if profiles else [None, None]
    session = _session(results, one.name, other.name, rows)
    values = [record.columns() if record else {} for record in counted]
    figures = (
        *_timing(results, (one.name, other.name), rows, session),
        *_factors(results, rows, values, session),
        *_counters(values),
        *_executed([record.kernels if record else [] for record in counted]),
        *_static(rows, [record.kernels if record else [] for record in counted]),
    )
    known = tuple(figure for figure in figures if figure.first is not None or figure.second is not None)
    return Beside(
        first=one.name,
        second=other.name,
        experiments=(rows[0]["experiment"], rows[1]["experiment"]),
        figures=known,
        summary=tuple(_summary(results, one.name, other.name, rows, session, known)),
    )


def find_arm(results: Results, text: str) -> Arm:
    """The arm that a text means: kernel/variant@problem, kernel@problem, kernel/variant or kernel.

    Raises:
        UserError: no arm is meant, or several are.
    """
    arms = results.plan.arms
    if text in arms:
        return arms[text]
    build, at, problem = text.partition("@")
    wanted = build if "/" in build else f"{build}/default"
    found = [
        arm
        for name, arm in arms.items()
        if name.split("@")[0] == wanted and (not at or arm.problem == problem)
    ]
    # Arms that differ in how they are timed alone (l2, data) have longer names: the plain one is meant.
    plain = [arm for arm in found if arm.name == f"{wanted}@{arm.problem}"] or found
    if not plain:
        kernels = dict.fromkeys(arm.kernel for arm in arms.values())
        raise UserError(f"{text}: no arm of these results{suggestion(text, [*arms, *kernels])}")
    if len(plain) > 1:
        raise UserError(
            f"{text}: is several arms ({', '.join(arm.name for arm in plain[:4])}); name one in full"
        )
    return plain[0]


def _rows(results: Results, first: str, second: str, experiment: str) -> tuple[Row, Row]:
    """The table's row of each arm: of one experiment where one has both."""
    if experiment and experiment not in results.plan.experiments:
        raise UserError(
            f"{experiment}: no experiment of these results{suggestion(experiment, list(results.plan.experiments))}"
        )
    of: list[dict[str, Row]] = [
        {row["experiment"]: row for row in results.table if row["arm"] == name} for name in (first, second)
    ]
    for name, rows in zip((first, second), of, strict=True):
        if experiment and experiment not in rows:
            raise UserError(f"{name}: is not in {experiment}, but in {', '.join(rows)}")
        if not rows:
            raise UserError(f"{name}: no row of {results.folder}/table.csv; make it again")
    shared = [name for name in of[0] if name in of[1]]

    def rank(name: str) -> tuple[bool, bool]:
        pairs = {frozenset((c.base, c.arm)) for c in results.plan.experiments[name].comparisons}
        timed = bool(of[0][name]["time_ms"] and of[1][name]["time_ms"])
        return not timed, frozenset((first, second)) not in pairs

    if experiment or shared:
        chosen = experiment or min(shared, key=rank)
        return of[0][chosen], of[1][chosen]
    return _any_timed(of[0]), _any_timed(of[1])


def _any_timed(rows: dict[str, Row]) -> Row:
    return next((row for row in rows.values() if row["time_ms"]), next(iter(rows.values())))


def _profile(results: Results, arm: Arm) -> ProfileRecord:
    record = results.profile(arm)
    if record is not None and record.status == "ok":
        return record
    target = Layout(RESULTS, results.plan.device.id).profile(arm.record_key, arm.problem)
    why = record.note.rstrip(".") if record is not None else "no profile was made"
    raise UserError(
        f"{arm.name}: not profiled: {why}; run `snakemake {target}` on its GPU, or add --no-profile to see the rest"
    )


def _session(results: Results, first: str, second: str, rows: tuple[Row, Row]) -> str:
    """The session that both arms were timed in; empty where there is none, and so no ratio of their times."""
    if rows[0]["experiment"] != rows[1]["experiment"]:
        return ""
    record = results.timed(rows[0]["experiment"])
    if record is None:
        return ""
    names = [record.arms[name].session if name in record.arms else "" for name in (first, second)]
    return names[0] if names[0] == names[1] else ""


def _timing(
    results: Results, names: tuple[str, str], rows: tuple[Row, Row], session: str
) -> Iterator[Figure]:
    for column, unit in (
        ("time_ms", "ms"),
        ("time_low_ms", "ms"),
        ("time_high_ms", "ms"),
        ("tflops", "TFLOP/s"),
        ("pct_of_peak", "%"),
        ("pct_of_cublas", "%"),
        ("sm_clock_mhz", "MHz"),
    ):
        first, second = _cells(rows, column)
        yield Figure("time", column, unit, first, second, may_relate=bool(session))
    # NVML is read at the end of a round, which all arms of the group share: no arm has a power of its own there.
    power = tuple(_power(results, row["experiment"], name) for name, row in zip(names, rows, strict=True))
    yield Figure("time", "power of its rounds", "W", power[0], power[1], may_relate=False)


def _power(results: Results, experiment: str, name: str) -> float | None:
    found = [s.power_w for s in results.samples(experiment) if s.arm == name and s.power_w is not None]
    return statistics.median(found) if found else None


def _factors(
    results: Results, rows: tuple[Row, Row], values: list[dict[str, float]], session: str
) -> Iterator[Figure]:
    """Four factors whose product, over the schedulers of the card, is the time (it is how ncu defines them).

    time = instructions / (schedulers x issue active x SM active x clock): the counters from ncu, the clock from timing.
    """
    instructions = _pair(values, "ncu_instructions")
    per_issue = _inverted(_pair(values, "ncu_issue_active_pct"), 100.0)
    spread = _inverted(_pair(values, "ncu_sm_active_pct"), 100.0)
    cycle_ns = _inverted(_cells(rows, "sm_clock_mhz"), 1e3)
    for name, unit, pair in (
        ("instructions", "warp instructions", instructions),
        ("cycles an issue", "cycles of a scheduler", per_issue),
        ("elapsed over active", "cycles of an SM", spread),
        ("cycle", "ns", cycle_ns),
    ):
        yield Figure("factors", name, unit, *pair)
    schedulers = _schedulers(results, rows)
    products: list[float | None] = []
    for factors in zip(instructions, per_issue, spread, cycle_ns, strict=True):
        known = [factor for factor in factors if factor is not None]
        product = known[0] * known[1] * known[2] * known[3] if len(known) == 4 and schedulers else None
        products.append(product / schedulers * 1e-6 if product is not None and schedulers else None)
    yield Figure("factors", "product", "ms", products[0], products[1])
    yield Figure("factors", "time measured", "ms", *_cells(rows, "time_ms"), may_relate=bool(session))


def _schedulers(results: Results, rows: tuple[Row, Row]) -> int | None:
    """Warp schedulers of the card: four an SM on every architecture since sm_70."""
    record = results.timed(rows[0]["experiment"])
    return 4 * record.card.multiprocessors if record is not None and record.card is not None else None


def _counters(values: list[dict[str, float]]) -> Iterator[Figure]:
    for column in NCU_COLUMNS:
        stall = column.name.startswith("ncu_stall_")
        name = column.name.removeprefix("ncu_stall_" if stall else "ncu_")
        yield Figure("stalls" if stall else "counters", name, column.unit, *_pair(values, column.name))


def _executed(kernels: list[Sequence[ProfiledKernel]]) -> Iterator[Figure]:
    for name, metric in _EXECUTED:
        yield Figure(
            "executed", name, "warp instructions", _sum(kernels[0], metric), _sum(kernels[1], metric)
        )
    for pipe in _PIPES:
        metric = f"sm__inst_executed_pipe_{pipe}.avg.pct_of_peak_sustained_active"
        # A share of a sequence of kernels is not a sum; it is told of a single kernel alone.
        single = [sequence if len(sequence) == 1 else () for sequence in kernels]
        shares = [_sum(sequence, metric) for sequence in single]
        yield Figure("executed", f"{pipe} pipe", "% of peak", shares[0], shares[1])
    # More than one for a load's width (two or four for 64 or 128 bits that no two lanes share), for each matrix of ldmatrix,
    # or for bank conflicts.
    each = []
    for sequence in kernels:
        loads = [count for metric in _SHARED_LOADS if (count := _sum(sequence, metric)) is not None]
        passes = _sum(sequence, _SHARED_PASSES)
        each.append(passes / sum(loads) if passes is not None and any(loads) else None)
    yield Figure("executed", "passes a shared load", "wavefronts", each[0], each[1])


def _static(rows: tuple[Row, Row], kernels: list[Sequence[ProfiledKernel]]) -> Iterator[Figure]:
    for column in STATIC:
        if column.name == "sass_sha256":
            continue
        pair = [
            cell if cell is not None else _launched(column.name, sequence)
            for cell, sequence in zip(_cells(rows, column.name), kernels, strict=True)
        ]
        yield Figure("static", column.name, column.unit, pair[0], pair[1])


def _launched(column: str, kernels: Sequence[ProfiledKernel]) -> float | None:
    metrics = _LAUNCHED.get(column, ())
    if not kernels or not metrics or any(name not in kernels[-1].metrics for name in metrics):
        return None
    return sum(kernels[-1].metrics[name].value for name in metrics)


def _summary(
    results: Results,
    first: str,
    second: str,
    rows: tuple[Row, Row],
    session: str,
    figures: Sequence[Figure],
) -> Iterator[str]:
    experiment = rows[0]["experiment"]
    by_name = {(figure.section, figure.name): figure for figure in figures}
    time = by_name.get(("time", "time_ms"))
    if not session:
        yield (
            "no ratio of their times: they were not timed in one session"
            + (f" ({experiment} and {rows[1]['experiment']})" if experiment != rows[1]["experiment"] else "")
        )
    elif time is not None and time.ratio is not None:
        verdict = _verdict(results, experiment, first, second)
        yield f"{second} takes {time.ratio:.4f} of the time of {first} ({experiment}){verdict}"
    parts = [figure for figure in figures if figure.section == "factors" and figure.ratio is not None]
    if any(figure.name == "product" for figure in parts):
        told = {figure.name: figure.ratio for figure in parts}
        factors = ", ".join(
            f"{name} {told[name]:.4f}"
            for name in ("instructions", "cycles an issue", "elapsed over active", "cycle")
            if name in told
        )
        yield f"it is made of: {factors}; their product is {told['product']:.4f}"
    stalls = [figure for figure in figures if figure.section == "stalls" and figure.difference is not None]
    moved = sorted(stalls, key=lambda figure: -abs(figure.difference or 0.0))[:_MOST_STALLS]
    if moved:
        shown = ", ".join(f"{f.name} {f.first:.2f} -> {f.second:.2f}" for f in moved)
        yield f"stalls that differ most (warps per issue): {shown}"


def _verdict(results: Results, experiment: str, first: str, second: str) -> str:
    record = results.compared(experiment)
    if record is None:
        return ""
    if pair := record.pair(first, second):
        return f": {pair.verdict}"
    pair = record.pair(second, first)
    return f": the other way round, {pair.verdict}" if pair else ""


def _cells(rows: tuple[Row, Row], column: str) -> Pair:
    first, second = (row.get(column, "") for row in rows)
    return (float(first) if first else None, float(second) if second else None)


def _pair(values: list[dict[str, float]], name: str) -> Pair:
    return values[0].get(name), values[1].get(name)


def _inverted(pair: Pair, scale: float) -> Pair:
    first, second = (scale / value if value else None for value in pair)
    return first, second


def _sum(kernels: Sequence[ProfiledKernel], metric: str) -> float | None:
    if not kernels or any(metric not in kernel.metrics for kernel in kernels):
        return None
    return sum(kernel.metrics[metric].value for kernel in kernels)
