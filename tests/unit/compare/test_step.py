"""The step on synthetic results: verdicts, identity, reasons, designs."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping

import pytest
from synthetic_results import CARD, Lab

from kernelab.compare.step import compare_experiment
from kernelab.compare.tabulate import comparisons_csv
from kernelab.device.identify import EMULATED
from kernelab.digests import Digests
from kernelab.errors import UserError
from kernelab.records.check import CheckedProblem, CheckRecord
from kernelab.records.compare import CompareRecord
from kernelab.records.layout import SMALL, Layout
from kernelab.records.profile import ProfileRecord
from kernelab.records.record import read_record, write_record
from kernelab.records.timing import TimedArm

BASE, ARM = "one/default@long", "one/UNROLL=2@long"


def test_a_known_effect_is_found_with_its_size(lab: Lab) -> None:
    plan = lab.plan()
    lab.build(plan, {"one/UNROLL=2": {"entry": {"registers": 48, "sass_sha256": "b" * 64}}})
    lab.time(plan, "unroll", {ARM: 0.97})
    record = lab.compare(plan)
    (pair,) = record.comparisons
    assert pair.verdict == "faster"
    assert pair.direction == -1
    assert pair.ratio is not None
    assert pair.ratio.low < 0.97 < pair.ratio.high
    assert pair.cycles is not None
    assert pair.cycles.value == pytest.approx(0.97, abs=2e-3)
    assert pair.aa_half_width is not None
    assert (pair.processes, pair.rounds, pair.session) == (6, 30, "s1")
    assert [(c.name, c.base, c.arm) for c in pair.outcomes_changed] == [("registers", "40", "48")]
    assert [(c.name, c.declared) for c in pair.control_facts_changed] == [("macro UNROLL", True)]
    assert record.card == CARD.name
    assert record.arms[ARM]["registers"] == 48
    assert record.arms[ARM]["sts_share_pct"] == 1.0
    write_record(lab.layout.compare("unroll"), record)
    assert read_record(lab.layout.compare("unroll"), CompareRecord) == record


def test_identical_code_is_said_whatever_the_clock_says(lab: Lab) -> None:
    plan = lab.plan()
    lab.build(plan, {key: {"entry": {"sass_sha256": "c" * 64}} for key in plan.builds})
    lab.time(plan, "unroll", {ARM: 1.002})
    pair = lab.pair(plan)
    assert pair.verdict == "identical_code"
    assert pair.base_sass == pair.arm_sass == "c" * 64


def test_identical_code_needs_equal_launches(lab: Lab) -> None:
    plan = lab.plan("x: {question: q, base: one, vary: {BLOCK: [64, 128]}}")
    lab.build(plan, {key: {"entry": {"sass_sha256": "c" * 64}} for key in plan.builds})
    lab.time(plan, "x", {})
    assert lab.pair(plan, "x").verdict == "equivalent"


@pytest.mark.parametrize("vary", ["problem: [long, short]", "l2: [cold, hot]", "data: [uniform, normal]"])
def test_the_same_code_on_other_problems_is_no_identity(lab: Lab, vary: str) -> None:
    plan = lab.plan(f"x: {{question: q, base: one, vary: {{{vary}}}}}")
    lab.build(plan)
    lab.time(plan, "x", {})
    assert lab.pair(plan, "x").verdict == "equivalent"


def test_without_a_gpu_everything_but_the_clock_is_said(lab: Lab) -> None:
    plan = lab.plan(
        "u: {question: q, base: one, vary: {UNROLL: [1, 2, 4]}}",
        "g: {question: q, base: one, vary: {TILE: [1, 2]}}",
        "l: {question: q, base: 00_library, vary: {kernel: [one]}}",
        device=EMULATED,
    )
    same = {"entry": {"sass_sha256": "c" * 64}}
    lab.build(plan, {"one/default": same, "one/UNROLL=2": same, "one/UNROLL=4": {"entry": {"registers": 99}}})
    lab.layout = Layout(lab.layout.results, "emulated")
    first, second = lab.compare(plan, "u").comparisons
    assert (first.verdict, first.reason) == ("identical_code", "normalised SASS and resources are equal")
    assert (second.verdict, second.reason) == ("not_measured", "no GPU on this machine")
    assert second.outcomes_changed[0].name == "registers"
    assert lab.pair(plan, "g").verdict == "confounded"
    assert lab.pair(plan, "l").verdict == "not_measured"


def test_an_arm_that_does_not_compile_is_the_reason(lab: Lab) -> None:
    plan = lab.plan()
    lab.build(
        plan, {"one/UNROLL=2": {"status": "compile_error", "note": "line 3: expected a ;", "entries": {}}}
    )
    arms = {
        BASE: TimedArm(status="ok", session="s1"),
        ARM: TimedArm(status="compile_error", note="line 3: expected a ;"),
    }
    lab.time(plan, "unroll", {}, record={"pairs": [], "arms": arms})
    pair = lab.pair(plan)
    assert pair.verdict == "not_measured"
    assert pair.reason == f"{ARM}: compile_error: line 3: expected a ;"


def test_an_arm_that_failed_while_timing_is_the_reason(lab: Lab) -> None:
    plan = lab.plan()
    lab.build(plan)
    arms = {
        BASE: TimedArm(status="ok", session="s1"),
        ARM: TimedArm(status="timeout", note="no end after 30 s"),
    }
    lab.time(plan, "unroll", {}, record={"pairs": [], "arms": arms})
    pair = lab.pair(plan)
    assert (pair.verdict, pair.ratio) == ("not_measured", None)
    assert pair.reason == f"{ARM}: timeout: no end after 30 s"


def test_a_hazard_is_judged_and_said(lab: Lab) -> None:
    plan = lab.plan()
    lab.build(plan)
    lab.time(plan, "unroll", {ARM: 0.97})
    hazard = CheckRecord(
        digest="d",
        kernel="one",
        variant="UNROLL=2",
        device=CARD.id,
        status="hazard",
        note="a race",
        problems={"tiny": CheckedProblem(status="hazard", correct=True)},
    )
    write_record(lab.layout.check("one/UNROLL=2", SMALL, CARD.id), hazard)
    pair = lab.pair(plan)
    assert (pair.verdict, pair.notes) == ("faster", ["hazard"])


def test_a_hazard_found_by_emulation_outlives_a_right_result_on_the_card(lab: Lab) -> None:
    plan = lab.plan()
    lab.build(plan)
    lab.time(plan, "unroll", {})
    for device, status in ((CARD.id, "ok"), (EMULATED.id, "hazard")):
        record = CheckRecord(
            digest="d", kernel="one", variant="default", device=device, status=status, note="", problems={}
        )
        write_record(lab.layout.check("one/default", SMALL, device), record)
    assert lab.pair(plan).notes == ["hazard"]


def test_counters_of_other_code_are_left_out(lab: Lab) -> None:
    """A profile or a check that was left over when the code changed says nothing of today's."""
    plan = lab.plan(device=EMULATED)
    lab.layout = Layout(lab.layout.results, EMULATED.id)
    digests = Digests(plan, lab.root)
    lab.build(plan, {key: {"digest": digests.build(key)} for key in plan.builds})
    arm = plan.arms[ARM]
    record = ProfileRecord(
        digest=digests.profile(arm),
        arm=ARM,
        status="ok",
        note="",
        ncu="",
        kernels=[],
        values={"ncu_l1tex_pct": 5.0},
    )
    path = lab.layout.profile(arm.record_key, arm.problem)

    def columns() -> Mapping[str, object]:
        made = compare_experiment(plan, "unroll", lab.layout, digest="d", digests=digests, root=None)
        return made.arms[ARM]

    write_record(path, record)
    assert columns()["ncu_l1tex_pct"] == 5.0
    write_record(path, record.model_copy(update={"digest": "another"}))
    assert "ncu_l1tex_pct" not in columns()


def test_one_process_gives_no_verdict(lab: Lab) -> None:
    plan = lab.plan()
    lab.build(plan)
    lab.time(plan, "unroll", {}, processes=1)
    pair = lab.pair(plan)
    assert (pair.verdict, pair.reason) == ("not_measured", "an interval needs two processes or more")


def test_throttling_makes_it_unstable(lab: Lab) -> None:
    plan = lab.plan()
    lab.build(plan)
    lab.time(plan, "unroll", {ARM: 0.9}, throttled=True)
    assert lab.pair(plan).verdict == "unstable"


def test_a_clock_that_moved_is_said(lab: Lab) -> None:
    plan = lab.plan()
    lab.build(plan)
    lab.time(plan, "unroll", {ARM: 1.04}, clocks_mhz={ARM: 1500.0 / 1.04})
    pair = lab.pair(plan)
    assert pair.verdict == "slower"
    assert "clock_mediated" in pair.notes


def test_two_bases_have_a_control_each_and_their_answers_are_set_side_by_side(lab: Lab) -> None:
    plan = lab.plan("x: {question: q, bases: [one, two], vary: {BOUND: [none, 1]}}")
    lab.build(plan, {key: {"entry": {"min_blocks": 1}} for key in plan.builds if "BOUND" in key})
    lab.time(plan, "x", {"one/BOUND=1@long": 1.03, "two/BOUND=1@long": 0.97})
    record = lab.compare(plan, "x")
    assert [pair.verdict for pair in record.comparisons] == ["slower", "faster"]
    (asked,) = record.same_question
    assert (asked.change, asked.first, asked.second) == ("BOUND: none -> 1", BASE, "two/default@long")
    assert asked.answer == "flip"
    rows = list(csv.DictReader(io.StringIO(comparisons_csv([record], {}))))
    assert rows[1]["note"].endswith(f"; the answer flips from {BASE}")
    assert "flips" not in rows[0]["note"]
    assert asked.ratio is not None
    assert asked.ratio.value == pytest.approx(0.97 / 1.03, rel=2e-3)


def test_several_problems_are_set_side_by_side(lab: Lab) -> None:
    plan = lab.plan("x: {question: q, base: one, at: [long, short], vary: {UNROLL: [1, 2]}}")
    lab.build(plan)
    lab.time(plan, "x", {"one/UNROLL=2@long": 0.95})
    record = lab.compare(plan, "x")
    assert [pair.verdict for pair in record.comparisons] == ["faster", "equivalent"]
    assert [asked.answer for asked in record.same_question] == ["fade"]


def test_identical_code_twice_agrees_without_a_clock(lab: Lab) -> None:
    """Both ratios are exactly 1, with no spread: a record must still be writable."""
    plan = lab.plan("x: {question: q, bases: [one, two], vary: {BOUND: [none, 1]}}", device=EMULATED)
    bound = {
        key: {"entry": {"sass_sha256": key[:3] * 20, "min_blocks": 1 if "BOUND" in key else None}}
        for key in plan.builds
    }
    lab.build(plan, bound)
    lab.layout = Layout(lab.layout.results, "emulated")
    record = lab.compare(plan, "x")
    assert [pair.verdict for pair in record.comparisons] == ["identical_code"] * 2
    assert record.same_question[0].answer == "agree"
    write_record(lab.layout.compare("x"), record)


def test_steps_are_judged_against_the_one_before_and_the_start(lab: Lab) -> None:
    plan = lab.plan("x: {question: q, base: one, steps: [{UNROLL: 2}, {BOUND: 1}]}")
    lab.build(plan, {key: {"entry": {"min_blocks": 1}} for key in plan.builds if "BOUND" in key})
    lab.time(plan, "x", {"one/UNROLL=2@long": 0.96, "one/BOUND=1,UNROLL=2@long": 0.96 * 0.95})
    first, second, cumulative = lab.compare(plan, "x").comparisons
    assert [pair.verdict for pair in (first, second, cumulative)] == ["faster"] * 3
    ratios = [pair.ratio.value for pair in (first, second, cumulative) if pair.ratio]
    assert ratios == pytest.approx([0.96, 0.95, 0.96 * 0.95], rel=2e-3)
    assert cumulative.composite


def test_a_factorial_gives_main_effects_and_the_interaction(lab: Lab) -> None:
    plan = lab.plan("x: {question: q, base: one, factorial: {UNROLL: [1, 2], BOUND: [none, 1]}}")
    lab.build(plan, {key: {"entry": {"min_blocks": 1}} for key in plan.builds if "BOUND" in key})
    times = {
        "one/UNROLL=2@long": 0.96,
        "one/BOUND=1@long": 1.02,
        "one/BOUND=1,UNROLL=2@long": 0.96 * 1.02 * 0.98,
    }
    lab.time(plan, "x", times)
    record = lab.compare(plan, "x")
    assert len(record.comparisons) == 4
    assert record.effects_note == ""
    effects = {tuple(effect.variables): effect.ratio for effect in record.effects}
    assert effects[("UNROLL",)].value == pytest.approx(0.96 * math.sqrt(0.98), rel=2e-3)
    assert effects[("BOUND",)].value == pytest.approx(1.02 * math.sqrt(0.98), rel=2e-3)
    assert effects[("UNROLL", "BOUND")].value == pytest.approx(0.98, rel=2e-3)
    assert effects[("UNROLL", "BOUND")].low < 0.98 < effects[("UNROLL", "BOUND")].high


def test_a_factorial_of_three_levels_at_two_problems(lab: Lab) -> None:
    plan = lab.plan(
        "x: {question: q, base: one, at: [long, short], factorial: {UNROLL: [1, 2, 4], BLOCK: [64, 128]}}"
    )
    lab.build(plan)
    lab.time(plan, "x", {})
    record = lab.compare(plan, "x")
    assert [effect.problem for effect in record.effects].count("long") == 5
    assert len(record.effects) == 10


def test_a_factorial_of_two_sessions_has_no_effects(lab: Lab) -> None:
    plan = lab.plan("x: {question: q, base: one, factorial: {UNROLL: [1, 2], BOUND: [none, 1]}}")
    lab.build(plan)
    lab.time(plan, "x", {})
    path = lab.layout.timing("x")
    content = json.loads(path.read_text())
    content["sessions"].append(content["sessions"][0] | {"id": "s2"})
    content["pairs"][0]["session"] = "s2"
    path.write_text(json.dumps(content))
    record = lab.compare(plan, "x")
    assert record.effects == []
    assert "not all timed in one session" in record.effects_note


def test_a_kernel_comparison_shows_the_token_diff(lab: Lab) -> None:
    plan = lab.plan("x: {question: q, base: one, vary: {kernel: [two]}}")
    lab.build(plan)
    lab.time(plan, "x", {})
    assert lab.pair(plan, "x").source_diff.splitlines() == [
        "5 tokens go, 5 come",
        "-int a = 1 ;",
        "+int b = 2 ;",
    ]


def test_a_missing_build_is_an_error_that_names_it(lab: Lab) -> None:
    plan = lab.plan()
    lab.time(plan, "unroll", {})
    with pytest.raises(UserError, match=r"results/build/one/default/build\.json: not made yet"):
        lab.compare(plan)
