"""Only what an edit affects is rebuilt: the exact set of jobs after each kind of edit."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from workflow_project import Job, Project

TABLE: Job = ("table", "")
PLAN: Job = ("plan", "")
# A new verdict, or a new plan, makes the tables anew.
TABLES = {TABLE, ("comparisons", ""), ("claims", "")}


def of(key: str) -> set[Job]:
    """The jobs that hang on one build, the table left out."""
    return {("build", key), ("check", f"emulated {key} small")}


def verdicts(*experiments: str) -> set[Job]:
    """The comparisons of some experiments, and the tables that follow."""
    return {("compare", experiment) for experiment in experiments} | TABLES


LEFT = of("left default") | of("left UNROLL=2")
RIGHT = of("right default")
ALONE = of("alone default") | of("alone BLOCK=128")
ALL = ("unroll", "versus", "alone")


def expect(project: Project, jobs: set[Job]) -> None:
    """A dry run announces exactly these jobs, a real run does them, and then nothing is left to do."""
    assert project.snakemake("-n", "results/table.csv").jobs == jobs
    run = project.snakemake()
    assert run.status == 0, run.output
    assert run.jobs == jobs
    assert project.snakemake("-n", "results/table.csv").jobs == set()


def test_first_run_makes_everything(tmp_path_factory: pytest.TempPathFactory) -> None:
    project = Project(tmp_path_factory.mktemp("first") / "project")
    expect(project, LEFT | RIGHT | ALONE | verdicts(*ALL) | {PLAN, ("toolchain", "")})


def test_nothing_to_do(project: Project) -> None:
    expect(project, set())


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("kernels/scale/left.cu", "// one element", "// exactly one element"),
        ("kernels/scale/left.cu", "    int i", "        int   i"),
        ("kernels/scale/common/product.cuh", "// one product", "/* one\n product */"),
        ("kernels/scale/operation.py", '"""y = s x"""', '"""y = s * x"""  # note'),
        ("config.yaml", "device: emulated", "device: emulated # a comment"),
    ],
)
def test_a_comment_rebuilds_nothing(project: Project, file: str, old: str, new: str) -> None:
    if file.endswith(".py"):
        # A docstring is part of the syntax tree; a comment is not.
        old, new = "def reference", "# note\n\n\ndef reference"
    project.edit(file, old, new)
    expect(project, set())


@pytest.mark.parametrize(
    "file",
    [
        "kernels/scale/left.cu",
        "kernels/scale/common/product.cuh",
        "kernels/scale/kernels.yaml",
        "config.yaml",
    ],
)
def test_a_touched_file_rebuilds_nothing(project: Project, file: str) -> None:
    os.utime(project.root / file)
    expect(project, set())


def test_touched_results_rebuild_nothing(project: Project) -> None:
    for path in (project.root / "results").rglob("*"):
        os.utime(path)
    expect(project, set())


def test_a_kernel_edit_rebuilds_that_kernel(project: Project) -> None:
    project.edit("kernels/scale/right.cu", "product(x[i], s)", "product(x[i], s) + 0.0f")
    expect(project, RIGHT | verdicts("versus"))


def test_a_header_edit_rebuilds_the_kernels_that_include_it(project: Project) -> None:
    project.edit("kernels/scale/common/product.cuh", "return a * b", "return b * a")
    expect(project, LEFT | RIGHT | verdicts("unroll", "versus"))


def test_one_level_changed_builds_that_level(project: Project) -> None:
    project.edit("kernels/scale/kernels.yaml", "levels: [64, 128]", "levels: [64, 128, 256]")
    project.edit("config.yaml", "{BLOCK: [64, 128]}", "{BLOCK: [64, 256]}")
    expect(project, of("alone BLOCK=256") | verdicts("alone") | {PLAN})


def test_an_experiment_added_builds_only_what_is_new(project: Project) -> None:
    extra = "  more:\n    question: q\n    base: left\n    vary: {kernel: [alone]}\n"
    project.write("config.yaml", project.read("config.yaml") + extra)
    expect(project, verdicts("more") | {PLAN})


def test_an_experiment_dropped_builds_nothing(project: Project) -> None:
    text = project.read("config.yaml")
    project.write("config.yaml", text[: text.index("  alone:")])
    expect(project, verdicts() | {PLAN})
    assert "alone" not in project.read("results/table.csv")


def test_a_compiler_option_rebuilds_every_build(project: Project) -> None:
    project.edit("config.yaml", "device: emulated", "device: emulated\noptions: [-use_fast_math]")
    expect(project, LEFT | RIGHT | ALONE | verdicts(*ALL) | {PLAN})


def test_the_reference_edited_checks_again(project: Project) -> None:
    project.edit("kernels/scale/operation.py", 'astype("float64")', 'astype("float64") * 1.0')
    keys = ("left default", "left UNROLL=2", "right default", "alone default", "alone BLOCK=128")
    expect(project, {("check", f"emulated {key} small") for key in keys} | verdicts(*ALL))


def test_a_command_line_override_reaches_the_jobs(project: Project) -> None:
    run = project.snakemake("results/table.csv", "--config", "arch=sm_80")
    assert run.status == 0, run.output
    assert run.jobs == LEFT | RIGHT | ALONE | verdicts(*ALL) | {PLAN}
    assert ".target sm_80" in project.read("results/build/left/default/kernel.ptx")


def test_an_upgraded_toolchain_rebuilds_every_build(project: Project) -> None:
    """Another NVRTC: the library of the wheel is what a build is stamped with."""
    code = (
        "import kernelab.build.toolchain as t, dataclasses\n"
        "find = t.find_toolchain\n"
        "def upgraded(name):\n"
        "    found = find(name)\n"
        "    return dataclasses.replace(found, compiler=dataclasses.replace(found.compiler, stamp='other'))\n"
        "t.find_toolchain = upgraded\n"
    )
    project.write("site/sitecustomize.py", code)
    environment = {"PYTHONPATH": f"{project.root / 'site'}:{project.root / 'workflow'}"}
    run = project.snakemake("-n", "results/table.csv", env=environment)
    assert run.jobs == LEFT | RIGHT | ALONE | verdicts(*ALL) | {("toolchain", "")}


@pytest.mark.parametrize(
    ("file", "jobs"),
    [
        ("table.csv", {TABLE}),
        ("build/right/default/build.json", RIGHT | verdicts("versus")),
        (
            "emulated/check/left/UNROLL=2/small.json",
            {("check", "emulated left UNROLL=2 small")} | verdicts("unroll"),
        ),
        ("plan.json", verdicts() | {PLAN}),
        ("emulated/compare/alone.json", verdicts("alone")),
        ("comparisons.csv", {("comparisons", ""), TABLE}),
    ],
)
def test_a_deleted_result_is_made_again(project: Project, file: str, jobs: set[Job]) -> None:
    (project.root / "results" / file).unlink()
    expect(project, jobs)


def test_a_lost_snakemake_folder_rebuilds_nothing_that_is_current(project: Project) -> None:
    shutil.rmtree(project.root / ".snakemake")
    assert project.snakemake("-n", "results/table.csv").jobs == set()


def test_a_lost_snakemake_folder_does_not_hide_an_edit(project: Project) -> None:
    shutil.rmtree(project.root / ".snakemake")
    project.edit("kernels/scale/right.cu", "product(x[i], s)", "product(x[i], s) + 0.0f")
    run = project.snakemake()
    assert run.status == 0, run.output
    assert run.jobs >= RIGHT
    assert not run.jobs & (LEFT | ALONE)


def test_a_record_from_elsewhere_is_refused(project: Project) -> None:
    """A record whose digest is not the plan's never becomes a row."""
    project.edit("results/build/right/default/build.json", '"digest": "', '"digest": "0')
    (project.root / "results/table.csv").unlink()
    done = project.kernelab("table", "--out", "results/table.csv")
    assert done.returncode == 1
    assert "results/build/right/default/build.json" in done.stderr
    assert "other settings" in done.stderr
    assert not (project.root / "results/table.csv").exists()


def test_killed_and_resumed(tmp_path_factory: pytest.TempPathFactory) -> None:
    """SIGKILL in the middle: what was finished is kept, nothing half-written is believed, the rest is made."""
    project = Project(tmp_path_factory.mktemp("killed") / "project")
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    process = subprocess.Popen(
        [sys.executable, "-m", "snakemake", "results/table.csv"],
        cwd=project.root,
        env=environment,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 120
    while not list(project.root.glob("results/build/*/*/build.json")):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    finished = len(list(project.root.glob("results/build/*/*/build.json")))
    assert not (project.root / "results/table.csv").exists()
    assert project.snakemake("--unlock").status == 0
    run = project.snakemake()
    assert run.status == 0, run.output
    assert TABLE in run.jobs
    assert (
        len([job for job in run.jobs if job[0] == "build"]) <= 5 - finished + 2
    )  # two may have been under way
    assert project.snakemake("-n", "results/table.csv").jobs == set()
    rows = project.read("results/table.csv").splitlines()
    assert len(rows) == 1 + 6
