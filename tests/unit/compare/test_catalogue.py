"""The repository's own experiments, compiled for sm_86: nothing is refused but the article's accident, and that is."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kernelab.build.kernel import build_kernel, write_build
from kernelab.build.toolchain import find_toolchain
from kernelab.compare.claimed import claim_row, find_arm, find_pair
from kernelab.compare.step import compare_experiment
from kernelab.device.identify import EMULATED
from kernelab.plan.arms import Plan
from kernelab.plan.load import load_plan
from kernelab.records.build import BuildRecord
from kernelab.records.compare import CompareRecord
from kernelab.records.layout import Layout
from kernelab.records.record import write_record
from kernelab.statistics.policy import VerdictPolicy
from kernelab.table.columns import COLUMNS

ROOT = Path(__file__).parents[3]
ACCIDENT = "dispatch_as_published"


@pytest.fixture(scope="module")
def plan() -> Plan:
    return load_plan(ROOT, lambda _: EMULATED)


@pytest.fixture(scope="module")
def records(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> dict[str, CompareRecord]:
    layout = Layout(tmp_path_factory.mktemp("catalogue") / "results", EMULATED.id)
    toolchain = find_toolchain("nvrtc")

    def build(key: str) -> None:
        planned = plan.builds[key]
        made = build_kernel(
            ROOT / plan.operations[planned.operation].folder / planned.source,
            arch=planned.arch,
            toolchain=toolchain,
            defines={name: str(value) for name, value in planned.defines.items()},
            options=planned.options,
        )
        write_build(made, layout.build(key))
        record = BuildRecord(digest="d", kernel=planned.kernel, variant=planned.variant, **made.to_json())
        write_record(layout.build_record(key), record)

    arms = [arm for arm in plan.arms.values() if arm.build and not arm.excluded]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(build, {arm.build for arm in arms}))
    return {
        name: compare_experiment(plan, name, layout, digest="d", digests=None, root=ROOT)
        for name in plan.experiments
    }


def test_no_experiment_of_ours_is_refused_falsely(records: dict[str, CompareRecord]) -> None:
    refused = {
        name: pair.confounds
        for name, record in records.items()
        for pair in record.comparisons
        if name != ACCIDENT and (pair.verdict == "confounded" or pair.confounds)
    }
    assert refused == {}
    assert sum(len(record.comparisons) for record in records.values()) > 50


def test_the_published_accident_is_refused_and_the_launch_bound_named(
    records: dict[str, CompareRecord],
) -> None:
    (pair,) = records[ACCIDENT].comparisons
    assert pair.verdict == "confounded"
    (phrase,) = pair.confounds
    assert phrase == (
        "min_blocks (.minnctapersm) is none in the base and 1 in the arm, which BETA_DISPATCH does not declare it controls"
    )
    assert "__launch_bounds__" in pair.source_diff
    assert records["if_constexpr"].comparisons[0].confounds == []


def test_every_claim_finds_its_comparison(plan: Plan, records: dict[str, CompareRecord]) -> None:
    for name, claim in plan.claims.items():
        record = records[claim.experiment]
        found = find_arm(claim, record) if claim.expect == "value" else find_pair(claim, record)
        assert found is not None, name


def test_every_claim_asks_for_a_column_that_there_is(plan: Plan) -> None:
    known = {column.name for column in COLUMNS} | {"time"}
    assert {claim.metric for claim in plan.claims.values()} <= known


def test_claims_without_a_card(plan: Plan, records: dict[str, CompareRecord]) -> None:
    rows = {
        name: claim_row(name, claim, records[claim.experiment], VerdictPolicy())
        for name, claim in plan.claims.items()
    }
    assert rows["B6"].status == "refused"
    assert rows["B4c"].measured != ""
    assert rows["B2e"].status == "holds"
    assert rows["A1"].status == "not_measured"
    of_time = [row for row in rows.values() if row.claimed_metric.startswith("time")]
    assert {row.status for row in of_time} <= {"not_measured", "refused", "no_effect", "holds"}
    assert all(row.measured == "" for row in of_time)
    # Each row of the articles' tables has its claim.
    wanted = (
        [f"A{n}" for n in range(1, 11)] + [f"B{n}" for n in range(1, 11)] + [f"N{n}" for n in range(1, 8)]
    )
    stems = {name.rstrip("abcde").partition("_")[0] for name in plan.claims}
    assert set(wanted) <= stems
