"""What one probe found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warn", "missing"]


@dataclass(frozen=True)
class Finding:
    """One thing about this machine.

    Attributes:
        name: what was looked at.
        state: `ok`; `warn` where results will be fewer or worse; `missing` where what the config asks for cannot run.
        detail: what is there, or what follows from its absence.
        fix: what to do about it; empty where there is nothing to do.
    """

    name: str
    state: State
    detail: str
    fix: str = ""


def ready(findings: list[Finding]) -> bool:
    """Whether everything that the config needs is there."""
    return all(finding.state != "missing" for finding in findings)
