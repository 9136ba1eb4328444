"""Findings as a table for people, lines for a log, or JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import IO

from kernelab.doctor.finding import Finding, ready

COLOURS = {"ok": "green", "warn": "yellow", "missing": "bold red"}


def as_json(findings: list[Finding]) -> str:
    """`{"ready": ..., "findings": [{name, state, detail, fix}]}`, in the order of the table."""
    return (
        json.dumps(
            {"ready": ready(findings), "findings": [asdict(finding) for finding in findings]}, indent=1
        )
        + "\n"
    )


def as_text(findings: Sequence[Finding]) -> str:
    """A line per finding, and its fix below it."""
    width = max(len(finding.name) for finding in findings)
    lines = []
    for finding in findings:
        lines.append(f"{finding.state:<8}{finding.name:<{width}}  {finding.detail}")
        if finding.fix:
            lines.append(f"{'':8}{'':{width}}  -> {finding.fix}")
    return "\n".join([*lines, summary(findings)]) + "\n"


def print_table(findings: Sequence[Finding], file: IO[str]) -> None:
    """The same in colour, wrapped to the terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for finding in findings:
        detail = Text(finding.detail)
        if finding.fix:
            detail.append(f"\n-> {finding.fix}", style="cyan")
        table.add_row(Text(finding.state, style=COLOURS[finding.state]), finding.name, detail)
    console = Console(file=file, highlight=False)
    console.print(table)
    console.print(Text(summary(findings), style="bold"))


def summary(findings: Sequence[Finding]) -> str:
    """The last line: whether the config can run, and how much of it."""
    count = {state: sum(finding.state == state for finding in findings) for state in COLOURS}
    if count["missing"]:
        return f"not ready: {count['missing']} missing, {count['warn']} to know of"
    return "ready" + (f": {count['warn']} to know of" if count["warn"] else "")
