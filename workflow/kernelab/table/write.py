"""table.csv as text: the documented columns in order, stable to the byte for the same records."""

from __future__ import annotations

import csv
import io
from typing import Any

from kernelab.table.columns import COLUMNS

SIGNIFICANT = 6


def table_csv(rows: list[dict[str, Any]]) -> str:
    """The text of table.csv.

    Numbers have six significant digits, booleans are true and false, and an empty cell means not measured.
    Rows keep the plan's order. Problem variables without a column of their own are in `problem` alone.
    """
    out = io.StringIO()
    names = [column.name for column in COLUMNS]
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow([_cell(row.get(name)) for name in names])
    return out.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.{SIGNIFICANT}g}"
    return str(value)
