"""Confirming a search on synthetic times: real builds, and checks and times that are made up."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from synthetic_results import CARD, Lab

from kernelab.cli.main import main
from kernelab.device.identify import EMULATED
from kernelab.digests import Digests
from kernelab.errors import BrokenMachine, UserError
from kernelab.plan.arms import Plan
from kernelab.plan.load import load_plan
from kernelab.plan.space import Space
from kernelab.records.build import BuildRecord
from kernelab.records.check import CheckedProblem, CheckRecord
from kernelab.records.compare import CompareRecord
from kernelab.records.layout import Layout
from kernelab.records.record import StaleRecord, read_record, write_record
from kernelab.records.search import (
    ConfirmRecord,
    SearchCounts,
    SearchRecord,
    SearchRow,
    SearchSeconds,
    settings_text,
    write_search,
)
from kernelab.records.timing import TimedPair
from kernelab.search.confirm import ConfirmStep, confirm_search, confirmation, winners
from kernelab.search.tabulate import COLUMNS, searches_csv, searches_rows
from kernelab.timing.gate import Gate

SOURCE = """\
#ifndef UNROLL
#define UNROLL 1
#endif
#ifndef BLOCK
#define BLOCK 64
#endif
extern "C" __global__ void scale(int n, float s, const float *x, float *y)
{
    for (int j = 0; j < UNROLL; j++) {
        int i = (blockIdx.x * UNROLL + j) * BLOCK + threadIdx.x;
        if (i < n) y[i] = s * x[i];
    }
}
"""
SEARCH = """\
search:
  best:
    question: Which configuration is best?
    base: one
    over: {UNROLL: [1, 2, 4], BLOCK: [64, 128]}
    at: long
    confirm: 2
"""
TIMES = {"one/UNROLL=2@long": 0.90, "one/BLOCK=128,UNROLL=2@long": 0.95}
RATIOS = {"UNROLL=2": 0.9, "BLOCK=128,UNROLL=2": 0.95, "default": 1.0, "BLOCK=128": 1.1, "UNROLL=4": 1.2}


class Searched:
    """A project whose search is finished, as far as its records say."""

    def __init__(self, lab: Lab, ratios: dict[str, float] = RATIOS) -> None:
        self.root, self.layout = lab.root, lab.layout
        (lab.root / "kernels/scale/one.cu").write_text(SOURCE)
        self.plan = lab.plan(claims=SEARCH)
        self.digests = Digests(self.plan, lab.root)
        self.checked: list[tuple[str, str, str]] = []
        self.timed: list[str] = []
        self.write(ratios)

    @property
    def own(self) -> Layout:
        return confirmation(self.layout, "best")

    def write(self, ratios: dict[str, float], digest: str = "") -> None:
        order = sorted(ratios, key=lambda name: ratios[name])
        rows = []
        for point in Space.of(self.plan, "best").points():
            assert point.build is not None
            rank = order.index(point.name) + 1 if point.name in ratios else None
            rows.append(
                SearchRow(
                    rank=rank,
                    configuration=point.name,
                    status="finalist" if rank else "wrong_result",
                    ratio=ratios.get(point.name),
                    build_digest=self.digests.of_build(point.build),
                    settings=settings_text(point.levels),
                )
            )
        write_search(self.layout.search("best"), rows)
        raced = len(ratios)
        record = SearchRecord(
            digest=digest or self.digests.search("best"),
            name="best",
            device=CARD.id,
            base="one/default@long",
            problem="long",
            counts=SearchCounts(
                points=len(rows), excluded=0, built=len(rows), failed=0, raced=raced, finalists=raced
            ),
            seconds=SearchSeconds(build=1.0, check=1.0, race=1.0, total=2.0),
            card=None,
            started="2026-01-01T00:00:00+00:00",
        )
        write_record(self.layout.search_record("best"), record)

    def confirm(self, status: dict[str, str] | None = None) -> ConfirmRecord:
        def check(
            plan: Plan, key: str, problem: str, device: str, layout: Layout, digests: Digests, root: Path
        ) -> CheckRecord:
            self.checked.append((key, problem, device))
            kernel, _, variant = key.partition("/")
            found = (status or {}).get(key, "ok")
            if found == "broken":
                raise BrokenMachine("no memory")
            record = CheckRecord(
                digest=digests.check(key, problem, device),
                kernel=kernel,
                variant=variant,
                device=device,
                status=found,  # type: ignore[arg-type]
                note="" if found == "ok" else "off by one",
                problems={"tiny": CheckedProblem(status=found, note="")},  # type: ignore[arg-type]
            )
            write_record(layout.check(key, problem, device), record)
            return record

        def time(
            plan: Plan, experiment: str, layout: Layout, digests: Digests, *, say: Any, root: Path
        ) -> None:
            self.timed.append(experiment)
            lab = Lab.__new__(Lab)
            lab.root, lab.layout = root, layout
            refused = Gate(plan, layout, digests).refused(plan.experiment_arms(experiment))
            pairs = [
                TimedPair(base=c.base, arm=c.arm, session="s1")
                for c in plan.experiments[experiment].comparisons
                if c.arm not in refused
            ]
            lab.time(plan, experiment, TIMES, record={"digest": digests.timing(experiment), "pairs": pairs})

        step = ConfirmStep(
            plan=self.plan,
            name="best",
            load=lambda over: load_plan(self.root, lambda _: CARD, over),
            layout=self.layout,
            digests=self.digests,
            root=self.root,
        )
        return confirm_search(step, say=lambda line: None, check=check, time=time)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The builds of a confirmation, made once."""
    searched = Searched(Lab(tmp_path_factory.mktemp("built")))
    searched.confirm()
    return searched.own.results / "build"


@pytest.fixture
def searched(lab: Lab, built: Path) -> Searched:
    searched = Searched(lab)
    shutil.copytree(built, searched.own.results / "build")
    return searched


def test_the_best_get_the_verdict_of_a_controlled_comparison(searched: Searched) -> None:
    record = searched.confirm()
    assert record == read_record(
        searched.layout.confirmed("best"), ConfirmRecord, searched.digests.confirm("best")
    )
    assert [(w.rank, w.configuration, w.verdict) for w in record.winners] == [
        (1, "UNROLL=2", "faster"),
        (2, "BLOCK=128,UNROLL=2", "faster"),
    ]
    best = record.winners[0]
    assert best.ratio is not None
    assert best.ratio_low is not None
    assert best.ratio_high is not None
    assert best.ratio_low < 0.90 < best.ratio_high
    assert (best.search_ratio, best.settings) == (0.9, {"UNROLL": "2", "BLOCK": "64"})
    assert searched.timed == ["search_best"]


def test_the_certificate_of_a_winner_is_verified(
    searched: Searched, capsys: pytest.CaptureFixture[str]
) -> None:
    searched.confirm()
    (path,) = (searched.own.device / "compare").glob("*.json")
    for pair in read_record(path, CompareRecord).comparisons:
        assert main(["verify", pair.certificate, str(searched.own.results)]) == 0
    honest = pair.certificate.replace("faster", "slower")
    assert honest != pair.certificate
    assert main(["verify", honest, str(searched.own.results)]) != 0
    assert "not honest" in capsys.readouterr().out


def test_every_arm_is_built_and_checked_as_an_experiment_is(lab: Lab) -> None:
    searched = Searched(lab)
    searched.confirm()
    variants = ["default", "UNROLL=2", "BLOCK=128,UNROLL=2"]
    for variant in variants:
        assert (
            read_record(searched.own.build_record(f"one/{variant}"), BuildRecord).entries["scale"].registers
            > 0
        )
    arms = [(f"one/{v}", p, d) for v in variants for p, d in (("small", CARD.id), ("long", CARD.id))]
    emulated = [(f"one/{v}", "small", EMULATED.id) for v in variants]
    library = [("00_library/default", "small", CARD.id), ("00_library/default", "long", CARD.id)]
    assert sorted(searched.checked) == sorted(arms + emulated + library)


def test_what_is_current_is_neither_built_nor_checked_again(searched: Searched) -> None:
    searched.confirm()
    written = searched.own.build_record("one/UNROLL=2").stat().st_mtime_ns
    searched.checked.clear()
    searched.confirm()
    assert searched.checked == []
    assert searched.own.build_record("one/UNROLL=2").stat().st_mtime_ns == written


def test_a_new_winner_alone_is_built_and_checked(searched: Searched) -> None:
    searched.confirm()
    searched.checked.clear()
    searched.write(RATIOS | {"UNROLL=4": 0.5})
    assert [w.configuration for w in searched.confirm().winners] == ["UNROLL=4", "UNROLL=2"]
    assert {key for key, *_ in searched.checked} == {"one/UNROLL=4"}


def test_records_of_the_experiments_are_taken_over(searched: Searched) -> None:
    """The base is built and checked before a search, and a winner may be an arm of an experiment."""
    searched.confirm()
    for folder in ("build", f"{CARD.id}/check", "emulated/check"):
        shutil.move(searched.own.results / folder, searched.layout.results / folder)
    searched.checked.clear()
    searched.confirm()
    assert searched.checked == []
    record = searched.own.build_record("one/default")
    assert record.read_bytes() == searched.layout.build_record("one/default").read_bytes()
    cubin = searched.own.build("one/default") / "kernel.cubin"
    assert cubin.read_bytes().startswith(b"\x7fELF")


def test_a_stale_record_of_the_experiments_is_not_taken_over(searched: Searched) -> None:
    searched.confirm()
    theirs, own = (layout.build_record("one/UNROLL=2") for layout in (searched.layout, searched.own))
    theirs.parent.mkdir(parents=True)
    stale = json.loads(own.read_text()) | {"digest": "old"}
    theirs.write_text(json.dumps(stale))
    own.unlink()
    searched.confirm()
    assert read_record(own, BuildRecord).digest != "old"


def test_a_winner_that_a_check_refuses_is_not_measured_and_says_why(searched: Searched) -> None:
    record = searched.confirm({"one/UNROLL=2": "wrong_result"})
    assert record.winners[0].verdict == "not_measured"
    assert "wrong_result: off by one" in record.winners[0].note
    assert record.winners[0].ratio is None
    assert record.winners[1].verdict == "faster"


def test_a_broken_machine_ends_the_step_and_leaves_no_record(searched: Searched) -> None:
    with pytest.raises(BrokenMachine, match="no memory"):
        searched.confirm({"one/UNROLL=2": "broken"})
    assert not searched.layout.confirmed("best").exists()
    assert len(searched.confirm().winners) == 2


def test_the_base_among_the_best_is_said_and_not_compared_with_itself(searched: Searched) -> None:
    searched.write(RATIOS | {"default": 0.92})
    record = searched.confirm()
    assert [(w.configuration, w.verdict) for w in record.winners] == [
        ("UNROLL=2", "faster"),
        ("default", "identical_code"),
        ("BLOCK=128,UNROLL=2", "faster"),
    ]
    assert record.winners[1].note == "the base itself"


def test_a_search_of_other_settings_is_refused(searched: Searched) -> None:
    searched.write(RATIOS, digest="old")
    with pytest.raises(StaleRecord, match="other settings"):
        searched.confirm()


def test_a_search_of_another_source_is_refused(searched: Searched) -> None:
    path = searched.layout.search("best")
    path.write_text(
        path.read_text().replace(searched.digests.of_build(searched.plan.builds["one/UNROLL=2"]), "0" * 64)
    )
    with pytest.raises(StaleRecord, match="UNROLL=2 was built from other settings"):
        searched.confirm()


def test_nothing_that_came_through_leaves_no_winner(searched: Searched) -> None:
    searched.write({})
    assert searched.confirm().winners == []
    assert searched.timed == []
    (row,) = searches_rows(searched.plan, searched.layout, searched.digests)
    assert (row.verdict, row.rank) == ("not_measured", None)
    assert "no configuration came through" in row.note


def test_confirming_needs_a_gpu(searched: Searched) -> None:
    step = ConfirmStep(
        plan=searched.plan.model_copy(update={"device": EMULATED}),
        name="best",
        load=lambda over: searched.plan,
        layout=searched.layout,
        digests=searched.digests,
    )
    with pytest.raises(UserError, match="confirm best: needs a GPU"):
        confirm_search(step)


def test_searches_csv_has_a_row_a_winner(searched: Searched) -> None:
    searched.confirm()
    rows = list(searches_rows(searched.plan, searched.layout, searched.digests))
    head, first, second = searches_csv(rows).splitlines()
    assert tuple(head.split(",")) == COLUMNS
    assert first.startswith(
        f"best,Which configuration is best?,one/default@long,long,{CARD.id},1,UNROLL=2,faster,0.8"
    )
    assert second.split(",")[5] == "2"
    assert (rows[0].points, rows[0].built, rows[0].raced) == (6, 6, 5)


def test_a_missing_confirmation_is_asked_for(searched: Searched) -> None:
    with pytest.raises(UserError, match=r"confirmed\.json: not made yet; run snakemake"):
        list(searches_rows(searched.plan, searched.layout, searched.digests))


@pytest.mark.parametrize(
    ("digests", "most", "expected"),
    [
        ("abc", 2, "ab"),  # no base among them
        ("abc", 9, "abc"),
        ("xab", 1, "xa"),  # the base ranks first: said, and one challenger still
        ("abx", 2, "ab"),  # the base ranks behind: left out
        ("x", 3, "x"),
        ("", 3, ""),
    ],
)
def test_which_rows_are_winners(digests: str, most: int, expected: str) -> None:
    rows = [
        SearchRow(rank=rank, configuration=d, status="finalist", ratio=1.0, build_digest=d)
        for rank, d in enumerate(digests, start=1)
    ]
    unranked = SearchRow(rank=None, configuration="z", status="compile_error", build_digest="z")
    assert "".join(row.build_digest for row in winners([unranked, *reversed(rows)], most, "x")) == expected
