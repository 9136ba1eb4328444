"""`only` plans some experiments: the others, and the claims on them, are left out."""

from __future__ import annotations

import pytest
from plan_project import CONFIG, Project

from kernelab.digests import Digests
from kernelab.errors import UserError

TWO = (
    CONFIG
    + """\
  pad: {question: q, base: 12_double, vary: {A_PAD: [2, 0]}}
claims:
  a: {text: t, experiment: bounds, card: c, source: s}
  b: {text: t, experiment: pad, card: c, source: s}
"""
)


def test_only_the_named_experiments_are_planned(project: Project) -> None:
    project.config(TWO)
    whole, some = project.plan(), project.plan(overrides={"only": ["pad"]})
    assert list(whole.experiments) == ["bounds", "pad"]
    assert list(some.experiments) == ["pad"]
    assert list(some.claims) == ["b"]
    assert set(some.builds) == {"12_double/default", "12_double/A_PAD=0"}
    assert some.experiments["pad"] == whole.experiments["pad"]
    assert Digests(some, project.root).compare("pad") == Digests(whole, project.root).compare("pad")


def test_in_the_file_one_name_needs_no_list_and_none_means_all(project: Project) -> None:
    project.config("only: pad\n" + TWO)
    assert list(project.plan().experiments) == ["pad"]
    project.config("only: []\n" + TWO)
    assert list(project.plan().experiments) == ["bounds", "pad"]
    assert list(project.plan(overrides={"only": ["pad", "bounds"]}).experiments) == ["bounds", "pad"]


def test_an_experiment_left_out_need_not_fit_the_catalogue(project: Project) -> None:
    project.config(TWO.replace("base: 12_double", "base: 99_future"))
    assert list(project.plan(overrides={"only": "bounds"}).experiments) == ["bounds"]
    with pytest.raises(UserError, match="99_future"):
        project.plan()


def test_an_unknown_name_has_a_suggestion(project: Project) -> None:
    project.config(TWO)
    with pytest.raises(UserError, match=r"only: .*pads is no experiment; did you mean pad\?"):
        project.plan(overrides={"only": ["pads"]})


def test_a_name_that_looks_like_a_number(project: Project) -> None:
    project.config("only: 12\n" + CONFIG.replace("  bounds:", "  12:"))
    assert list(project.plan().experiments) == ["12"]
