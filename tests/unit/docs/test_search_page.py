"""docs/search.md names every column, status and key there is, and its example is a search that can be planned."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from snapshot_figures import FRONTIER, ROOT, SNAPSHOT, rows_of, unchecked, with_interval

from kernelab.device.identify import EMULATED
from kernelab.plan.config import Search
from kernelab.plan.load import load_plan
from kernelab.plan.space import Space
from kernelab.records.search import COLUMNS as SEARCH_COLUMNS
from kernelab.records.search import STATUSES
from kernelab.search.tabulate import COLUMNS as SEARCHES_COLUMNS

PAGE = (ROOT / "docs/search.md").read_text()
README = (ROOT / "README.md").read_text()


def cells(heading: str) -> set[str]:
    """What stands in backticks in the first column of the tables below a heading."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line.split("|")[1] for line in section.splitlines() if line.startswith("|")]
    return {name for cell in lines for name in re.findall(r"`(\w+)`", cell)}


def test_every_column_and_status_is_explained() -> None:
    assert cells("Read it") == {*SEARCH_COLUMNS, *SEARCHES_COLUMNS, *STATUSES}


def test_every_default_is_the_models() -> None:
    shown = dict(re.findall(r"^\| `(\w+)` \| `?(\w+)`? \|", PAGE.partition("## Run it")[0], re.MULTILINE))
    assert shown == {
        name: f"{field.default:g}" if isinstance(field.default, float) else str(field.default)
        for name, field in Search.model_fields.items()
        if name in ("sampler", "configurations", "budget_s", "confirm", "seed")
    }


def test_the_real_searches_are_the_snapshots() -> None:
    section = PAGE.partition("\n## Two searches on an H200\n")[2].partition("\n## ")[0]
    records = [
        json.loads(next(FRONTIER.glob(f"*/search/{name}.json")).read_text(encoding="utf-8"))
        for name in ("seed_a_space", "spare_warps")
    ]
    wall = [record["seconds"] for record in records]
    counts = [record["counts"] for record in records]
    lines = [
        "| base | " + " | ".join(f"`{record['base'].partition('/')[0]}`" for record in records) + " |",
        "| configurations built and raced; excluded | "
        + " | ".join(f"{count['raced']}; {count['excluded']}" for count in counts)
        + " |",
        "| seconds in all, 16 cores | " + " | ".join(f"{took['total']:.1f}" for took in wall) + " |",
        "| build, check, race (they overlap) | "
        + " | ".join(f"{took['build']:.1f}, {took['check']:.1f}, {took['race']:.1f}" for took in wall)
        + " |",
    ]
    winners = rows_of("searches.csv", FRONTIER)
    lines += [
        f"| `{row['search']}` | {row['rank']} | {with_interval(row)} | {row['verdict']} "
        f"| {float(row['search_ratio']):.4f} | `{row['configuration']}` |"
        for row in winners[:5]
    ]
    assert [line for line in lines if line not in section.splitlines()] == []
    best = winners[0]
    facts = [f"worth {100.0 - 100.0 * float(best['ratio']):.0f}%", "the margin of 1%"]
    assert unchecked(section, lines, facts) == []
    assert all(count["built"] == count["raced"] for count in counts)


def test_the_run_beside_kernel_tuner_is_the_snapshots() -> None:
    section = PAGE.partition("\n## Beside kernel_tuner\n")[2].partition("\n## ")[0]
    rows = {row["figure"]: row for row in rows_of("benchmarks/search_against_kernel_tuner.csv", SNAPSHOT)}
    value = {figure: float(row["value"]) for figure, row in rows.items() if row["unit"] == "s"}
    theirs = rows["kernel_tuner, wall"]
    assert value["kernelab, cold"] / value["kernel_tuner, wall"] < 0.105  # "a tenth"
    lines = [
        f"| kernel_tuner 1.5, `tune_kernel` alone | over {value['kernel_tuner, wall']:.1f}: {theirs['note']} |",
        f"| `python -m kernelab search`, the whole command | {value['kernelab, cold']:.1f} |",
        f"| the floor: its compiles one by one, over the cores | {value['compiles one by one, over the cores: the floor']:.1f} |",
        f"| the same command with nothing new | {value['kernelab, again']:.2f} |",
    ]
    assert [line for line in lines if line not in section.splitlines()] == []
    over = rows["kernelab, cold over floor"]
    facts = [f"{float(over['value']):.2f} times the floor", "aims: 18 s, and 1.3", "an H200 with 16\ncores"]
    assert unchecked(section, lines, facts) == []


@pytest.mark.parametrize("text", [PAGE, README], ids=["docs", "README"])
def test_the_example_can_be_planned(text: str) -> None:
    (block,) = [b for b in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL) if b.startswith("search:")]
    plan = load_plan(ROOT, lambda _: EMULATED, yaml.safe_load(block))
    valid = [point for point in Space.of(plan, "tiles").points() if not point.excluded]
    assert len(valid) > 4
