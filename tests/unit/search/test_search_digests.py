from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from scaled_project import CATALOGUE, ScaledProject

from kernelab.plan.space import Space

Edit = Callable[[ScaledProject], object]


def _search(project: ScaledProject, **keys: object) -> None:
    project.config["search"]["factors"] |= keys  # type: ignore[index]


def _catalogue(project: ScaledProject, old: str, new: str) -> None:
    assert old in CATALOGUE
    (project.folder / "kernels.yaml").write_text(CATALOGUE.replace(old, new))


def _source(project: ScaledProject, old: str, new: str) -> None:
    source = project.folder / "scaled.cu"
    assert old in source.read_text()
    source.write_text(source.read_text().replace(old, new))


def test_a_build_has_one_digest_whether_the_plan_holds_it_or_not(tmp_path: Path) -> None:
    project = ScaledProject(tmp_path)
    plan, digests = project.plan, project.digests()
    by_name = {r.configuration.name: r.digest for r in project.requests()}
    assert {key for key in plan.builds if key != "scaled/default"} == {"scaled/N=4"}
    assert by_name["N=4"] == digests.build("scaled/N=4")
    assert by_name["default"] == digests.build("scaled/default")
    assert len(set(by_name.values())) == len(by_name) == 4


@pytest.mark.parametrize(
    "edit",
    [
        lambda p: _search(p, over={"N": [2, 3, 4, 5, 6]}),
        lambda p: _search(p, budget_s=5),
        lambda p: _search(p, confirm=2),
        lambda p: _search(p, seed=2),
        lambda p: _search(p, sampler="random"),
        lambda p: _search(p, at="ragged"),
        lambda p: _search(p, hold={"PAD": 4}),
        lambda p: p.config["problems"].update(whole={"n": 8192}),
        lambda p: p.config.update(check={"seed": 9}),
        lambda p: p.config.update(arch="sm_90"),
        lambda p: _source(p, "% 64];", "% 32];"),
        lambda p: _catalogue(p, "N != 99", "N != 98"),
        lambda p: _catalogue(p, "dynamic_shared: 512", "dynamic_shared: 1024"),
        lambda p: (p.folder / "operation.py").write_text("def reference(problem, arrays):\n    return {}\n"),
    ],
)
def test_what_a_search_depends_on_is_in_its_digest(tmp_path: Path, edit: Edit) -> None:
    project = ScaledProject(tmp_path)
    before = project.digests()
    search, confirm = before.search("factors"), before.confirm("factors")
    edit(project)
    after = project.digests()
    assert after.search("factors") != search
    assert after.confirm("factors") != confirm


@pytest.mark.parametrize(
    "edit",
    [
        lambda p: _search(p, question="Another way to ask?"),
        lambda p: _source(p, "// y = N x", "// y = N times x\n"),
        lambda p: _catalogue(p, "about: the factor", "about: what x is multiplied by"),
        lambda p: _catalogue(p, "reason: 99 is not a factor", "reason: too large"),
        # what `keep` adds
        lambda p: _catalogue(p, "large: {N: 30, PAD: 32}", "large: {N: 30, PAD: 32}, best: {N: 5, PAD: 0}"),
        lambda p: p.config["experiments"].update(
            two={"question": "?", "base": "scaled", "vary": {"N": [7, 8]}}
        ),
    ],
)
def test_what_a_search_does_not_depend_on_is_not(tmp_path: Path, edit: Edit) -> None:
    project = ScaledProject(tmp_path)
    before = project.digests()
    edit(project)
    after = project.digests()
    assert after.search("factors") == before.search("factors")
    assert after.confirm("factors") == before.confirm("factors")


def test_a_composite_that_is_searched_counts_with_what_it_sets(tmp_path: Path) -> None:
    project = ScaledProject(tmp_path, {"both": ["small", "large"]})
    before = project.digests().search("factors")
    _catalogue(project, "large: {N: 30,", "large: {N: 31,")
    assert project.digests().search("factors") != before
    assert [c.name for c in Space.of(project.plan, "factors").points()] == ["default", "N=31,PAD=32"]


def test_a_wider_confirmation_policy_reaches_the_confirmation_alone(tmp_path: Path) -> None:
    project = ScaledProject(tmp_path)
    before = project.digests()
    project.config["target_card"] = "H200"
    after = project.digests()
    assert after.search("factors") == before.search("factors")
    assert after.confirm("factors") != before.confirm("factors")
