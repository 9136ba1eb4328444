"""Searches as jobs: what an edit makes again, what no edit touches, and what is said where there is no GPU."""

from __future__ import annotations

import csv
import json
import os
import shutil
from pathlib import Path

import pytest
from workflow_project import CONFIG, Job, Project

from kernelab.digests import Digests
from kernelab.plan.arms import Device
from kernelab.plan.load import load_plan
from kernelab.records.layout import Layout

SEARCH = """\
search:
  sizes:
    question: Which block is best?
    base: alone
    over: {BLOCK: [64, 128]}
"""
TARGET = "results/searches.csv"
TABLE: set[Job] = {("searches", "")}
SEARCHED: set[Job] = {("search", "sizes")} | TABLE
BASE: set[Job] = {("build", "alone default"), ("check", "emulated alone default small")}
CARD = "somebodys-card-12345678"


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose search has run."""
    project = Project(tmp_path_factory.mktemp("searched") / "project")
    project.write("config.yaml", CONFIG + SEARCH)
    run = project.snakemake(TARGET)
    assert run.status == 0, run.output
    assert run.jobs == BASE | SEARCHED
    return project.root


@pytest.fixture
def search(searched: Path, tmp_path: Path) -> Project:
    """A fresh copy of it."""
    copy = Project.__new__(Project)
    copy.root = tmp_path / "project"
    shutil.copytree(searched, copy.root, symlinks=True)
    return copy


def expect(project: Project, jobs: set[Job]) -> None:
    """A run does exactly these jobs, and then nothing is left to do."""
    run = project.snakemake(TARGET)
    assert run.status == 0, run.output
    assert run.jobs == jobs
    if jobs:
        assert project.snakemake("-n", TARGET).jobs == set()


def rows(project: Project, name: str) -> list[dict[str, str]]:
    with (project.root / "results" / name).open(newline="") as stream:
        return list(csv.DictReader(stream))


def add_a_level(project: Project) -> None:
    project.edit(
        "kernels/scale/kernels.yaml",
        "levels: [64, 128], about: threads",
        "levels: [64, 128, 256], about: threads",
    )
    project.edit("config.yaml", "over: {BLOCK: [64, 128]}", "over: {BLOCK: [64, 128, 256]}")


def test_without_a_gpu_every_row_says_why_nothing_was_measured(search: Project) -> None:
    assert [(r["configuration"], r["status"]) for r in rows(search, "emulated/search/sizes.csv")] == [
        ("default", "not_measured"),
        ("BLOCK=128", "not_measured"),
    ]
    assert all(r["note"] and r["registers"] for r in rows(search, "emulated/search/sizes.csv"))
    (row,) = rows(search, "searches.csv")
    assert (row["search"], row["verdict"], row["ratio"]) == ("sizes", "not_measured", "")
    assert row["note"].startswith("no GPU on this machine")
    assert (row["points"], row["built"], row["raced"]) == ("2", "2", "0")
    assert not (search.root / "results/emulated/search/sizes.confirmed.json").exists()


def test_the_tables_are_shown(search: Project) -> None:
    assert "not_measured" in search.kernelab("searches").stdout
    shown = search.kernelab("searches", "sizes", "--where", "configuration~128", "--format", "csv").stdout
    assert [row["configuration"] for row in csv.DictReader(shown.splitlines())] == ["BLOCK=128"]
    assert "size.csv: not made yet" in search.kernelab("searches", "size").stderr


def test_nothing_to_do(search: Project) -> None:
    expect(search, set())


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("kernels/scale/alone.cu", "y[i] = s * x[i];", "y[i] = s * x[i]; // one product"),
        ("kernels/scale/operation.py", "def reference", "# note\n\n\ndef reference"),
        ("config.yaml", "over: {BLOCK", "over: # a comment\n      {BLOCK"),
        ("config.yaml", "Does unrolling help?", "Does it help to unroll?"),
        ("kernels/scale/right.cu", "product(x[i], s)", "product(s, x[i])"),
    ],
)
def test_an_edit_that_no_configuration_depends_on_searches_nothing(
    search: Project, file: str, old: str, new: str
) -> None:
    search.edit(file, old, new)
    expect(search, set())


def test_touched_files_search_nothing(search: Project) -> None:
    for path in (*(search.root / "kernels").rglob("*.cu"), *(search.root / "results").rglob("*")):
        os.utime(path)
    expect(search, set())


def test_a_level_added_compiles_that_level_alone(search: Project) -> None:
    before = {p: p.stat().st_mtime_ns for p in (search.root / "results/compiled").rglob("kernel.cubin")}
    add_a_level(search)
    expect(search, SEARCHED)
    after = {p: p.stat().st_mtime_ns for p in (search.root / "results/compiled").rglob("kernel.cubin")}
    assert before.items() <= after.items()
    assert len(after) == len(before) + 1
    assert [r["configuration"] for r in rows(search, "emulated/search/sizes.csv")] == [
        "default",
        "BLOCK=128",
        "BLOCK=256",
    ]


def test_a_kernel_edit_searches_again(search: Project) -> None:
    digests = {r["build_digest"] for r in rows(search, "emulated/search/sizes.csv")}
    search.edit("kernels/scale/alone.cu", "y[i] = s * x[i]", "y[i] = x[i] * s + 0.0f")
    expect(search, BASE | SEARCHED)
    assert digests.isdisjoint(r["build_digest"] for r in rows(search, "emulated/search/sizes.csv"))


def test_another_wording_of_the_question_remakes_the_table_alone(search: Project) -> None:
    search.edit("config.yaml", "Which block is best?", "Which one?")
    expect(search, TABLE)
    assert rows(search, "searches.csv")[0]["question"] == "Which one?"


@pytest.mark.parametrize("name", ["sizes.csv", "sizes.json", "sizes.samples.csv.gz"])
def test_a_deleted_result_is_made_again(search: Project, name: str) -> None:
    path = search.root / "results/emulated/search" / name
    path.unlink()
    expect(search, SEARCHED)
    assert path.is_file()


def test_a_deleted_table_is_made_again(search: Project) -> None:
    (search.root / TARGET).unlink()
    expect(search, TABLE)


def test_a_lost_snakemake_folder_searches_nothing(search: Project) -> None:
    shutil.rmtree(search.root / ".snakemake")
    expect(search, set())


@pytest.mark.parametrize("edit", ["level", "kernel"])
def test_a_lost_snakemake_folder_does_not_hide_an_edit(search: Project, edit: str) -> None:
    shutil.rmtree(search.root / ".snakemake")
    if edit == "level":
        add_a_level(search)
    else:
        search.edit("kernels/scale/alone.cu", "y[i] = s * x[i]", "y[i] = x[i] * s + 0.0f")
    expect(search, SEARCHED if edit == "level" else BASE | SEARCHED)


def test_no_table_runs_a_search(project: Project) -> None:
    """`project` has its tables. A search that is declared, made or widened moves none of them."""
    project.write("config.yaml", project.read("config.yaml") + SEARCH)
    assert project.snakemake("-n", "results/table.csv", "results/report.html").jobs <= {("report", "")}
    assert project.snakemake("-n").jobs <= {("report", "")}
    expect(project, SEARCHED)
    project.edit("config.yaml", "over: {BLOCK: [64, 128]}", "over: {BLOCK: [128, 64]}")
    assert project.snakemake("-n", "results/table.csv").jobs == set()


def test_a_project_without_searches_has_an_empty_table_of_them(project: Project) -> None:
    expect(project, TABLE)
    assert rows(project, "searches.csv") == []


def test_a_snapshot_keeps_what_was_searched(search: Project) -> None:
    search.write("results/table.csv", "experiment\n")
    done = search.kernelab("snapshot", "--out", "kept")
    assert done.returncode == 0, done.stderr
    kept = {path.relative_to(search.root / "kept").as_posix() for path in (search.root / "kept").rglob("*.*")}
    assert {f"emulated/search/sizes{end}" for end in (".csv", ".json", ".samples.csv.gz")} <= kept
    assert "searches.csv" in kept
    assert not [name for name in kept if "compiled" in name or name.endswith((".jsonl", ".cubin"))]


class OnACard:
    """The same project as a machine with a card sees it: one that results/ has timings of. Nothing runs; jobs are planned."""

    def __init__(self, project: Project) -> None:
        self.project = project
        card = {"name": "Somebody's card", "arch": "sm_86", "uuid": "GPU-12345678"}
        project.write(f"results/{CARD}/timing/old.json", json.dumps({"card": card}))
        device = Device(id=CARD, kind="gpu", **card)
        self.plan = load_plan(project.root, lambda _: device)
        self.layout = Layout(project.root / "results", CARD)

    def jobs(self) -> set[Job]:
        run = self.project.snakemake("-n", TARGET, "--config", f"device={CARD}")
        assert run.status == 0, run.output
        return run.jobs

    def finish(self) -> None:
        """Leave the records that the jobs would."""
        digests, layout = Digests(self.plan, self.project.root), self.layout
        for problem in ("small", "long"):
            record: dict[str, object] = {"digest": digests.check("alone/default", problem, CARD)}
            self._write(layout.check("alone/default", problem, CARD), record)
        for path in (layout.search("sizes"), layout.search_samples("sizes")):
            self._write(path, {})
        self._write(layout.search_record("sizes"), {"digest": digests.search("sizes")})
        self._write(layout.confirmed("sizes"), {"digest": digests.confirm("sizes")})
        self._write(layout.searches, {})
        # Snakemake knows nothing of these files, least of all that the table was made for another device.
        for path in (self.project.root / ".snakemake/metadata").iterdir():
            path.unlink()

    def _write(self, path: Path, record: dict[str, object]) -> None:
        self.project.write(path.relative_to(self.project.root).as_posix(), json.dumps(record))


CONFIRMED = SEARCHED | {("confirm", "sizes")}


def test_on_a_card_the_best_are_confirmed(search: Project) -> None:
    checks = {("check", f"{CARD} alone default {problem}") for problem in ("small", "long")}
    assert OnACard(search).jobs() == CONFIRMED | checks


def test_on_a_card_only_what_is_missing_or_of_other_settings_is_made_again(search: Project) -> None:
    card = OnACard(search)
    card.finish()
    assert card.jobs() == set()
    card.layout.confirmed("sizes").unlink()
    assert card.jobs() == {("confirm", "sizes")} | TABLE
    card.finish()
    card.layout.search("sizes").unlink()
    assert card.jobs() == CONFIRMED
    card.finish()
    shutil.rmtree(search.root / ".snakemake")
    assert card.jobs() == set()
    add_a_level(search)
    assert card.jobs() == CONFIRMED


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("confirm", "sizes"), "confirm sizes: needs a GPU, but the plan's device is emulated"),
        (("confirm", "size"), "size: no search of config.yaml; did you mean sizes?"),
        (("search", "size"), "size: no search of config.yaml; did you mean sizes?"),
        (("keep", "sizes", "--as", "best"), "sizes.csv"),
    ],
)
def test_a_mistake_is_one_line(search: Project, arguments: tuple[str, ...], reason: str) -> None:
    done = search.kernelab(*arguments)
    assert done.returncode == 1
    assert reason in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (
            "BLOCK: [64, 128]}\n",
            "BLOK: [64, 128]}\n",
            "over.BLOK: is no parameter of alone; did you mean BLOCK?",
        ),
        ("base: alone\n    over", "base: alon\n    over", "alon is no kernel"),
        ("BLOCK: [64, 128]}\n", "BLOCK: [64, 96]}\n", "96 is not a level"),
    ],
)
def test_a_search_that_cannot_be_is_refused_before_anything_runs(
    search: Project, old: str, new: str, reason: str
) -> None:
    text = search.read("config.yaml")
    head, _, tail = text.partition("search:")
    assert old in tail
    search.write("config.yaml", f"{head}search:{tail.replace(old, new)}")
    run = search.snakemake("-n", TARGET)
    assert run.status != 0
    assert "Traceback" not in run.output
    (line,) = [line for line in run.output.splitlines() if line.startswith("kernelab:")]
    assert "config.yaml:" in line
    assert reason in line
