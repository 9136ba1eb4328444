"""Configurations against their base: a verdict each, and only what the moved parameters declare may move."""

from __future__ import annotations

from typing import Any

import pytest
from synthetic_results import Lab

from kernelab.compare.controls import controlled
from kernelab.compare.describe import describe
from kernelab.compare.tabulate import comparisons_csv
from kernelab.report.answers import answer, change

TWO = "x: {question: q, base: one, configurations: [{BLOCK: 128, UNROLL: 4}, {UNROLL: 2}]}"
LARGE, UNROLLED = "one/BLOCK=128,UNROLL=4@long", "one/UNROLL=2@long"


def test_each_configuration_has_a_verdict_against_the_base(lab: Lab) -> None:
    plan = lab.plan(TWO)
    lab.build(plan)
    lab.time(plan, "x", {LARGE: 0.9, UNROLLED: 1.05})
    record = lab.compare(plan, "x")
    assert [(p.variable, p.kind, p.base_level, p.level, p.verdict) for p in record.comparisons] == [
        ("configuration", "configuration", "default", "BLOCK=128,UNROLL=4", "faster"),
        ("configuration", "configuration", "default", "UNROLL=2", "slower"),
    ]
    assert {fact.name for fact in record.comparisons[0].control_facts_changed} >= {"grid", "block"}
    large, unrolled = comparisons_csv([record], {}).splitlines()[1:]
    assert 'configuration,default,"BLOCK=128,UNROLL=4",true' in large
    assert "configuration,default,UNROLL=2,true" in unrolled
    assert "kernelab-verdict v1" in "\n".join(describe(record))
    assert change(record.comparisons[0]) == "configuration: default to BLOCK=128,UNROLL=4"
    assert answer(record)


@pytest.mark.parametrize(
    ("design", "facts"),
    [
        ("configurations: [{UNROLL: 4}]", {"macro UNROLL"}),
        (
            "configurations: [{BOUND: 1, UNROLL: 4, BLOCK: 64}]",
            {"macro BOUND", "macro UNROLL", "min_blocks"},
        ),
        (
            "configurations: [{shape: large}]",
            {"macro BLOCK", "macro UNROLL", "grid", "block", "threads"},
        ),
        # A composite may move what those of its parameters declare that differ between the two levels.
        ("hold: {BLOCK: 128}, configurations: [{shape: large}]", {"macro UNROLL"}),
    ],
)
def test_only_the_controls_of_moved_parameters_may_move(lab: Lab, design: str, facts: set[str]) -> None:
    plan = lab.plan(f"x: {{question: q, base: one, {design}}}")
    assert controlled(plan, plan.experiments["x"].comparisons[0]) == facts


@pytest.mark.parametrize(
    ("design", "arm", "entry", "fact"),
    [
        ("{UNROLL: 2, DISPATCH: device}", "DISPATCH=device,UNROLL=2", {"min_blocks": 1}, "min_blocks"),
        ("{BLOCK: 128, UNROLL: 4}", "BLOCK=128,UNROLL=4", {"static_shared_bytes": 512}, "static shared"),
        ("{UNROLL: 4, TILE: 2}", "TILE=2,UNROLL=4", {}, "grid"),
    ],
)
def test_a_fact_that_no_moved_parameter_declares_is_refused(
    lab: Lab, design: str, arm: str, entry: dict[str, Any], fact: str
) -> None:
    plan = lab.plan(f"x: {{question: q, base: one, configurations: [{design}]}}")
    lab.build(plan, {f"one/{arm}": {"entry": entry}})
    lab.time(plan, "x", {f"one/{arm}@long": 0.9})
    (pair,) = lab.compare(plan, "x").comparisons
    assert pair.verdict == "confounded"
    (phrase,) = pair.confounds
    assert phrase.startswith(fact)
    assert phrase.endswith("which configuration does not declare it controls")


def test_identical_code_is_no_change(lab: Lab) -> None:
    plan = lab.plan("x: {question: q, base: one, configurations: [{UNROLL: 2, DISPATCH: device}]}")
    same = {"entry": {"sass_sha256": "5" * 64}}
    lab.build(plan, {"one/default": same, "one/DISPATCH=device,UNROLL=2": same})
    lab.time(plan, "x", {})
    (pair,) = lab.compare(plan, "x").comparisons
    assert pair.verdict == "identical_code"


def test_the_same_configuration_at_two_problems_is_one_question(lab: Lab) -> None:
    plan = lab.plan("x: {question: q, base: one, at: [long, short], configurations: [{UNROLL: 4}]}")
    lab.build(plan)
    lab.time(plan, "x", {"one/UNROLL=4@long": 0.9, "one/UNROLL=4@short": 1.1})
    (asked,) = lab.compare(plan, "x").same_question
    assert (asked.change, asked.answer) == ("configuration: default -> UNROLL=4", "flip")
