"""The worker's side of the watchdog: every wait is announced with its limit before it begins."""

from __future__ import annotations

import os
from typing import Protocol

from kernelab.timing.job import Announcement, Fault


class Progress(Protocol):
    """Where announcements go."""

    def announce(self, step: str, member: str, limit_s: float) -> None:
        """What is about to happen, to which member (empty: none), and how long it may take in s."""


class PipeProgress:
    """Announcements as lines of JSON on a file descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def announce(self, step: str, member: str, limit_s: float) -> None:
        self._write(Announcement(step=step, member=member, limit_s=limit_s).model_dump_json())

    def fail(self, fault: Fault) -> None:
        """The last line of a worker that an arm has brought down."""
        self._write(fault.model_dump_json())

    def _write(self, line: str) -> None:
        os.write(self._descriptor, line.encode() + b"\n")
