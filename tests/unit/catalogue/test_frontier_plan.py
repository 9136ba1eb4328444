"""frontier.yaml, laid over config.yaml: what it plans on an sm_90 card, and what it says on an older one."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelab.plan.arms import Device, Plan
from kernelab.plan.load import load_plan
from kernelab.plan.space import Space

ROOT = Path(__file__).parents[3]
FRONTIER = ROOT / "frontier.yaml"


def planned(arch: str) -> Plan:
    card = Device(id="card", kind="gpu", name="a card", arch=arch, uuid="GPU-0")
    return load_plan(ROOT, lambda wanted: card, {}, [FRONTIER])


@pytest.fixture(scope="module")
def plan() -> Plan:
    return planned("sm_90")


def test_only_its_own_experiments_are_planned(plan: Plan) -> None:
    assert list(plan.experiments)[:5] == [
        "frontier",
        "frontier_sizes",
        "ldmatrix_for_all",
        "kept",
        "fp32_ceiling",
    ]
    settings = [plan.experiments[name] for name in list(plan.experiments)[5:]]
    assert len(settings) == 6
    assert all(c.variable != "kernel" for experiment in settings for c in experiment.comparisons)
    assert not plan.claims


def test_every_rung_above_the_articles_is_compared_with_the_one_below(plan: Plan) -> None:
    rungs = sorted(name for name in plan.operations["sgemm"].kernels if name[:2].isdigit() and name > "13")
    assert [c.level for c in plan.experiments["frontier"].comparisons] == rungs[1:]
    assert all(arm.runs for arm in plan.experiment_arms("frontier"))


def test_the_last_rung_is_the_one_that_is_searched_and_tried_at_other_sizes(plan: Plan) -> None:
    last = plan.experiments["frontier"].comparisons[-1].level
    assert plan.searches["matrix_loads"].kernel == last
    assert last in {c.level for c in plan.experiments["frontier_sizes"].comparisons}
    for search in ("spare_warps", "matrix_loads"):
        assert all(not point.excluded for point in Space.of(plan, search).points())


def test_an_older_card_gets_a_reason_instead() -> None:
    older = planned("sm_86")
    assert "sm_90" in older.arms["23_spare_warps/default@square_4096"].excluded
    assert older.arms["17_cp_async_ring/default@square_4096"].runs
