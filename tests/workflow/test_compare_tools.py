"""`ask`, `stale`, `verify` and the rules of comparing, by real Snakemake on a small project without a GPU."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from workflow_project import Project


def comparisons(project: Project) -> list[dict[str, str]]:
    run = project.snakemake("results/comparisons.csv", "results/claims.csv")
    assert run.status == 0, run.output
    with (project.root / "results/comparisons.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_both_tables_are_made_and_nothing_is_left_to_do(project: Project) -> None:
    rows = comparisons(project)
    assert [row["experiment"] for row in rows] == ["unroll", "versus", "alone"]
    # `left` and `right` multiply in another order, which is one instruction.
    assert [row["verdict"] for row in rows] == ["not_measured", "identical_code", "not_measured"]
    assert (project.root / "results/claims.csv").read_text().startswith("claim,text,source,")
    assert project.snakemake("-n", "results/comparisons.csv", "results/claims.csv").jobs == set()


def test_only_the_experiments_of_an_edited_kernel_are_judged_again(project: Project) -> None:
    comparisons(project)
    project.edit("kernels/scale/right.cu", "product(x[i], s)", "product(x[i], s) + 0.0f")
    jobs = project.snakemake("-n", "results/comparisons.csv").jobs
    assert {wildcards for rule, wildcards in jobs if rule == "compare"} == {"versus"}


def test_a_comment_judges_nothing_again(project: Project) -> None:
    comparisons(project)
    project.edit("kernels/scale/left.cu", "// one element", "// exactly one element")
    assert project.snakemake("-n", "results/comparisons.csv").jobs == set()


def test_a_control_that_is_no_longer_declared_is_refused(project: Project) -> None:
    project.edit(
        "kernels/scale/kernels.yaml",
        "about: elements of a thread, controls: [grid]",
        "about: elements of a thread",
    )
    row = comparisons(project)[0]
    assert row["verdict"] == "confounded"
    assert (
        "grid is 16x1x1 in the base and 8x1x1 in the arm, which UNROLL does not declare it controls"
        in row["note"]
    )
    assert "grid 16x1x1 -> 8x1x1 (undeclared)" in row["control_facts_changed"]


def test_a_claim_of_the_accident_is_refused(project: Project) -> None:
    project.edit(
        "kernels/scale/kernels.yaml",
        "about: elements of a thread, controls: [grid]",
        "about: elements of a thread",
    )
    project.write(
        "config.yaml",
        project.read("config.yaml")
        + "claims:\n  C: {text: t, experiment: unroll, level: 2, expect: refused, by_pct: 4, card: c, source: s}\n",
    )
    comparisons(project)
    with (project.root / "results/claims.csv").open(newline="") as stream:
        (row,) = csv.DictReader(stream)
    assert row["status"] == "refused"


def test_ask_answers_and_gives_the_yaml_to_keep(project: Project) -> None:
    done = project.kernelab("ask", "--base", "left", "--vary", "UNROLL=1,2", "--at", "long")
    assert done.returncode == 0, done.stderr
    answer, _, kept = done.stdout.partition("To keep the question, add to config.yaml:\n")
    assert answer.startswith(
        "ask: What does UNROLL do to left?\n  UNROLL: 1 -> 2 on left/default@long\n    not_measured\n"
    )
    assert "kernelab-verdict v1 experiment=ask " in answer
    line = next(part for part in answer.splitlines() if "kernelab-verdict" in part).strip()
    project.snakemake("results/plan.json")
    verified = project.kernelab("verify", line, "results")
    assert verified.stdout.startswith("honest: "), verified.stdout + verified.stderr
    assert "ask is no experiment of config.yaml (any more)" in project.kernelab("stale").stdout
    declared = yaml.safe_load(kept)["experiments"]["ask"]
    assert declared == {
        "question": "What does UNROLL do to left?",
        "base": "left",
        "vary": {"UNROLL": [1, 2]},
        "at": ["long"],
    }
    # What it prints is what config.yaml takes.
    project.write("config.yaml", project.read("config.yaml") + kept.partition("experiments:\n")[2])
    assert project.snakemake("results/emulated/compare/ask.json").status == 0


def test_ask_refuses_a_wrong_question_in_one_line(project: Project) -> None:
    for options, reason in [
        (("--base", "nowhere", "--vary", "UNROLL=1,2"), "nowhere is no kernel"),
        (("--base", "left", "--vary", "UNROLL=1,3"), "3 is not a level"),
        (("--base", "left", "--vary", "UNROLL"), "must be VARIABLE=LEVEL"),
        (("--base", "left", "--vary", "UNROLL=1"), "needs two levels or more"),
        (
            ("--base", "left", "--vary", "UNROLL=1,2", "--name", "versus"),
            "config.yaml has an experiment of that name",
        ),
    ]:
        done = project.kernelab("ask", *options)
        assert done.returncode == 1
        assert len(done.stderr.splitlines()) == 1
        assert reason in done.stderr


def test_a_premise_expires_with_the_code_of_the_base(project: Project) -> None:
    comparisons(project)
    assert project.kernelab("stale").returncode == 0
    project.edit("kernels/scale/left.cu", "product(s, x[i])", "product(s, x[i]) * 2.0f")
    before = project.kernelab("stale")
    assert before.returncode == 3
    assert "a premise expired: its base left/default@long has another source" in before.stdout
    built = project.snakemake("results/build/left/default/build.json")
    assert built.status == 0, built.output
    after = project.kernelab("stale")
    assert after.returncode == 3
    assert "its base left/default@long compiles to other code" in after.stdout
    comparisons(project)
    assert project.kernelab("stale").stdout == "0 of 3 verdicts are stale\n"


def test_a_certificate_of_a_verdict_without_a_card_is_honest_and_not_passed(project: Project) -> None:
    comparisons(project)
    record = json.loads(project.read("results/emulated/compare/unroll.json"))
    line = record["comparisons"][0]["certificate"]
    done = project.kernelab("verify", line, "results")
    assert (done.returncode, done.stdout) == (
        3,
        "honest: the records give this very line; not passed: not_measured: no GPU on this machine\n",
    )
    project.edit("results/build/left/default/build.json", '"registers": ', '"registers": 1')
    assert project.kernelab("verify", line, "results").returncode in (3, 4)
    project.edit(
        "results/build/left/default/build.json", '"static_shared_bytes": ', '"static_shared_bytes": 1'
    )
    assert project.kernelab("verify", line, "results").returncode == 4


def test_results_differ_from_nothing_but_themselves(project: Project) -> None:
    comparisons(project)
    done = project.kernelab("diff", "results", "results")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "3 comparisons: 1 agree, 0 flip, 0 fade, 2 unclear"
