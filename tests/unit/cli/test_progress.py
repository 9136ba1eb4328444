"""The bar of a long measurement."""

from __future__ import annotations

import io

import pytest

from kernelab.cli.progress import Progress, terminal


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_time_left_is_what_the_processes_so_far_took() -> None:
    screen, lines, clock = io.StringIO(), [], Clock()
    progress = Progress("launch_bounds", screen, clock, lines.append)
    progress("process 1 of 6")
    assert screen.getvalue().endswith("launch_bounds [........................] process 1 of 6")
    clock.now += 10
    progress("process 2 of 6")
    assert screen.getvalue().endswith("launch_bounds [####....................] process 2 of 6, 50 s left")
    clock.now += 10
    progress("process 3 of 12")  # the one extension
    assert screen.getvalue().endswith("launch_bounds [####....................] process 3 of 12, 2 min left")
    assert lines == ["process 1 of 6", "process 2 of 6", "process 3 of 12"]


def test_a_run_that_goes_on_counts_from_where_it_began() -> None:
    screen, clock = io.StringIO(), Clock()
    progress = Progress("x", screen, clock, lambda line: None)
    progress("process 4 of 6")
    clock.now += 7
    progress("process 5 of 6")
    assert screen.getvalue().endswith("process 5 of 6, 14 s left")


def test_the_bar_is_gone_before_a_line_and_at_the_end() -> None:
    screen = io.StringIO()
    with Progress("x", screen, Clock(), lambda line: screen.write(line + "\n")) as progress:
        progress("process 1 of 2")
        progress("the GPU is also in use")
        kept = screen
        text = kept.getvalue()
    assert text.endswith(" \rthe GPU is also in use\n")


def test_without_a_terminal_only_the_lines_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("x", None) as progress:
        progress("process 1 of 6")
    assert capsys.readouterr().out == "process 1 of 6\n"


def test_ci_gets_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    assert terminal() is None


def test_a_terminal_that_goes_away_is_no_fault() -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError("gone")

    lines: list[str] = []
    with Progress("x", Gone(), Clock(), lines.append) as progress:
        progress("process 1 of 2")
        progress("process 2 of 2")
    assert lines == ["process 1 of 2", "process 2 of 2"]
