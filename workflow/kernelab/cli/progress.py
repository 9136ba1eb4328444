"""A bar with the time left, for an experiment that is being timed or a search: on the terminal, and nowhere else.

Under Snakemake a step's output goes into its log; the bar is then drawn on the controlling terminal. Where there is none
(CI, a batch job) or CI is set, nothing is drawn. The lines themselves are printed as always.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TextIO

STEP = re.compile(r"^(process|configuration) (\d+) of (\d+)$")
WIDTH = 24


class Progress:
    """Called with each line that a step says; use it as a context, so that the bar is cleared at the end.

    Args:
        what: the experiment, or the search.
        terminal: where to draw; None draws nothing.
        clock: seconds, in place of the real clock.
        say: prints a line.
    """

    def __init__(
        self,
        what: str,
        terminal: TextIO | None,
        clock: Callable[[], float] = time.monotonic,
        say: Callable[[str], None] = print,
    ) -> None:
        self._what = what
        self._terminal = terminal
        self._clock = clock
        self._say = say
        self._started: tuple[float, int] | None = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._terminal is not None:
            self._clear()
            if self._terminal not in (sys.stdout, sys.stderr):
                self._terminal.close()

    def __call__(self, line: str) -> None:
        """Print a line; one that says which process or configuration has begun moves the bar."""
        if self._terminal is not None:
            self._clear()
        self._say(line)
        step = STEP.match(line)
        if step and self._terminal is not None:
            self._draw(step[1], int(step[2]), int(step[3]))

    def _draw(self, unit: str, number: int, total: int) -> None:
        now = self._clock()
        if self._started is None:
            self._started = (now, number)  # a run that goes on from its journal begins in the middle
        since, first = self._started
        left = ""
        if number > first:
            left = f", {_duration((now - since) / (number - first) * (total - number + 1))} left"
        done = round(WIDTH * (number - 1) / total)
        bar = "#" * done + "." * (WIDTH - done)
        text = f"{self._what} [{bar}] {unit} {number} of {total}{left}"
        self._write("\r" + text[: shutil.get_terminal_size().columns - 1])

    def _clear(self) -> None:
        self._write("\r" + " " * (shutil.get_terminal_size().columns - 1) + "\r")

    def _write(self, text: str) -> None:
        assert self._terminal is not None
        try:
            self._terminal.write(text)
            self._terminal.flush()
        except OSError:
            self._terminal = None  # the terminal went away; the measurement does not


def terminal() -> TextIO | None:
    """Where a bar may be drawn: this process's own terminal, the one that controls it, or None."""
    if os.environ.get("CI"):
        return None
    if sys.stdout.isatty():
        return sys.stdout
    try:
        return open("/dev/tty", "w", encoding="utf-8")
    except OSError:
        return None


def _duration(seconds: float) -> str:
    whole = max(1, round(seconds))
    return f"{whole} s" if whole < 100 else f"{round(whole / 60)} min"
