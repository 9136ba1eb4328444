"""Every example of docs/declaring-an-experiment.md, run by real Snakemake on a copy of the repository, without a GPU."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kernelab.device.identify import EMULATED
from kernelab.plan import strict_yaml
from kernelab.plan.load import load_plan
from kernelab.plan.space import Space

ROOT = Path(__file__).parents[2]
DOC = (ROOT / "docs/declaring-an-experiment.md").read_text()
BLOCKS = [
    strict_yaml.parse(text, "example").data for text in re.findall(r"```yaml\n(.*?)```", DOC, re.DOTALL)
]
SECTIONS = ("claims", "search")
EXAMPLES: dict[str, Any] = {
    name: body for block in BLOCKS for name, body in block.items() if name not in SECTIONS
}
CLAIMS, SEARCHES = (next(block[name] for block in BLOCKS if name in block) for name in SECTIONS)
CONFIG = """\
device: emulated
problems:
  square_4096: {m: 4096, n: 4096, k: 4096, alpha: 1.0, beta: 0.0}
  square_1024: {m: 1024, n: 1024, k: 1024, alpha: 1.0, beta: 0.0}
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("examples")
    ignore = shutil.ignore_patterns("__pycache__")
    for folder in ("workflow", "profiles", "envs", "kernels/sgemm"):
        shutil.copytree(ROOT / folder, root / folder, ignore=ignore)
    shutil.copy(ROOT / "Snakefile", root)
    # JSON is YAML: the examples go in as they were read.
    (root / "config.yaml").write_text(
        CONFIG
        + f"experiments: {json.dumps(EXAMPLES)}\nclaims: {json.dumps(CLAIMS)}\nsearch: {json.dumps(SEARCHES)}\n"
    )
    command = [
        sys.executable,
        "-m",
        "snakemake",
        "--nocolor",
        "results/comparisons.csv",
        "results/claims.csv",
    ]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=900, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return root / "results"


def rows(results: Path, name: str) -> list[dict[str, str]]:
    with (results / f"{name}.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_there_are_seven_examples_and_a_search(results: Path) -> None:
    six = ["launch_bounds", "sizes", "waterfall", "padding", "interplay", "three_rungs"]
    assert list(EXAMPLES) == [*six, "tuned_points"]
    plan = load_plan(results.parent, lambda _: EMULATED)
    assert Space.of(plan, "tiles").size == 32
    assert not (results / "emulated" / "search").exists()  # no table runs a search


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("launch_bounds", 1),
        ("sizes", 2),
        ("waterfall", 5),
        ("padding", 2),
        ("interplay", 4),
        ("three_rungs", 2),
        ("tuned_points", 2),
    ],
)
def test_an_example_is_judged_and_not_refused(results: Path, name: str, count: int) -> None:
    found = [row for row in rows(results, "comparisons") if row["experiment"] == name]
    assert len(found) == count
    for row in found:
        assert row["verdict"] in ("not_measured", "identical_code")
        assert row["device"] == "emulated"
        assert "undeclared" not in row["control_facts_changed"]
        assert row["ratio"] == ""  # no model ever fills a column meant for a measurement


def test_what_is_known_without_a_card_is_said(results: Path) -> None:
    padding = [row for row in rows(results, "comparisons") if row["experiment"] == "padding"]
    assert all("lds_64 0 -> " in row["outcomes_changed"] for row in padding)
    assert all("emu_shared_store_wavefronts" in row["outcomes_changed"] for row in padding)
    tile = next(row for row in rows(results, "comparisons") if row["variable"] == "tile")
    assert tile["composite"] == "true"
    assert "registers " in tile["outcomes_changed"]


def test_designs_say_what_they_add(results: Path) -> None:
    def record(name: str) -> Any:
        return json.loads((results / f"emulated/compare/{name}.json").read_text())

    assert [asked["change"] for asked in record("padding")["same_question"]] == ["A_PAD: 0 -> 2"]
    assert record("interplay")["effects_note"] == "nothing was timed"
    assert "tokens go" in record("sizes")["comparisons"][0]["source_diff"]
    steps = [pair["variable"] for pair in record("waterfall")["comparisons"]]
    assert steps == ["tile", "A_PAD", "steps 1 to 2", "MIN_BLOCKS", "steps 1 to 3"]


def test_the_example_of_a_claim(results: Path) -> None:
    (claim,) = rows(results, "claims")
    assert (claim["claim"], claim["claimed"], claim["claimed_metric"]) == ("B4", "0.96", "time (arm/base)")
    assert claim["status"] in ("not_measured", "no_effect")
