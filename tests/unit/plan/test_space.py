"""A search's space: every valid point once, in order; excluded ones say why; a search changes nothing else."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plan_project import CATALOGUE, CONFIG, Project
from search_project import SEARCHING

from kernelab.device.identify import EMULATED
from kernelab.digests import Digests
from kernelab.errors import UserError
from kernelab.plan.load import load_plan, overlay
from kernelab.plan.search import confirm_overrides
from kernelab.plan.space import Space
from kernelab.plan.tabular import plan_csv

ROOT = Path(__file__).parents[3]
LEVELS = {
    "BM": [64, 128, 256],
    "TM": [4, 8, 16, 48],
    "A_PAD": [0, 2, 4],
    "MIN_BLOCKS": ["none", 1, 2],
    "BETA_READ": [True, False],
    "tile": ["narrow", "wide"],
}


def searched(project: Project, **search: Any) -> Space:
    declared = {"question": "q", "base": "12_double", **search}
    return Space.of(project.plan(overrides={"search": {"x": declared}}), "x")


@st.composite
def overs(draw: st.DrawFn) -> dict[str, list[Any]]:
    """Levels of some parameters, or of the composite in the place of the two that it moves."""
    names = draw(st.sampled_from([["BM", "TM"], ["tile"], ["BM"], ["TM"]])) + draw(
        st.lists(st.sampled_from(["A_PAD", "MIN_BLOCKS", "BETA_READ"]), unique=True)
    )
    order = draw(st.permutations(names))
    over = {
        name: draw(st.lists(st.sampled_from(LEVELS[name]), min_size=1, max_size=4, unique=True))
        for name in order
    }
    first = order[0]
    return over if any(len(levels) > 1 for levels in over.values()) else over | {first: LEVELS[first]}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(over=overs())
def test_every_valid_point_once_in_order(project: Project, over: dict[str, list[Any]]) -> None:
    space = searched(project, over=over)
    points = list(space.points())
    assert points == list(space.points())
    assert [p.levels for p in points] == [
        {key: str(level).lower() for key, level in zip(over, levels, strict=True)}
        for levels in itertools.product(*over.values())
    ]
    assert len(points) == space.size
    builds = [p.build for p in points if p.build is not None]
    assert len({build.key for build in builds}) == len(builds)
    for index, point in enumerate(points):
        assert space.nth(index) == space.point(point.levels) == point
        if point.build is None:
            assert point.arm is None
            assert point.excluded == "BM % TM == 0: a block is made of whole thread tiles"
            assert "TM=48" in point.name
        else:
            assert point.excluded == ""
            assert point.build.defines["BM"] % point.build.defines["TM"] == 0
            assert point.arm is not None
            assert (point.build.variant, point.build.key) == (point.name, point.arm.build)
    with pytest.raises(IndexError):
        space.nth(space.size)


def test_points_are_the_arms_that_an_experiment_has(project: Project) -> None:
    """The space makes builds and arms by itself, for speed; they must be those of the plan, name for name."""
    search: dict[str, Any] = {
        "hold": {"A_PAD": 0, "arch": "sm_80", "l2": "hot"},
        "over": {"BM": [64, 128], "TM": [8, 16], "MIN_BLOCKS": ["none", 1]},
        "at": "small",
    }
    space = searched(project, **search)
    points = list(space.points())
    plan = project.plan(overrides=confirm_overrides(space.planned, [p.levels for p in points]))
    (experiment,) = plan.experiments.values()
    assert experiment.name == "search_x"
    assert experiment.arms[0] == space.planned.base.name
    assert [plan.arms[name] for name in experiment.arms[1:]] == [p.arm for p in points]
    assert [plan.builds[p.arm.build] for p in points if p.arm] == [p.build for p in points]
    assert plan.builds[space.planned.base.build] == space.planned.base_build
    assert points[0].name == "A_PAD=0,BM=64,TM=8,arch=sm_80"
    assert [(c.base, c.kind, c.variable, c.composite) for c in experiment.comparisons] == [
        (experiment.arms[0], "configuration", "configuration", True)
    ] * len(points)
    assert [c.level for c in experiment.comparisons] == [p.name for p in points]


def test_a_confirmation_is_laid_over_other_overrides(project: Project) -> None:
    project.config(SEARCHING)
    space = Space.of(project.plan(), "tiles")
    more = overlay({"timing": {"processes": 3}}, confirm_overrides(space.planned, [space.nth(0).levels]))
    plan = project.plan(overrides=more)
    assert (list(plan.experiments), plan.timing.processes) == (["search_tiles"], 3)
    assert plan.arms[plan.experiments["search_tiles"].arms[1]] == space.nth(0).arm


def test_equal_builds_appear_once(project: Project) -> None:
    # Two levels of one macro value are the same build under two names.
    project.catalogue(CATALOGUE.replace("levels: {none: 0, 1: 1, 2: 2}", "levels: {none: 0, off: 0, 1: 1}"))
    space = searched(project, over={"MIN_BLOCKS": ["off", "none", 1], "A_PAD": [0, 2]})
    assert space.size == 6
    assert [p.levels["MIN_BLOCKS"] for p in space.points()] == ["off", "off", "1", "1"]


def test_a_composite_keeps_its_name_and_moves_its_parameters(project: Project) -> None:
    space = searched(project, over={"tile": ["narrow", "wide"], "A_PAD": [0, 2]}, hold={"MIN_BLOCKS": 1})
    assert space.parameters == ("BM", "TM", "A_PAD", "MIN_BLOCKS")
    wide = space.point({"A_PAD": "2", "tile": "wide"})
    assert wide.build is not None
    assert (wide.levels, wide.name) == ({"tile": "wide", "A_PAD": "2"}, "BM=256,MIN_BLOCKS=1,TM=16")
    assert wide.build.levels["TM"] == "16"


def test_the_default_point_is_called_default(project: Project) -> None:
    assert searched(project, over={"A_PAD": [0, 2]}).point({"A_PAD": "2"}).name == "default"


@pytest.mark.parametrize(
    ("levels", "says"),
    [
        ({"A_PAD": "2", "BN": "1"}, "BN"),
        ({}, "a point needs a level of A_PAD"),
        ({"A_PAD": "4"}, "4 is not a level"),
    ],
)
def test_a_point_outside_the_space(project: Project, levels: dict[str, str], says: str) -> None:
    with pytest.raises(UserError, match=says) as caught:
        searched(project, over={"A_PAD": [0, 2]}).point(levels)
    assert str(caught.value).startswith("config.yaml: search.x.over")


def test_a_kernel_that_needs_a_newer_card_excludes_every_point(project: Project) -> None:
    newer = CATALOGUE.replace(
        "    source: k.cu\n    idea: two", "    source: k.cu\n    min_arch: 90\n    idea: two"
    )
    project.catalogue(newer)
    points = list(searched(project, over={"A_PAD": [0, 2]}).points())
    assert len(points) == 2
    assert all("sm_90" in p.excluded and p.build is None for p in points)


def test_no_such_search(project: Project) -> None:
    project.config(SEARCHING)
    with pytest.raises(UserError, match=r"tile: no search.*did you mean tiles"):
        Space.load(project.root, lambda _: EMULATED, "tile")
    assert Space.load(project.root, lambda _: EMULATED, "tiles").size == 12


@pytest.mark.parametrize("hold", ["", "    hold: {MIN_BLOCKS: 2, n: 512, toolchain: nvcc}\n"])
def test_a_search_changes_no_digest_and_no_written_arm(project: Project, hold: str) -> None:
    experiment = "  pad: {question: q, base: 12_double, vary: {A_PAD: [2, 0]}}\n"

    def digests(config: str) -> dict[str, Any]:
        project.config(
            config.replace("search:", f"{experiment}search:").replace("    over:", f"{hold}    over:")
        )
        plan = project.plan()
        made = Digests(plan, project.root)
        arms = plan.arms.values()
        found: dict[str, Any] = {f"build {arm.build}": made.build(arm.build) for arm in arms if arm.build}
        found |= {f"check {a.record_key}": made.check(a.record_key, "small", EMULATED.id) for a in arms}
        found |= {f"timing {name}": made.timing(name) for name in plan.experiments}
        found |= {f"compare {name}": made.compare(name) for name in plan.experiments}
        return found | {"plan": made.plan, "arms": plan.arms}

    without, searching = digests(f"{CONFIG}search: {{}}\n"), digests(SEARCHING)
    larger = digests(SEARCHING.replace("[64, 128]", "[64, 128, 256]"))
    assert len(without) > 8
    assert searching["plan"] == larger["plan"]
    if hold:  # the base's build is one more of the plan
        assert searching.pop("plan") != without.pop("plan")
        larger.pop("plan")
    assert searching == larger == without


def test_the_base_of_a_search_is_a_build_of_the_plan_and_an_arm_of_no_table(project: Project) -> None:
    project.config(SEARCHING.replace("    over:", "    hold: {MIN_BLOCKS: 2}\n    over:"))
    plan = project.plan()
    planned = plan.searches["tiles"]
    assert planned.base.name == "12_double/MIN_BLOCKS=2@square"
    assert planned.base.name not in plan.arms
    assert plan.builds[planned.base.build] == planned.base_build
    assert "MIN_BLOCKS=2" not in plan_csv(plan)


def test_a_large_space_is_quick_to_enumerate() -> None:
    """The catalogue's kernel of the most constraints: 20,000 raw points within about a second."""
    over: dict[str, list[Any]] = {
        "BM": [64, 128, 256],
        "BN": [64, 128, 256],
        "BK": [8, 16, 32],
        "TM": [4, 8, 16],
        "TN": [4, 8],
        "WM": [32, 64, 128],
        "WN": [32, 64, 128],
        "WNITER": [1, 2, 4],
        "A_PAD": [0, 2, 4],
        "MIN_BLOCKS": ["none", 1],
    }
    search = {"question": "q", "base": "12_double_buffered", "over": over}
    space = Space.of(load_plan(ROOT, lambda _: EMULATED, {"search": {"large": search}}), "large")
    start = time.process_time()
    points = list(space.points())
    spent = time.process_time() - start
    assert space.size == len(points) == 26_244
    assert 1000 < sum(not p.excluded for p in points) < 20_000
    assert spent * 20_000 / space.size < 2.0


def test_the_space_of_seed_a_is_what_its_tuner_tries() -> None:
    space = Space.load(ROOT, lambda _: EMULATED, "seed_a_space")
    points = list(space.points())
    # The tuner's own table has 196 valid of 256.
    assert (space.size, sum(not p.excluded for p in points)) == (256, 196)
