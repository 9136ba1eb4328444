"""Charts of raw samples: every sample in the order it was taken, with the clock and the power beside it."""

from __future__ import annotations

from typing import Any

import altair as alt

from kernelab.report.charts.theme import Spec, Values, colour, data, finish


def samples(
    table: str, arms: Values, starts: list[int], rounds: int, has_clock: bool, has_power: bool
) -> Spec:
    """Deviation of every sample from its arm's median, SM clock, and power, over rounds and processes.

    Args:
        table: CSV text: at (rounds since the first process began), a (number of the arm), time (ms), clock, power.
        arms: a, arm (its name), middle (its median time).
        starts: where each process begins.
        rounds: of a process.
        has_clock, has_power: whether those columns hold anything.
    """
    parse = dict.fromkeys(("at", "a", "time", "clock", "power"), "number")
    rows = alt.InlineData(values=table, format=alt.CsvDataFormat(type="csv", parse=parse))
    bounds = (
        alt.Chart(data([{"at": start - 0.5} for start in starts]))
        .mark_rule(color=colour("grid"))
        .encode(x="at:Q")
    )
    shade = alt.Color(
        "arm:N",
        sort=[str(arm["arm"]) for arm in arms],
        legend=alt.Legend(title=None, columns=2, symbolType="circle"),
    )
    x = alt.X(
        "at:Q", axis=alt.Axis(title=None, grid=False, tickCount=6), scale=alt.Scale(nice=False, padding=6)
    )
    last = x.copy()
    last["axis"] = alt.Axis(title="round; each line is where a fresh process begins", grid=False, tickCount=6)
    tips = [
        alt.Tooltip("arm:N"),
        alt.Tooltip("process:Q"),
        alt.Tooltip("round:Q"),
        alt.Tooltip("time:Q", format=".5g", title="time, ms"),
        alt.Tooltip("deviation:Q", format="+.3%", title="from its median"),
        alt.Tooltip("clock:Q", format=".0f", title="SM clock, MHz"),
        alt.Tooltip("power:Q", format=".0f", title="power, W"),
    ]
    named = alt.LookupData(data=data(arms), key="a", fields=["arm", "middle"])

    def panel(field: str, title: str, form: str, height: int, where: alt.X) -> Any:
        y = alt.Y(
            f"{field}:Q", scale=alt.Scale(zero=False), axis=alt.Axis(title=title, format=form, tickCount=4)
        )
        dots = (
            alt.Chart(rows)
            .transform_lookup(lookup="a", from_=named)
            .transform_calculate(
                deviation="datum.time / datum.middle - 1",
                process=f"floor(datum.at / {rounds})",
                round=f"floor(datum.at) % {rounds}",
            )
            .mark_circle(size=14, opacity=0.75)
            .encode(x=where, y=y, color=shade, tooltip=tips)
        )
        return alt.layer(bounds, dots).properties(height=height, width=600)

    panels = [("deviation", "time, from the arm's median", "+.2~%", 190)]
    if has_clock:
        panels.append(("clock", "SM clock, MHz", "d", 90))
    if has_power:
        panels.append(("power", "power, W", "d", 90))
    views = [panel(*facts, last if facts is panels[-1] else x) for facts in panels]
    return finish(alt.vconcat(*views, spacing=10))
