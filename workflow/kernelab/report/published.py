"""Figures that somebody published of an operation's kernels: kernels/<operation>/published.yaml, where there is one."""

from __future__ import annotations

from pathlib import Path

from kernelab.plan import strict_yaml
from kernelab.plan.model import Float, Name, Strict, validate


class PublishedFigures(Strict):
    """One source's figures: the share of the library's speed, in %, by kernel."""

    source: str
    card: str
    pct_of_cublas: dict[Name, Float]


class Published(Strict):
    """The whole file."""

    figures: tuple[PublishedFigures, ...]


def read_published(folder: Path) -> tuple[PublishedFigures, ...]:
    """The published figures of the operation in a catalogue folder; none where it has no such file.

    Raises:
        UserError: the file is not as described.
    """
    path = folder / "published.yaml"
    return validate(Published, strict_yaml.read(path)).figures if path.is_file() else ()
