"""Charts of verdicts: forest plots, waterfalls and interactions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import altair as alt

from kernelab.report.charts.theme import VERDICT_COLOUR, Spec, Values, colour, data, finish

LARGE_EFFECT = math.log(1.35)
"""Above this the ratio is drawn on a log axis, where a gain and the like loss are as long."""
SIGNED: dict[str, Any] = {"labelExpr": "datum.value == 0 ? '0%' : format(datum.value, '+.2~%')"}


def forest(rows: Values, margin: float) -> Spec:
    """One line a comparison: its ratio of times with the 95% interval, over the band of +-margin.

    Args:
        rows: label, ratio, low, high, verdict; those of the A/A controls have the verdict `A/A`.
        margin: of equivalence, as a share (0.01).
    """
    verdicts = list(dict.fromkeys(str(row["verdict"]) for row in rows))
    wide = max(abs(math.log(float(row[end]))) for row in rows for end in ("low", "high")) > LARGE_EFFECT
    scale = alt.Scale(type="log", nice=False, padding=12) if wide else alt.Scale(zero=False, padding=12)
    form = ".3~g"
    reach = max(max(abs(float(row[end]) - 1.0) for row in rows for end in ("low", "high")), margin)
    values = [{**row, "change": float(row["ratio"]) - 1.0} for row in rows]

    def at(field: str) -> alt.X:
        title = (
            "time of the arm / time of the base (log scale)" if wide else "change of time, arm against base"
        )
        axis = alt.Axis(title=title, tickCount=6, grid=True, **({"format": form} if wide else SIGNED))
        return alt.X(f"{field}:Q", scale=scale, axis=axis)

    if not wide:
        for row in values:
            row |= {end: float(row[end]) - 1.0 for end in ("low", "high")} | {"ratio": row["change"]}
    # `2 to 4 on 13_final` in two lines: on a narrow screen both ends of it are needed.
    lines = alt.Axis(
        title=None, grid=False, domain=False, ticks=False, labelExpr="split(datum.label, ' on ')"
    )
    y = alt.Y("label:N", sort=None, axis=lines)
    shade = alt.Color(
        "verdict:N",
        scale=alt.Scale(domain=verdicts, range=[colour(VERDICT_COLOUR.get(v, "equal")) for v in verdicts]),
        legend=alt.Legend(title=None, symbolType="circle"),
    )
    tips = [
        alt.Tooltip("label:N", title="comparison"),
        alt.Tooltip("verdict:N"),
        alt.Tooltip("change:Q", format="+.2%", title="time"),
        alt.Tooltip("low:Q", format=".4f" if wide else "+.2%", title="95% from"),
        alt.Tooltip("high:Q", format=".4f" if wide else "+.2%", title="to"),
    ]
    base = 1.0 if wide else 0.0
    edges = (1.0 / (1.0 + margin), 1.0 + margin) if wide else (1.0 / (1.0 + margin) - 1.0, margin)
    band = (
        alt.Chart(data([{"from": edges[0], "to": edges[1]}]))
        .mark_rect(color=colour("band"))
        .encode(x=alt.X("from:Q", scale=scale), x2="to:Q")
    )
    zero = (
        alt.Chart(data([{"at": base}])).mark_rule(color=colour("muted"), strokeDash=[3, 3]).encode(x="at:Q")
    )
    rows_ = alt.Chart(data(values))
    interval = rows_.mark_rule(strokeWidth=3).encode(x=at("low"), x2="high:Q", y=y, color=shade, tooltip=tips)
    point = rows_.mark_point(filled=True, size=90, opacity=1).encode(
        x=at("ratio"),
        y=y,
        color=shade,
        tooltip=tips,
        shape=alt.condition("datum.verdict == 'A/A'", alt.value("diamond"), alt.value("circle")),
    )
    height = max(70, (34 if any(" on " in str(row["label"]) for row in rows) else 26) * len(rows))
    layers = [band, zero, interval, point] if reach < 40 * margin or not wide else [zero, interval, point]
    return finish(alt.layer(*layers), height)


def waterfall(rows: Values) -> Spec:
    """Each step of a ladder of changes as a floating bar.

    Args:
        rows: label, before, after (ms), kind (start, gain, loss, end), text.
    """
    kinds = {"start": "equal", "gain": "faster", "loss": "slower", "end": "equal"}
    names = {"start": "start and end", "gain": "takes time off", "loss": "adds time", "end": "start and end"}
    values = [{**row, "what": names[str(row["kind"])]} for row in rows]
    present = list(dict.fromkeys(value["what"] for value in values))
    shade = {names[kind]: colour(name) for kind, name in kinds.items()}
    lowest = min(
        min(float(row["before"]), float(row["after"])) for row in rows if row["kind"] in ("gain", "loss")
    )
    highest = max(max(float(row["before"]), float(row["after"])) for row in rows)
    floor = max(0.0, lowest - 0.6 * (highest - lowest))
    for value in values:
        if value["kind"] in ("start", "end"):
            value["before"] = floor
    chart = alt.Chart(data(values))
    x = alt.X(
        "label:N",
        sort=None,
        axis=alt.Axis(
            title=None,
            labelAngle=0,
            labelLimit=130,
            labelExpr="split(datum.label, ': ')",
            domain=False,
            ticks=False,
        ),
    )
    bars = chart.mark_bar().encode(
        x=x,
        y=alt.Y(
            "before:Q",
            scale=alt.Scale(zero=False, nice=False, domain=[floor, highest + 0.08 * (highest - floor)]),
            title="time, ms (axis does not start at 0)",
        ),
        y2="after:Q",
        color=alt.Color(
            "what:N",
            scale=alt.Scale(domain=present, range=[shade[name] for name in present]),
            legend=alt.Legend(title=None),
        ),
        tooltip=[
            alt.Tooltip("label:N", title="step"),
            alt.Tooltip("after:Q", format=".4f", title="time, ms"),
            alt.Tooltip("text:N", title="effect"),
        ],
    )
    text = (
        chart.mark_text(baseline="bottom", dy=-4)
        .encode(x=x, y=alt.Y("top:Q"), text="text:N")
        .transform_calculate(top="max(datum.before, datum.after)")
    )
    return finish(alt.layer(bars, text), 280)


def interaction(rows: Values, levels: Sequence[str]) -> Spec:
    """The same change on several bases (or at several problems): lines that are parallel do not interact.

    Args:
        rows: level, ratio, low, high (to the line's own base level), line.
        levels: in order.
    """
    chart = alt.Chart(
        data([{**row, **{k: float(row[k]) - 1.0 for k in ("ratio", "low", "high")}} for row in rows])
    )
    x = alt.X(
        "level:N",
        sort=list(levels),
        axis=alt.Axis(title=None, labelAngle=0, labelLimit=120),
        scale=alt.Scale(padding=0.4),
    )
    shade = alt.Color("line:N", sort=None, legend=alt.Legend(title=None, columns=1))
    dash = alt.StrokeDash("line:N", sort=None, legend=None)
    tips = ["line:N", "level:N", alt.Tooltip("ratio:Q", format="+.2%", title="time against its base level")]
    y = alt.Y(
        "ratio:Q",
        axis=alt.Axis(title="time against the line's own base level", **SIGNED),
        scale=alt.Scale(zero=True),
    )
    lines = chart.mark_line(point=alt.OverlayMarkDef(filled=True, size=70), strokeWidth=2).encode(
        x=x, y=y, color=shade, strokeDash=dash, tooltip=tips
    )
    bars = chart.mark_rule(strokeWidth=2).encode(x=x, y="low:Q", y2="high:Q", color=shade)
    return finish(alt.layer(lines, bars), 260)
