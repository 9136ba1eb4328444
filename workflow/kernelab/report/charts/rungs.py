"""Charts of a ladder: speed beside the articles', roofline, stalls, occupancy, and what is known without a GPU."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from kernelab.report.charts.theme import SERIES, Spec, Values, colour, data, finish, room_for_labels

ROW = 24
MOST_REASONS = 7
SHAPES = ("diamond", "triangle-up", "square", "cross")


def _names(title: str | None = None) -> alt.Y:
    return alt.Y("kernel:N", sort=None, axis=alt.Axis(title=title, grid=False, domain=False, ticks=False))


def speed(rows: Values, published: Values, unit: str) -> Spec:
    """A bar a rung: its share of the library's speed, with the articles' figures as marks beside it.

    Args:
        rows: kernel, share (%), text.
        published: kernel, share, source.
        unit: title of the axis.
    """
    highest = max([float(row["share"]) for row in (*rows, *published)], default=100.0)
    x = alt.X("share:Q", title=unit, scale=alt.Scale(domain=[0, max(100.0, highest) * 1.02]))
    chart = alt.Chart(data(rows))
    bars = chart.mark_bar(color=colour("series-1"), height=alt.RelativeBandSize(0.62)).encode(
        x=x,
        y=_names(),
        tooltip=[
            alt.Tooltip("kernel:N", title="rung"),
            alt.Tooltip("share:Q", format=".1f", title=unit),
            alt.Tooltip("text:N", title="TFLOP/s"),
        ],
    )
    # In a column of their own: beside a bar they could be taken for the published mark that stands there.
    text = chart.mark_text(align="left", dx=8).encode(x=alt.value("width"), y=_names(), text="text:N")
    full = alt.Chart(data([{"at": 100}])).mark_rule(color=colour("muted"), strokeDash=[4, 3]).encode(x="at:Q")
    layers = [bars, full, text]
    if published:
        sources = list(dict.fromkeys(str(row["source"]) for row in published))
        layers.insert(
            2,
            alt.Chart(data(published))
            .mark_point(filled=True, size=85, opacity=1, stroke=colour("surface"), strokeWidth=1)
            .encode(
                x=x,
                y=_names(),
                shape=alt.Shape(
                    "source:N",
                    scale=alt.Scale(
                        domain=sources, range=[SHAPES[i % len(SHAPES)] for i in range(len(sources))]
                    ),
                    legend=alt.Legend(title="published"),
                ),
                color=alt.Color(
                    "source:N",
                    scale=alt.Scale(
                        domain=sources,
                        range=[colour(SERIES[(i + 1) % len(SERIES)]) for i in range(len(sources))],
                    ),
                    legend=alt.Legend(title="published"),
                ),
                tooltip=[
                    alt.Tooltip("kernel:N", title="rung"),
                    alt.Tooltip("share:Q", title="published, %"),
                    "source:N",
                ],
            ),
        )
    return room_for_labels(finish(alt.layer(*layers), ROW * len(rows)), 40)


def roofline(points: Values, roof: Values, ridge: float) -> Spec:
    """Speed over arithmetic intensity, under the two ceilings.

    Args:
        points: kernel, intensity (FLOP a byte), tflops.
        roof: intensity, tflops of the ceiling's corners, and ceiling (its name).
        ridge: intensity where the ceilings meet.
    """
    x = alt.X(
        "intensity:Q",
        scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(title="FLOP per byte of DRAM traffic", format="~s", tickCount=6),
    )
    y = alt.Y(
        "tflops:Q",
        scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(title="TFLOP/s", format="~g", tickCount=5),
    )
    names = list(dict.fromkeys(str(row["ceiling"]) for row in roof))
    lines = (
        alt.Chart(data(roof))
        .mark_line(strokeWidth=2)
        .encode(
            x=x,
            y=y,
            color=alt.Color(
                "ceiling:N",
                scale=alt.Scale(domain=names, range=[colour("unsure"), colour("muted")]),
                legend=alt.Legend(title=None, columns=1),
            ),
        )
    )
    dots = (
        alt.Chart(data(points))
        .mark_point(filled=True, size=60, color=colour("series-1"), opacity=0.9)
        .encode(
            x=x,
            y=y,
            tooltip=[
                alt.Tooltip("kernel:N"),
                alt.Tooltip("tflops:Q", format=".2f", title="TFLOP/s"),
                alt.Tooltip("intensity:Q", format=".1f", title="FLOP per byte"),
                alt.Tooltip("bytes:N", title="bytes are"),
            ],
        )
    )
    marks = (
        alt.Chart(data([{"at": ridge}])).mark_rule(color=colour("grid"), strokeDash=[2, 2]).encode(x="at:Q")
    )
    return finish(alt.layer(marks, lines, dots), 300)


def stalls(rows: Values, kernels: Sequence[str]) -> Spec:
    """What warps wait for, by reason (the articles' WarpStateStats), with the warps that wait per issued instruction.

    Shares, since the first rungs wait a hundred times longer than the last, whose bars would be too short to read.

    Args:
        rows: kernel, reason, warps.
        kernels: in order.
    """
    waiting = {
        kernel: sum(float(row["warps"]) for row in rows if row["kernel"] == kernel) for kernel in kernels
    }
    total: dict[str, float] = {}
    for row in rows:
        share = float(row["warps"]) / (waiting[str(row["kernel"])] or 1.0)
        total[str(row["reason"])] = total.get(str(row["reason"]), 0.0) + share
    shown = sorted(total, key=lambda reason: -total[reason])[:MOST_REASONS]
    merged: dict[tuple[str, str], float] = {}
    for row in rows:
        reason = str(row["reason"]) if row["reason"] in shown else "other reasons"
        key = (str(row["kernel"]), reason)
        merged[key] = merged.get(key, 0.0) + float(row["warps"])
    domain = [*shown, "other reasons"]
    values = [
        {"kernel": k, "reason": r, "warps": v, "order": domain.index(r)} for (k, r), v in merged.items()
    ]
    y = alt.Y(
        "kernel:N",
        sort=list(kernels),
        axis=alt.Axis(title=None, grid=False, domain=False, ticks=False),
    )
    bars = (
        alt.Chart(data(values))
        .mark_bar(height=alt.RelativeBandSize(0.66))
        .encode(
            x=alt.X(
                "warps:Q",
                stack="normalize",
                axis=alt.Axis(title="share of the warps that wait", format=".0%"),
            ),
            y=y,
            color=alt.Color(
                "reason:N",
                scale=alt.Scale(domain=domain, range=[colour(name) for name in SERIES[: len(domain)]]),
                legend=alt.Legend(title=None),
            ),
            order=alt.Order("order:Q"),
            tooltip=["kernel:N", "reason:N", alt.Tooltip("warps:Q", format=".3f", title="warps per issue")],
        )
    )
    sums = [{"kernel": kernel, "waiting": f"{value:.3g}"} for kernel, value in waiting.items()]
    text = (
        alt.Chart(data(sums))
        .mark_text(align="left", dx=8)
        .encode(x=alt.value("width"), y=y, text="waiting:N")
    )
    return room_for_labels(finish(alt.layer(bars, text), ROW * len(kernels)), 40)


def occupancy(rows: Values, achieved: bool) -> Spec:
    """Occupancy against speed: is more better?

    Args:
        rows: kernel, occupancy (%), tflops.
        achieved: as ncu measured it, rather than theoretical.
    """
    chart = alt.Chart(data(rows))
    x = alt.X(
        "occupancy:Q",
        title=f"{'achieved' if achieved else 'theoretical'} occupancy, %",
        scale=alt.Scale(domain=[0, 105]),
    )
    y = alt.Y("tflops:Q", title="TFLOP/s", scale=alt.Scale(zero=True))
    dots = chart.mark_point(filled=True, size=70, color=colour("series-1"), opacity=1).encode(
        x=x,
        y=y,
        tooltip=[
            "kernel:N",
            alt.Tooltip("occupancy:Q", format=".1f"),
            alt.Tooltip("tflops:Q", format=".2f", title="TFLOP/s"),
        ],
    )
    text = chart.mark_text(align="left", dx=7, fontSize=11, color=colour("muted")).encode(
        x=x, y=y, text="short:N"
    )
    return finish(alt.layer(dots, text), 300)


def static(rows: Values, unit: str) -> Spec:
    """A bar a rung of a figure that needs no GPU.

    Args:
        rows: kernel, value, text.
        unit: title of the axis.
    """
    chart = alt.Chart(data(rows))
    x = alt.X("value:Q", title=unit)
    bars = chart.mark_bar(color=colour("series-7"), height=alt.RelativeBandSize(0.62)).encode(
        x=x, y=_names(), tooltip=["kernel:N", alt.Tooltip("value:Q", format=".4~g", title=unit)]
    )
    text = chart.mark_text(align="left", dx=5).encode(x=x, y=_names(), text="text:N")
    return room_for_labels(finish(alt.layer(bars, text), ROW * len(rows)), 44)
