"""Premises that expire, and two boxes side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from synthetic_results import CARD, Lab

from kernelab.build.source import source_digest
from kernelab.cli.main import main
from kernelab.compare.staleness import expired
from kernelab.digests import Digests
from kernelab.errors import UserError
from kernelab.plan.arms import Plan
from kernelab.records.compare import CompareRecord
from kernelab.records.layout import Layout
from kernelab.records.record import read_record, write_record

BASE, ARM = "one/default", "one/UNROLL=2"


def built_by_the_plan(lab: Lab, plan: Plan, sass: dict[str, str] | None = None) -> None:
    """Builds whose digests and sources are the plan's, with the given hashes of their code."""
    digests = Digests(plan, lab.root)
    source = source_digest(lab.root / "kernels/scale/one.cu")
    lab.build(
        plan,
        {
            key: {
                "digest": digests.build(key),
                "source_sha256": source,
                "entry": {"sass_sha256": (sass or {}).get(key, key * 4)},
            }
            for key in plan.builds
        },
    )


@pytest.fixture
def judged(lab: Lab) -> tuple[Lab, Plan, CompareRecord]:
    plan = lab.plan()
    built_by_the_plan(lab, plan)
    lab.time(plan, "unroll", {f"{ARM}@long": 0.97})
    record = lab.compare(plan)
    write_record(lab.layout.compare("unroll"), record)
    return lab, plan, record


def why(lab: Lab, plan: Plan, record: CompareRecord) -> list[str]:
    return [item.why for item in expired(plan, lab.layout, Digests(plan, lab.root), [record], lab.root)]


def test_a_fresh_verdict_is_not_stale(judged: tuple[Lab, Plan, CompareRecord]) -> None:
    assert why(*judged) == []


def test_a_base_that_compiles_to_other_code_is_an_expired_premise(
    judged: tuple[Lab, Plan, CompareRecord],
) -> None:
    lab, plan, record = judged
    built_by_the_plan(lab, plan, {BASE: "new" * 20})
    (found,) = why(lab, plan, record)
    assert (
        found
        == f"a premise expired: its base {BASE}@long compiles to other code ({(BASE * 4)[:12]} then, newnewnewnew now)"
    )


def test_an_arm_that_compiles_to_other_code_is_named(judged: tuple[Lab, Plan, CompareRecord]) -> None:
    lab, plan, record = judged
    built_by_the_plan(lab, plan, {ARM: "new" * 20})
    (found,) = why(lab, plan, record)
    assert found.startswith(f"its arm {ARM}@long compiles to other code")


def test_an_edited_source_that_is_not_rebuilt_is_named(judged: tuple[Lab, Plan, CompareRecord]) -> None:
    lab, _, record = judged
    path = lab.root / "kernels/scale/one.cu"
    path.write_text("int a = 2;\n")
    (found,) = why(lab, lab.plan(), record)
    assert "has another source" in found


def test_a_comment_expires_nothing(judged: tuple[Lab, Plan, CompareRecord]) -> None:
    lab, _, record = judged
    path = lab.root / "kernels/scale/one.cu"
    path.write_text("// new\n" + path.read_text())
    assert why(lab, lab.plan(), record) == []


def test_a_verdict_of_another_architecture_is_judged_by_its_source(
    judged: tuple[Lab, Plan, CompareRecord],
) -> None:
    lab, plan, record = judged
    code = {
        name: made.model_copy(update={"arch": "sm_90", "sass": "9" * 64})
        for name, made in record.code.items()
    }
    assert why(lab, plan, record.model_copy(update={"code": code})) == []
    (lab.root / "kernels/scale/one.cu").write_text("int a = 3;\n")
    assert len(why(lab, lab.plan(), record.model_copy(update={"code": code}))) == 1


def test_a_verdict_on_an_arm_that_is_gone(judged: tuple[Lab, Plan, CompareRecord]) -> None:
    lab, _, record = judged
    plan = lab.plan("x: {question: q, base: one, vary: {BLOCK: [64, 128]}}")
    assert why(lab, plan, record) == [f"its arm {ARM}@long is no longer in the plan"]


def test_the_command_lists_and_exits_3(
    judged: tuple[Lab, Plan, CompareRecord],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lab, plan, _ = judged
    monkeypatch.chdir(lab.root)
    monkeypatch.setattr("kernelab.cli.compare_tools.read_plan", lambda _: plan)
    assert main(["stale"]) == 0
    assert capsys.readouterr().out == "0 of 1 verdicts are stale\n"
    built_by_the_plan(lab, plan, {BASE: "new" * 20})
    assert main(["stale"]) == 3
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith(f"{CARD.id} unroll: {BASE}@long -> {ARM}@long was faster: a premise expired")
    assert said[1] == "1 of 1 verdicts are stale; run snakemake to renew them"


class Box:
    """Another results folder with the same comparison."""

    def __init__(self, lab: Lab, root: Path, ratio: float, device: str = "other-card-1") -> None:
        other = Lab(root)
        self.results = other.layout.results
        plan = other.plan("x: {question: q, base: one, vary: {UNROLL: [1, 2]}}")
        other.build(plan)
        other.time(plan, "x", {f"{ARM}@long": ratio})
        layout = Layout(self.results, device)
        record = other.compare(plan, "x").model_copy(update={"device": device, "card": device})
        self.path = layout.compare("x")
        write_record(self.path, record)


def diff(one: Path, two: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, list[str]]:
    status = main(["diff", str(one), str(two), *options])
    captured = capsys.readouterr()
    return status, (captured.out + captured.err).splitlines()


@pytest.mark.parametrize(
    ("first", "second", "status", "answer"),
    [(0.96, 0.95, 0, "agree"), (0.96, 1.04, 3, "flip"), (0.96, 1.0, 3, "fade"), (1.0, 1.0, 0, "agree")],
)
def test_two_boxes(
    lab: Lab,
    tmp_path: Path,
    first: float,
    second: float,
    status: int,
    answer: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    one, two = Box(lab, tmp_path / "a", first), Box(lab, tmp_path / "b", second, "card-2")
    found, said = diff(one.results, two.results, capsys, "--all")
    assert found == status
    assert "differs: card: other-card-1 and card-2" in said
    assert any(line.startswith(f"{answer}: x: {BASE}@long -> {ARM}@long: ") for line in said)
    assert said[-1].startswith("1 comparisons: ")


def test_agreement_is_listed_only_when_asked(
    lab: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = Box(lab, tmp_path / "a", 0.96), Box(lab, tmp_path / "b", 0.96)
    _, said = diff(one.results, two.results, capsys)
    assert said == ["1 comparisons: 1 agree, 0 flip, 0 fade, 0 unclear"]


def test_another_method_is_refused(lab: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = Box(lab, tmp_path / "a", 0.96), Box(lab, tmp_path / "b", 0.96)
    content = json.loads(two.path.read_text())
    content["method"]["sample_ms"] = "0.1"
    two.path.write_text(json.dumps(content))
    status, said = diff(one.results, two.results, capsys)
    assert status == 4
    assert said[0].startswith("refused: x: the two were not measured by one method (sample_ms: 2.0 and 0.1)")


def test_what_only_one_folder_holds_is_listed(
    lab: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = Box(lab, tmp_path / "a", 0.96), Box(lab, tmp_path / "b", 0.96)
    record = read_record(two.path, CompareRecord)
    write_record(two.path.with_name("y.json"), record.model_copy(update={"experiment": "y"}))
    _, said = diff(one.results, two.results, capsys)
    assert f"only in {two.results}: y: {BASE}@long -> {ARM}@long" in said


def test_a_folder_of_two_cards_must_be_named(
    lab: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = Box(lab, tmp_path / "a", 0.96)
    record = read_record(one.path, CompareRecord)
    write_record(Layout(one.results, "card-2").compare("x"), record)
    write_record(Layout(one.results, "emulated").compare("x"), record)
    status, said = diff(one.results, one.results, capsys)
    assert status == 1
    assert said[0] == f"kernelab: {one.results}: holds card-2, other-card-1; name one of these folders"
    assert diff(one.results / "card-2", one.results / "other-card-1", capsys)[0] == 0


def test_an_empty_folder_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, said = diff(tmp_path, tmp_path, capsys)
    assert status == 1
    assert "no compare records below it" in said[0]


def test_a_damaged_record_is_an_error(lab: Lab, tmp_path: Path) -> None:
    one = Box(lab, tmp_path / "a", 0.96)
    one.path.write_text("{")
    with pytest.raises(UserError, match="damaged"):
        read_record(one.path, CompareRecord)
