"""`keep` adds one level to the catalogue, and leaves every other character of it alone."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest
from keep_project import CATALOGUE, RANKED, KeepProject, arguments

from kernelab.cli.keep import keep
from kernelab.device.identify import EMULATED
from kernelab.errors import UserError
from kernelab.plan.arms import Plan
from kernelab.plan.load import load_plan
from kernelab.records.layout import RESULTS, Layout


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KeepProject:
    monkeypatch.chdir(tmp_path)
    made = KeepProject(tmp_path)
    made.searched("best", *RANKED)
    return made


def plan_with(experiment: dict[str, object]) -> Plan:
    return load_plan(Path(), lambda _: EMULATED, {"experiments": {"x": {"question": "q", **experiment}}})


def added(project: KeepProject, before: str = CATALOGUE) -> list[str]:
    """The lines that are new; a line that went is a failure."""
    lines = list(difflib.ndiff(before.splitlines(), project.file.read_text(encoding="utf-8").splitlines()))
    assert not [line for line in lines if line.startswith("-")]
    return [line[2:] for line in lines if line.startswith("+")]


def test_the_level_stands_behind_the_kernel_and_comments_stay(
    project: KeepProject, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(arguments("best", "h200"))
    assert added(project) == [
        "    composites:",
        "      configuration:",
        '        about: "points of its parameter space that a search found, beside its defaults"',
        "        levels:",
        "          default: {UNROLL: 1, BLOCK: 64}",
        "          h200: {UNROLL: 4, BLOCK: 128}",
    ]
    told = capsys.readouterr().out
    assert "kernels/scale/kernels.yaml: kernels.one.composites.configuration.levels.h200" in told
    assert "vary: {configuration: [default, h200]}" in told
    plan = plan_with({"base": "one", "vary": {"configuration": ["default", "h200"]}})
    (comparison,) = plan.experiments["x"].comparisons
    assert plan.arms[comparison.arm].build == "one/BLOCK=128,UNROLL=4"
    assert comparison.composite


def test_a_second_level_of_another_rank(project: KeepProject) -> None:
    keep(arguments("best", "first"))
    before = project.file.read_text(encoding="utf-8")
    keep(arguments("best", "third", rank=3))
    assert added(project, before) == ["          third: {UNROLL: 2, BLOCK: 64}"]


def test_other_parameters_fill_the_levels_up(project: KeepProject) -> None:
    keep(arguments("best", "first"))
    project.searched("bound", {"BOUND": "1"})
    keep(arguments("bound", "bounded"))
    text = project.file.read_text(encoding="utf-8")
    assert "          default: {UNROLL: 1, BLOCK: 64, CACHE: true, BOUND: none}\n" in text
    assert "          first: {UNROLL: 4, BLOCK: 128, CACHE: true, BOUND: none}\n" in text
    assert "          bounded: {UNROLL: 1, BLOCK: 64, CACHE: false, BOUND: 1}\n" in text
    plan = plan_with({"base": "one", "vary": {"configuration": ["default", "first", "bounded"]}})
    assert plan.arms[plan.experiments["x"].arms[2]].build == "one/BOUND=1,CACHE=false"


def test_a_kernel_in_flow_style(project: KeepProject) -> None:
    project.searched("flow", {"UNROLL": "2"})
    keep(arguments("flow", "two"))
    text = project.file.read_text(encoding="utf-8")
    assert "levels: {default: {UNROLL: 1}, two: {UNROLL: 2}}}}}\n" in text
    assert text.startswith(CATALOGUE[: CATALOGUE.index("  two:")])


def test_composites_that_are_there_stay(project: KeepProject) -> None:
    block = "    composites:\n      both:  # kept\n        about: b\n        levels:\n"
    block += "          a: {UNROLL: 1}\n          b: {UNROLL: 2}  # kept too\n\n"
    before = CATALOGUE.replace("    launches:\n", f"{block}    launches:\n", 1)
    project.file.write_text(before, encoding="utf-8")
    keep(arguments("best", "mine"))
    assert added(project, before)[0] == "      configuration:"
    assert plan_with({"base": "one", "hold": {"configuration": "mine"}, "vary": {"CACHE": [True, False]}})


def test_line_ends_of_another_system_stay(project: KeepProject) -> None:
    project.file.write_bytes(CATALOGUE.replace("\n", "\r\n").encode())
    keep(arguments("best", "mine"))
    text = project.file.read_bytes().decode()
    assert "\r\n          mine: {UNROLL: 4, BLOCK: 128}\r\n" in text
    assert text.count("\n") == text.count("\r\n")


def test_a_file_without_a_last_newline(project: KeepProject) -> None:
    text = CATALOGUE[: CATALOGUE.index("\n  # A comment that")].rstrip()
    project.file.write_text(text, encoding="utf-8")
    (Path("config.yaml")).write_text(Path("config.yaml").read_text().partition("  flow:")[0])
    keep(arguments("best", "mine"))
    assert project.file.read_text(encoding="utf-8").startswith(f"{text}\n    composites:\n")


@pytest.mark.parametrize(
    ("name", "level", "rank", "says"),
    [
        ("bets", "x", 1, "bets: no search of config.yaml; did you mean best"),
        ("best", "x", 4, "--rank 4: .*best.csv has the ranks 1 to 3"),
        ("best", "x", 0, "--rank 0: .*ranks 1 to 3"),
        ("best", "a/b", 1, "--as a/b: not a name"),
        ("best", "default", 1, "--as default: is what the kernel's own defaults are called"),
        ("best", "x", 2, "one: this configuration is the kernel's own default"),
        ("bound", "x", 1, "bound.csv: not made yet"),
    ],
)
def test_refusals_leave_the_file_alone(
    project: KeepProject, name: str, level: str, rank: int, says: str
) -> None:
    with pytest.raises(UserError, match=says) as caught:
        keep(arguments(name, level, rank))
    assert "\n" not in str(caught.value)
    assert project.file.read_text(encoding="utf-8") == CATALOGUE


def test_a_level_that_is_there_is_refused(project: KeepProject) -> None:
    keep(arguments("best", "mine"))
    before = project.file.read_text(encoding="utf-8")
    with pytest.raises(UserError, match=r"configuration\.levels\.mine: is already there"):
        keep(arguments("best", "mine", rank=3))
    with pytest.raises(UserError, match=r"configuration\.levels\.mine: is this very configuration"):
        keep(arguments("best", "other"))
    assert project.file.read_text(encoding="utf-8") == before


def test_a_result_of_another_source_or_space_is_refused(project: KeepProject) -> None:
    (project.file.parent / "one.cu").write_text("int b;\n")
    with pytest.raises(UserError, match="measured from another source or compiler; run"):
        keep(arguments("best", "mine"))
    config = Path("config.yaml")
    config.write_text(config.read_text().replace("[1, 2, 4], BLOCK", "[1, 2], BLOCK"))
    with pytest.raises(UserError, match=r"search\.best\.over\.UNROLL: 4 is not a level"):
        keep(arguments("best", "mine"))
    assert project.file.read_text(encoding="utf-8") == CATALOGUE


def test_a_search_without_a_gpu_has_nothing_to_keep(project: KeepProject) -> None:
    path = Layout(RESULTS, EMULATED.id).search("best")
    rows = path.read_text().splitlines()
    path.write_text("\n".join([rows[0], *(row.partition(",")[2].join([",", ""]) for row in rows[1:])]) + "\n")
    with pytest.raises(UserError, match="no configuration was measured"):
        keep(arguments("best", "mine"))


def test_composites_that_two_kernels_share_are_not_edited(project: KeepProject) -> None:
    shared = "    composites: &C\n      both: {about: b, levels: {a: {UNROLL: 1}, b: {UNROLL: 2}}}\n"
    text = CATALOGUE.replace("    launches:\n", f"{shared}    launches:\n", 1)
    text = text.replace("BLOCK: *U}, launches", "BLOCK: *U}, composites: *C, launches")
    project.file.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"kernels\.one\.composites: is used in more than one place"):
        keep(arguments("best", "mine"))
    project.searched("flow", {"UNROLL": "2"})
    with pytest.raises(UserError, match=r"kernels\.two\.composites: is an alias of another place"):
        keep(arguments("flow", "mine"))
    assert project.file.read_text(encoding="utf-8") == text
