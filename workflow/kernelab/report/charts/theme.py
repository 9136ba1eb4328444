"""What all charts share: the colours, the fonts, and the step from an Altair chart to a finished figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

Values = Sequence[Mapping[str, Any]]
Spec = dict[str, Any]

COLOURS = {
    "ink": "#1b1f24",
    "muted": "#57606a",
    "grid": "#d8dee4",
    "band": "#eaeef2",
    "surface": "#ffffff",
    "faster": "#0b6e99",
    "slower": "#b3430f",
    "equal": "#57606a",
    "unsure": "#8a6100",
    "refused": "#9b1c4b",
    "series-1": "#0b6e99",
    "series-2": "#b3430f",
    "series-3": "#4d7c0f",
    "series-4": "#7c3aad",
    "series-5": "#8a6100",
    "series-6": "#be185d",
    "series-7": "#0f766e",
    "series-8": "#57606a",
    "series-9": "#1d3f8a",
    "series-10": "#d4478f",
    "series-11": "#6b4226",
    "series-12": "#2e9e5b",
}
"""The light palette. In the page each is a custom property of the style sheet, so that dark mode and print change it."""

SERIES = tuple(name for name in COLOURS if name.startswith("series-"))

VERDICT_COLOUR = {
    "faster": "faster",
    "slower": "slower",
    "equivalent": "equal",
    "within_margin": "equal",
    "identical_code": "equal",
    "inconclusive": "unsure",
    "unstable": "unsure",
    "confounded": "refused",
    "not_measured": "equal",
    "A/A": "unsure",
}
FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"


@dataclass(frozen=True)
class Figure:
    """A chart by name. `alt` says in words what it shows; `source` names the CSV that holds its numbers."""

    name: str
    title: str
    alt: str
    source: str
    spec: Spec


def colour(name: str) -> str:
    """A colour as the specifications carry it: the style sheet's custom property."""
    return f"var(--{name})"


def data(values: Values) -> alt.InlineData:
    return alt.InlineData(values=[dict(value) for value in values])


def finish(chart: Any, height: int | None = None) -> Spec:
    """The specification of a chart, with the shared look; as wide as its place on the page."""
    if height is not None:
        chart = chart.properties(width="container", height=height)
    # Altair's own check of every specification takes longer than all else together; the tests make it.
    spec: Spec = chart.to_dict(validate=False)
    spec.pop("$schema", None)
    spec["config"] = CONFIG
    return spec


def room_for_labels(spec: Spec, pixels: int) -> Spec:
    """The same chart with room on its right for text that stands behind the longest bar."""
    return {**spec, "padding": {"left": 5, "right": pixels, "top": 5, "bottom": 5}}


def printable(spec: Spec, width: int) -> Spec:
    """A specification that stands alone: light colours in place of custom properties, and a width in pixels."""
    solved = _solved(spec)
    if solved.get("width") == "container":
        solved["width"] = width
    for view in solved.get("vconcat", ()):
        view["width"] = width
    return {
        "$schema": f"https://vega.github.io/schema/vega-lite/{alt.SCHEMA_VERSION.split('.')[0]}.json",
        "background": "white",
        **solved,
    }


def _solved(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: _solved(value) for key, value in part.items()}
    if isinstance(part, list):
        return [_solved(value) for value in part]
    if isinstance(part, str) and part.startswith("var(--"):
        return COLOURS[part[6:-1]]
    return part


CONFIG: Spec = {
    "background": "transparent",
    "font": FONT,
    # The figure around a chart carries its description; marks would read their coordinates out one by one.
    "aria": False,
    "view": {"stroke": None},
    "axisX": {"titleAnchor": "end"},
    "axis": {
        "labelColor": colour("muted"),
        "titleColor": colour("ink"),
        "titleFontWeight": "normal",
        "gridColor": colour("grid"),
        "domainColor": colour("grid"),
        "tickColor": colour("grid"),
        "labelFontSize": 12,
        "titleFontSize": 12,
        "labelLimit": 280,
    },
    "legend": {
        "labelColor": colour("ink"),
        "titleColor": colour("muted"),
        "titleFontWeight": "normal",
        "orient": "bottom",
        "columns": 4,
        "labelLimit": 240,
        "labelFontSize": 12,
    },
    "header": {"labelColor": colour("ink"), "titleColor": colour("ink")},
    "text": {"color": colour("ink"), "fontSize": 12},
    "range": {"category": [colour(name) for name in SERIES]},
}
