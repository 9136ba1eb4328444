"""kernelab as a Snakemake module of another repository, and the project that `init` writes, which is one."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from workflow_project import ALONE, CATALOGUE, CONFIG, HEADER, LEFT, OPERATION, RIGHT, ROOT, Project

SNAKEFILE = """\
configfile: "more.yaml"


module kernelab:
    snakefile:
        {workflow!r}
    config:
        {{}}


use rule * from kernelab as kernelab_*


rule count:
    default_target: True
    input:
        rules.kernelab_table.output,
    output:
        "count.txt",
    shell:
        "wc -l < {{input}} > {{output}}"
"""


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A second repository with kernels, config and rules of its own; kernelab is not in it."""
    files = {
        "Snakefile": SNAKEFILE.format(workflow=str(ROOT / "workflow" / "Snakefile")),
        "more.yaml": "mine: 1\n",
        "config.yaml": CONFIG,
        "kernels/scale/kernels.yaml": CATALOGUE,
        "kernels/scale/operation.py": OPERATION,
        "kernels/scale/common/product.cuh": HEADER,
        "kernels/scale/left.cu": LEFT,
        "kernels/scale/right.cu": RIGHT,
        "kernels/scale/alone.cu": ALONE,
    }
    for name, text in files.items():
        path = tmp_path / "other" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "other"


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        env=environment,
        check=False,
    )


def test_from_a_second_repository(other: Path) -> None:
    done = run(other, "snakemake", "--cores", "2", "--nocolor")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = list(csv.DictReader((other / "results" / "table.csv").open()))
    assert {row["correct"] for row in rows} == {"true"}
    assert {row["experiment"] for row in rows} == {"unroll", "versus", "alone"}
    assert (other / "count.txt").read_text().strip() == str(len(rows) + 1)
    again = run(other, "snakemake", "--cores", "2", "--nocolor")
    assert "Nothing to be done" in again.stdout + again.stderr


def test_a_comment_rebuilds_nothing_there_either(other: Path) -> None:
    assert run(other, "snakemake", "--cores", "2", "--nocolor").returncode == 0
    alone = other / "kernels" / "scale" / "alone.cu"
    alone.write_text("// a comment\n" + alone.read_text())
    dry = run(other, "snakemake", "-n", "--cores", "2", "--nocolor")
    assert "kernelab_build" not in dry.stdout
    alone.write_text(alone.read_text().replace("s * x[i]", "x[i] * s * 1.0f"))
    dry = run(other, "snakemake", "-n", "--cores", "2", "--nocolor")
    assert "kernelab_build" in dry.stdout


def test_a_new_project_runs_at_once(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "workflow")}
    command = [sys.executable, "-m", "kernelab"]
    made = subprocess.run(
        [*command, "init", "mine"], cwd=tmp_path, capture_output=True, text=True, env=environment, check=False
    )
    assert made.returncode == 0, made.stderr
    mine = tmp_path / "mine"
    added = subprocess.run(
        [*command, "new-experiment", "wide", "--base", "axpy", "--vary", "ELEMENTS=1,8"],
        cwd=mine,
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert added.stdout == "config.yaml: wide: 2 arms, 1 comparisons; run snakemake results/report.html\n", (
        added.stderr
    )
    done = run(mine, "snakemake", "--nocolor", "--config", "device=emulated")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = list(csv.DictReader((mine / "results" / "table.csv").open()))
    assert {row["correct"] for row in rows} == {"true"}
    assert {row["experiment"] for row in rows} == {"elements", "vector", "wide"}
    refused = subprocess.run(
        [*command, "init", "mine"], cwd=tmp_path, capture_output=True, text=True, env=environment, check=False
    )
    assert (refused.returncode, refused.stderr) == (1, "kernelab: mine: is not empty; name a new folder\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("versus", "--base", "left", "--vary", "UNROLL=1,2"),
            r"config\.yaml:\d+: experiments\.versus: is already there; choose another name",
        ),
        (
            ("x", "--base", "left", "--vary", "UNROL=1,2"),
            r"UNROL is no variable of left; did you mean UNROLL\?",
        ),
        (("x", "--base", "left", "--vary", "UNROLL"), r"--vary UNROLL: write the variable and its levels"),
        (("x y", "--base", "left", "--vary", "UNROLL=1,2"), r"x y: not a name"),
    ],
)
def test_a_wrong_experiment_leaves_the_file_as_it_was(
    project: Project, arguments: tuple[str, ...], message: str
) -> None:
    before = project.read("config.yaml")
    done = project.kernelab("new-experiment", *arguments)
    assert done.returncode == 1
    assert re.search(message, done.stderr)
    assert project.read("config.yaml") == before


def test_a_new_experiment_keeps_comments_and_sections(project: Project) -> None:
    project.write("config.yaml", CONFIG + "# about claims\nclaims: {}\n")
    done = project.kernelab(
        "new-experiment",
        "more",
        "--base",
        "left",
        "--base",
        "right",
        "--vary",
        "l2=cold,hot",
        "--question",
        'is "hot": faster?',
    )
    assert done.returncode == 0, done.stderr
    text = project.read("config.yaml")
    assert text.startswith(CONFIG)
    assert text.endswith("# about claims\nclaims: {}\n")
    assert '\n  more:\n    question: "is \\"hot\\": faster?"\n    bases: ["left", "right"]\n' in text
