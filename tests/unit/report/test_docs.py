"""docs/table.md is made from the columns, and the verdicts that the docs explain are those that there are."""

from __future__ import annotations

import re
from pathlib import Path

from kernelab.records.compare import VERDICTS
from kernelab.table.columns import columns_markdown

DOCS = Path(__file__).parents[3] / "docs"
HEAD = """\
# The columns of table.csv

One row per experiment and arm. An empty cell means not measured: no model ever fills a column meant for a measurement.
This page is made from `workflow/kernelab/table/columns.py`; a test keeps it current.

"""


def test_the_table_of_columns_is_current() -> None:
    assert (DOCS / "table.md").read_text(encoding="utf-8") == HEAD + columns_markdown()


def test_every_verdict_is_explained() -> None:
    text = (DOCS / "reading-the-report.md").read_text(encoding="utf-8")
    table = text.partition("## Verdicts")[2].partition("\n## ")[0]
    assert set(
        re.findall(
            r"`(\w+)`", "".join(line.split("|")[1] for line in table.splitlines() if line.startswith("| `"))
        )
    ) == set(VERDICTS)
