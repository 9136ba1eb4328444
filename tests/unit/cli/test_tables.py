"""Views of the tables on a terminal and in a pipe."""

from __future__ import annotations

import argparse
import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from kernelab.cli.tables import add_arguments, read_csv, show
from kernelab.errors import UserError

ROWS = [
    {"experiment": "a", "arm": "k/x@p", "status": "ok", "time_ms": "10.5", "note": "plain"},
    {"experiment": "a", "arm": "k/y@p", "status": "hazard", "time_ms": "", "note": "race | on As"},
    {"experiment": "b", "arm": "k/z@p", "status": "ok", "time_ms": "9", "note": "[bold]<b>"},
]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(*options: str, stream: io.StringIO | None = None, rows: list[dict[str, str]] = ROWS) -> str:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    stream = stream or io.StringIO()
    show("table", rows, parser.parse_args(options), stream)
    return stream.getvalue()


def arms(*options: str) -> list[str]:
    return [row["arm"][2] for row in csv.DictReader(io.StringIO(shown("--format", "csv", *options)))]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), "xyz"),
        (("--where", "status=ok"), "xz"),
        (("--where", "status!=ok"), "y"),
        (("--where", "note~RACE"), "y"),
        (("--where", "time_ms<10"), "z"),
        (("--where", "time_ms >= 9"), "xz"),
        (("--where", "status=ok", "--where", "experiment=b"), "z"),
        (("--sort", "time_ms"), "zxy"),
        (("--sort=-time_ms",), "xzy"),
        (("--sort=-arm",), "zyx"),
    ],
)
def test_filters_and_sorting(options: tuple[str, ...], expected: str) -> None:
    assert "".join(arms(*options)) == expected


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--where", "stat=ok"), r"--where stat: no such column; did you mean status\?"),
        (("--where", "nonsense"), "not a filter"),
        (("--where", "time_ms<fast"), "compares numbers"),
        (("--columns", "arm,tim"), "--columns tim"),
        (("--sort", "x"), "--sort x"),
    ],
)
def test_mistakes_are_named(option: tuple[str, ...], message: str) -> None:
    with pytest.raises(UserError, match=message):
        shown(*option)


def test_json_has_numbers_and_nulls() -> None:
    found: list[dict[str, Any]] = json.loads(shown("--format", "json", "--columns", "arm,time_ms"))
    assert found == [
        {"arm": "k/x@p", "time_ms": 10.5},
        {"arm": "k/y@p", "time_ms": None},
        {"arm": "k/z@p", "time_ms": 9},
    ]


def test_markdown_escapes_its_bars() -> None:
    lines = shown("--format", "markdown", "--columns", "arm,note").splitlines()
    assert lines[:2] == ["| arm | note |", "|---|---|"]
    assert lines[3] == r"| k/y@p | race \| on As |"


def test_csv_is_the_file_itself() -> None:
    text = shown("--format", "csv")
    assert list(csv.DictReader(io.StringIO(text))) == ROWS


def test_a_pipe_gets_plain_lines_and_no_colour() -> None:
    text = shown("--columns", "arm,status,note")
    assert "\x1b" not in text
    assert text.splitlines()[3].split() == ["k/z@p", "ok", "[bold]<b>"]


def test_a_terminal_gets_colours_unless_it_wants_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    coloured = shown("--columns", "arm,status,note", stream=Terminal())
    assert "\x1b[1;31mhazard" in coloured
    assert "[bold]<b>" in coloured  # text, no markup
    monkeypatch.setenv("NO_COLOR", "1")
    assert "31m" not in shown("--columns", "arm,status", stream=Terminal())


def test_the_number_of_rows_left_out_is_said() -> None:
    assert shown("--where", "status=ok").endswith("2 of 3 rows\n")
    assert "rows" not in shown()


def test_a_table_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not made yet; run snakemake"):
        read_csv(tmp_path / "table.csv")
