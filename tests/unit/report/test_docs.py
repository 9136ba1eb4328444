"""docs/table.md is made from the columns, and the verdicts that the docs explain are those that there are."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("material")
    pytest.importorskip("vl_convert")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        command, cwd=DOCS.parent, capture_output=True, text=True, timeout=300, env=environment, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for page in ("getting-started", "reading-the-report", "table", "method", "gallery"):
        assert (tmp_path / "site" / page / "index.html").is_file()
    # Fonts and scripts are on the site itself.
    text = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert re.findall(r'(?:src|href)="https?://(?!squidfunk)[^"]+"', text) == []
