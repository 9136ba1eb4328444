"""Clocks left locked by a killed run: the marker, without a card."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelab.device.clocks import left_locked, locked_clocks, repair_clocks
from kernelab.device.lock import ENVIRONMENT, lock_folder
from kernelab.device.nvml import Monitor

UUID = "GPU-00000000-0000-0000-0000-000000000000"


class Card(Monitor):
    """A monitor whose card takes every clock setting and remembers it."""

    def __init__(self, refusal: str = "") -> None:
        self.uuid, self.refusal, self.clock = UUID, refusal, 0

    def set_locked_clocks(self, mhz: int | None) -> str:
        if not self.refusal:
            self.clock = mhz or 0
        return self.refusal


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path))


def test_clocks_are_freed_and_the_marker_goes() -> None:
    card = Card()
    with locked_clocks(card, 1400) as refusal:
        assert refusal == ""
        assert card.clock == 1400
        left = left_locked(UUID)
        assert left is not None
        assert (left.mhz, left.pid, left.alive) == (1400, os.getpid(), True)
        assert repair_clocks(card) == ""  # they are in use
        assert card.clock == 1400
    assert card.clock == 0
    assert left_locked(UUID) is None


def test_clocks_are_freed_after_an_exception() -> None:
    card = Card()
    with pytest.raises(ZeroDivisionError), locked_clocks(card, 1400):
        raise ZeroDivisionError
    assert card.clock == 0
    assert left_locked(UUID) is None


def test_a_refusal_is_said_and_leaves_no_marker() -> None:
    with locked_clocks(Card("no permission"), 1400) as refusal:
        assert refusal == "no permission"
    assert left_locked(UUID) is None


def test_a_killed_run_is_seen_and_repaired() -> None:
    # A process that is gone, and its number with another start time.
    gone = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    for pid, started in ((int(gone.stdout), "1"), (os.getpid(), "1")):
        (lock_folder() / f"{UUID}.clocks").write_text(
            json.dumps({"mhz": 1200, "pid": pid, "started": started})
        )
        left = left_locked(UUID)
        assert left is not None
        assert not left.alive
        helpless = repair_clocks(Card("no permission"))
        assert "cannot be freed: no permission" in helpless
        assert left_locked(UUID) is not None
        card = Card()
        card.clock = 1200
        assert "freed the SM clock" in repair_clocks(card)
        assert card.clock == 0
        assert left_locked(UUID) is None


def test_a_damaged_marker_counts_as_left_locked() -> None:
    (lock_folder() / f"{UUID}.clocks").write_text("{")
    left = left_locked(UUID)
    assert left is not None
    assert not left.alive
