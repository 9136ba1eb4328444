"""docs/predict.md gives the constants that the code has."""

from __future__ import annotations

import re

from predicted_builds import REPOSITORY

from kernelab.predict.machine import WRITE_BACK

PAGE = (REPOSITORY / "docs" / "predict.md").read_text(encoding="utf-8")


def test_the_page_charges_loads_as_the_model_does() -> None:
    (row,) = [line for line in PAGE.splitlines() if line.startswith("| a load from shared memory takes")]
    value = row.split("|")[2]
    told = {}
    for kind, width, cycles in re.findall(r"(LDS|LDSM)\.x?(\d+) ([\d.]+)", value):
        told[kind, int(width) * (32 if kind == "LDSM" else 1)] = float(cycles)
    assert told == WRITE_BACK
