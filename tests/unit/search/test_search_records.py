from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelab.errors import UserError
from kernelab.records.search import (
    COLUMNS,
    STATUSES,
    SearchRow,
    read_search,
    settings_text,
    write_search,
)

BEST = SearchRow(
    rank=1,
    configuration="BK=8,TM=16",
    status="finalist",
    stage=4,
    rounds=24,
    time_ms=1.234567,
    ratio=0.9512345,
    ratio_low=0.95,
    ratio_high=0.9525,
    registers=128,
    spill_bytes=0,
    shared_bytes=16896,
    sass_sha256="ab" * 32,
    build_digest="cd" * 32,
    settings=settings_text({"BK": "8", "TM": "16"}),
)
PRUNED = SearchRow(
    None, "BK=7", "excluded", 'BK % 8 == 0: "whole", vectors', settings=settings_text({"BK": "7"})
)


def test_rows_come_back_as_they_were_ranked_ones_first(tmp_path: Path) -> None:
    path = tmp_path / "search" / "a.csv"
    second = replace(BEST, rank=2, configuration="default")
    failed = replace(PRUNED, configuration="BK=9", status="compile_error", note="a.cu(3): error: bad")
    write_search(path, [PRUNED, second, failed, BEST])
    assert read_search(path) == [BEST, second, PRUNED, failed]
    assert path.read_text().splitlines()[0] == ",".join(COLUMNS)
    assert BEST.levels == {"BK": "8", "TM": "16"}


def test_what_was_not_measured_is_an_empty_cell(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    write_search(path, [replace(PRUNED, note="", ratio=float("nan"))])
    cells = dict(zip(COLUMNS, path.read_text().splitlines()[1].split(",", len(COLUMNS) - 1), strict=True))
    assert [name for name in COLUMNS if cells[name]] == ["configuration", "status", "settings"]


_NUMBER = st.none() | st.floats(1e-6, 1e6)
_WHOLE = st.none() | st.integers(0, 10**6)
_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=20)
_ROWS = st.builds(
    SearchRow,
    rank=st.none() | st.integers(1, 9),
    configuration=_TEXT,
    status=st.sampled_from(STATUSES),
    note=_TEXT,
    stage=_WHOLE,
    rounds=_WHOLE,
    time_ms=_NUMBER,
    ratio=_NUMBER,
    registers=_WHOLE,
    settings=st.dictionaries(_TEXT, _TEXT, max_size=3).map(settings_text),
)


@settings(max_examples=60)
@given(rows=st.lists(_ROWS, max_size=4))
def test_any_rows_come_back(tmp_path_factory: pytest.TempPathFactory, rows: list[SearchRow]) -> None:
    path = tmp_path_factory.getbasetemp() / "any.csv"
    write_search(path, rows)
    read = read_search(path)
    assert sorted(row.configuration for row in read) == sorted(row.configuration for row in rows)
    for row in read:
        twins = [
            r
            for r in rows
            if (r.configuration, r.note, r.settings) == (row.configuration, row.note, row.settings)
        ]
        assert any(row == replace(r, time_ms=_rounded(r.time_ms), ratio=_rounded(r.ratio)) for r in twins)
    write_search(path, read)
    assert read_search(path) == read


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.7g}")


def test_a_status_of_ones_own_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="BK=7: status fine"):
        write_search(tmp_path / "a.csv", [replace(PRUNED, status="fine")])


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (lambda text: text.replace("rank,", "place,"), "other columns"),
        (lambda text: text.replace("finalist", "fine"), "status fine"),
        (lambda text: text.replace("1.234567", "fast"), "fast"),
        (lambda text: text.replace(",24,", ",2.4,"), "2.4"),
        (lambda text: text[: len(text) // 2], "too few cells"),
        (lambda text: text.replace("{", "["), ""),
        (lambda text: "", "other columns"),
    ],
)
def test_a_damaged_table_is_one_line(tmp_path: Path, edit: object, why: str) -> None:
    path = tmp_path / "a.csv"
    write_search(path, [BEST])
    path.write_text(edit(path.read_text()))  # type: ignore[operator]
    with pytest.raises(UserError, match=rf"a\.csv: damaged \(.*{why}.*\); delete it and run again"):
        read_search(path)


def test_a_table_that_is_not_there_says_how_to_make_it(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not made yet; run snakemake"):
        read_search(tmp_path / "a.csv")
