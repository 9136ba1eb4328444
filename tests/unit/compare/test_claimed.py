"""Claims beside synthetic measurements: how a claim finds its comparison, and what becomes of it."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from synthetic_results import Lab

from kernelab.compare.claimed import claim_row, find_arm, find_pair
from kernelab.compare.tabulate import CLAIM_COLUMNS, COMPARISON_COLUMNS, claims_csv, comparisons_csv
from kernelab.plan.config import Claim
from kernelab.records.compare import CompareRecord
from kernelab.statistics.policy import VerdictPolicy

POLICY = VerdictPolicy()


def claim(**fields: Any) -> Claim:
    return Claim(**{"text": "t", "experiment": "x", "card": "c", "source": "s", **fields})


def measured(lab: Lab, experiment: str, times: dict[str, float], **builds: Any) -> CompareRecord:
    plan = lab.plan(f"x: {experiment}")
    bound = {
        key: {"entry": {"min_blocks": 1, "sass_sha256": f"{key:0>64}"[-64:]}}
        for key in plan.builds
        if "BOUND" in key
    }
    lab.build(plan, bound | builds)
    lab.time(plan, "x", times)
    return lab.compare(plan, "x")


VARY = "{question: q, base: one, vary: {UNROLL: [1, 2, 4]}}"
TIMES = {"one/UNROLL=2@long": 0.96, "one/UNROLL=4@long": 1.03}


@pytest.mark.parametrize(
    ("fields", "status", "claimed"),
    [
        ({"level": 2, "by_pct": 4.0}, "holds", "0.96"),
        ({"level": 2}, "holds", "faster"),
        ({"level": 2, "by_pct": 30.0}, "weaker", "0.7"),
        ({"level": 2, "by_pct": 1.0}, "stronger", "0.99"),
        ({"level": 2, "expect": "slower"}, "reversed", "slower"),
        ({"level": 4, "expect": "slower", "by_pct": 3.0}, "holds", "1.03"),
        ({"level": 4, "expect": "equal"}, "stronger", "1"),
        (
            {"level": 4, "expect": "refused", "by_pct": 4.0},
            "reversed",
            "0.96",
        ),  # it was not refused, so it is judged
    ],
)
def test_a_claim_of_time(lab: Lab, fields: dict[str, Any], status: str, claimed: str) -> None:
    row = claim_row("C", claim(**fields), measured(lab, VARY, TIMES), POLICY)
    assert (row.status, row.claimed, row.claimed_metric) == (status, claimed, "time (arm/base)")
    assert float(row.measured_low) < float(row.measured) < float(row.measured_high)


def test_a_claim_without_a_record_is_not_measured() -> None:
    row = claim_row("C", claim(), None, POLICY)
    assert (row.status, row.measured, row.note) == ("not_measured", "", "its experiment has no record yet")


def test_a_claim_about_a_level_that_is_not_there_says_which_are(lab: Lab) -> None:
    row = claim_row("C", claim(level=8), measured(lab, VARY, TIMES), POLICY)
    assert row.status == "not_measured"
    assert row.note == "x has no arm at level 8 of base any (levels: 1, 2, 4)"


def test_the_published_accident_is_refused(lab: Lab) -> None:
    built = {"one/DISPATCH=device": {"entry": {"min_blocks": 1, "sass_sha256": "d" * 64}}}
    record = measured(
        lab,
        "{question: q, base: one, vary: {DISPATCH: [host, device]}}",
        {"one/DISPATCH=device@long": 0.96},
        **built,
    )
    row = claim_row("B6", claim(level="device", expect="refused", by_pct=4.0), record, POLICY)
    assert row.status == "refused"
    assert "min_blocks (.minnctapersm) is none in the base and 1 in the arm" in row.note
    assert float(row.measured) == pytest.approx(0.96, abs=2e-3)
    metric = claim_row("B6", claim(level="device", metric="registers", expect="higher"), record, POLICY)
    assert metric.status == "refused"


REGISTERS = {"one/UNROLL=2": {"entry": {"registers": 50, "sass_sha256": "e" * 64}}}


@pytest.mark.parametrize(
    ("fields", "status", "measured_text"),
    [
        ({"expect": "higher", "by_pct": 25.0}, "holds", "1.25"),
        ({"expect": "higher", "by_pct": 50.0}, "weaker", "1.25"),
        ({"expect": "higher", "by_pct": 10.0}, "stronger", "1.25"),
        ({"expect": "higher"}, "holds", "1.25"),
        ({"expect": "lower"}, "reversed", "1.25"),
        ({"expect": "equal"}, "stronger", "1.25"),
        ({"expect": "value", "value": 50.0}, "holds", "50"),
        ({"expect": "value", "value": 70.0}, "weaker", "50"),
        ({"expect": "value", "value": 40.0, "level": 1}, "holds", "40"),  # a base level names the base
        ({"metric": "lds_128", "expect": "higher"}, "no_effect", "1"),
        ({"metric": "ncu_l1tex_pct", "expect": "lower"}, "not_measured", ""),
        ({"metric": "ncu_l1tex_pct", "expect": "value", "value": 3.0}, "not_measured", ""),
    ],
)
def test_a_claim_of_a_figure(lab: Lab, fields: dict[str, Any], status: str, measured_text: str) -> None:
    record = measured(lab, VARY, TIMES, **REGISTERS)
    row = claim_row("C", claim(**{"level": 2, "metric": "registers", **fields}), record, POLICY)
    assert (row.status, row.measured, row.measured_low) == (status, measured_text, "")


def test_a_counter_that_wanders_is_no_effect(lab: Lab) -> None:
    record = measured(lab, VARY, TIMES)
    for name, value in zip(record.arms, (80.0, 80.5, 70.0), strict=True):
        record.arms[name]["ncu_l1tex_pct"] = value
    rows = [
        claim_row("C", claim(level=n, metric="ncu_l1tex_pct", expect="lower"), record, POLICY) for n in (2, 4)
    ]
    assert [row.status for row in rows] == ["no_effect", "holds"]


def test_steps_are_found_by_number_and_from_the_start(lab: Lab) -> None:
    record = measured(lab, "{question: q, base: one, steps: [{UNROLL: 2}, {BOUND: 1}, {UNROLL: 4}]}", {})
    single, cumulative = claim(level=3), claim(level=3, base="start")
    found, whole = find_pair(single, record), find_pair(cumulative, record)
    assert found is not None
    assert whole is not None
    assert (found.base, found.arm) == ("one/BOUND=1,UNROLL=2@long", "one/BOUND=1,UNROLL=4@long")
    assert (whole.base, whole.arm) == ("one/default@long", "one/BOUND=1,UNROLL=4@long")
    assert find_pair(claim(level=4), record) is None
    assert find_pair(claim(level=1, base="start"), record) == record.comparisons[0]


def test_bases_are_told_apart(lab: Lab) -> None:
    record = measured(lab, "{question: q, bases: [one, two], vary: {BOUND: [none, 1]}}", {})
    found = find_pair(claim(level=1, base="two"), record)
    assert found is not None
    assert found.base == "two/default@long"
    assert find_arm(claim(level="none", base="two"), record) == "two/default@long"


def test_the_tables_have_the_documented_columns(lab: Lab) -> None:
    record = measured(lab, VARY, TIMES)
    stale = {("x", "one/default@long", "one/UNROLL=2@long"): "a premise expired"}
    rows = list(csv.DictReader(io.StringIO(comparisons_csv([record], stale))))
    assert tuple(rows[0]) == COMPARISON_COLUMNS
    assert rows[0]["verdict"] == "faster"
    assert rows[0]["note"].startswith("stale: a premise expired; ")
    assert rows[0]["control_facts_changed"] == "macro UNROLL 1 -> 2"
    assert rows[1]["verdict"] == "slower"
    assert not rows[1]["note"].startswith("stale")
    assert float(rows[1]["ratio_low"]) < 1.03 < float(rows[1]["ratio_high"])
    claims = list(csv.DictReader(io.StringIO(claims_csv([claim_row("C", claim(level=2), record, POLICY)]))))
    assert tuple(claims[0]) == CLAIM_COLUMNS
    assert CLAIM_COLUMNS[:11] == (
        "claim", "text", "source", "experiment", "claimed_metric", "claimed", "claimed_on", "measured", "measured_low",
        "measured_high", "status",
    )  # fmt: skip
