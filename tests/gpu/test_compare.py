"""Comparing on a real card, by real Snakemake: identity, a slowdown, a refusal, the certificate, and the environment."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kernelab.device.environment import STATE, capture, changed
from kernelab.device.identify import identify, list_gpus

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not list_gpus(), reason="CUDA shows no GPU here"),
]

ROOT = Path(__file__).parents[2]
CATALOGUE = """\
operation:
  name: work
  title: y = 16 x
  problem: {n: int, repeat: int}
  arrays:
    x: {shape: [n], role: input}
    y: {shape: [n], role: output}
  arguments: [n, repeat, x, y]
  flops: n
  bytes: 8*n
  tolerance: {absolute: 1.0e-3, relative: 1.0e-4, frobenius: 1.0e-5}
  checks: {tiny: {n: 100, repeat: 1}}
kernels:
  work:
    source: planted.cu
    idea: eight chains of FFMAs
    parameters:
      WORK: {type: int, default: 1000, levels: [1000, 1050], about: trips of the inner loop}
      COPY: {type: int, default: 0, levels: [0, 1], about: ignored by the source}
      BOUND: {type: int, default: 0, levels: [0, 1], about: "adds a launch bound, and does not say so"}
    launches: [{entry: planted, grid: "ceil_div(n, 256)", block: 256}]
"""
CONFIG = """\
device: auto
timing: {processes: 3, extend_to: 3, budget_s: 6, warmup_s: 2}
check: {emulate: false}
profile: {enabled: false}
problems:
  medium: {n: 540672, repeat: 8}
experiments:
  copies: {question: "Is a copy the same code?", base: work, vary: {COPY: [0, 1]}}
  more: {question: "Is 5% more work found?", base: work, vary: {WORK: [1000, 1050]}}
  accident: {question: "Is a stray launch bound refused?", base: work, vary: {BOUND: [0, 1]}}
"""


class Project:
    """The planted work as a project of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("workflow", "profiles", "envs"):
            shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "Snakefile", root)
        folder = root / "kernels" / "work"
        folder.mkdir(parents=True)
        planted = ROOT / "benchmarks/planted/kernels/planted"
        shutil.copy(planted / "operation.py", folder)
        source = (planted / "planted.cu").read_text()
        bounded = "#if BOUND\n#define BOUNDS __launch_bounds__(256, 1)\n#else\n#define BOUNDS __launch_bounds__(256)\n#endif\n"
        assert "__launch_bounds__(256)" in source
        (folder / "planted.cu").write_text(bounded + source.replace("__launch_bounds__(256)", "BOUNDS"))
        (folder / "kernels.yaml").write_text(CATALOGUE)
        (root / "config.yaml").write_text(CONFIG)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`python -m` something in the project."""
        # The copy of the package comes first; Snakemake itself may be on the path that was given (a GPU box without a network).
        path = os.pathsep.join(
            p for p in (str(self.root / "workflow"), os.environ.get("PYTHONPATH", "")) if p
        )
        environment = os.environ | {"PYTHONPATH": path}
        command = [sys.executable, "-m", *arguments]
        return subprocess.run(
            command, cwd=self.root, capture_output=True, text=True, timeout=300, env=environment
        )

    def pair(self, experiment: str) -> dict[str, Any]:
        """The one comparison of an experiment, as recorded."""
        (path,) = self.root.glob(f"results/nvidia*/compare/{experiment}.json")
        (pair,) = json.loads(path.read_text())["comparisons"]
        found: dict[str, Any] = pair
        return found


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = Project(tmp_path_factory.mktemp("compare") / "project")
    done = made.run("snakemake", "--nocolor", "results/comparisons.csv", "results/claims.csv")
    assert done.returncode == 0, done.stdout + done.stderr
    return made


def test_a_copy_is_identical_code(project: Project) -> None:
    pair = project.pair("copies")
    assert pair["verdict"] == "identical_code"
    assert pair["ratio"] is not None  # it was timed, and serves as a further A/A control
    assert 0.98 < pair["ratio"]["value"] < 1.02


def test_five_per_cent_more_work_is_found_with_its_size(project: Project) -> None:
    pair = project.pair("more")
    assert pair["verdict"] == "slower", pair["reason"]
    assert 1.04 < pair["ratio"]["value"] < 1.06
    assert 1.04 < pair["cycles"]["value"] < 1.06
    assert pair["outcomes_changed"] == []


def test_a_stray_launch_bound_is_refused(project: Project) -> None:
    pair = project.pair("accident")
    assert pair["verdict"] == "confounded"
    assert pair["confounds"] == [
        "min_blocks (.minnctapersm) is none in the base and 1 in the arm, which BOUND does not declare it controls"
    ]


def test_certificates_are_honest_and_an_edited_one_is_not(project: Project) -> None:
    line = project.pair("more")["certificate"]
    done = project.run("kernelab", "verify", line, "results")
    assert (done.returncode, done.stdout.startswith("honest: ")) == (0, True), done.stdout + done.stderr
    assert project.run("kernelab", "verify", line.replace("slower", "faster"), "results").returncode == 4
    assert (
        project.run("kernelab", "verify", project.pair("accident")["certificate"], "results").returncode == 3
    )


def test_results_agree_with_themselves_and_nothing_is_stale(project: Project) -> None:
    done = project.run("kernelab", "diff", "results", "results", "--all")
    assert done.returncode == 0
    assert "agree: more: " in done.stdout
    assert project.run("kernelab", "stale").returncode == 0


def test_the_session_knows_its_environment(project: Project) -> None:
    (path,) = project.root.glob("results/nvidia*/timing/more.json")
    (session,) = json.loads(path.read_text())["sessions"]
    before, after = session["environment_before"], session["environment_after"]
    assert before["gpu_driver"] == session["conditions"]["driver"]
    assert changed(before, after) == {}


def test_ask_times_on_the_card(project: Project) -> None:
    done = project.run("kernelab", "ask", "--base", "work", "--vary", "WORK=1000,1050", "--quick")
    assert done.returncode == 0, done.stderr
    assert "    slower  time 1.0" in done.stdout
    assert "vary:" in done.stdout


def test_the_card_tells_its_settings() -> None:
    found = capture(identify("auto").uuid)
    assert {
        "gpu_driver",
        "gpu_power_limit_w",
        "gpu_max_sm_mhz",
        "gpu_persistence",
        "host_cpu",
    } <= found.keys()
    assert STATE & found.keys()
    assert changed(found, capture(identify("auto").uuid)) == {}
