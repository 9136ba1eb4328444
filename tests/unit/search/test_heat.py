"""One heat on a bench made of numbers: what is checked, in what order it is sampled, and what ends it."""

from __future__ import annotations

from typing import Any

import pytest
from pretend_card import PretendCard
from scaled_project import ScaledProject

from kernelab.plan.space import Space
from kernelab.search.heat import WARM_S, Heats, Ruin
from kernelab.search.job import AGAIN, BASE, Checked, Contender, Heat, Raced
from kernelab.timing.faults import ArmFault
from kernelab.timing.groups import Member
from kernelab.timing.measure import Reading
from kernelab.timing.rounds import pair_rounds
from kernelab.timing.samples import COLUMNS, Sample, sample_from_row


class Card(PretendCard):
    """Counts its own time, and what is sampled. One disturbed first sample a member may be asked for."""

    def __init__(self, world: dict[str, Any]) -> None:
        super().__init__(world)
        self.now = 0.0
        self.sampled: list[str] = []
        self.announced: list[tuple[str, str, float]] = []
        self.disturbed: set[str] = set()
        self.clocks = iter([1000.0, 1200.0, 1400.0, 1490.0])

    def _log(self, line: str) -> None:
        return

    def announce(self, step: str, member: str, limit_s: float) -> None:
        self.announced.append((step, member, limit_s))

    def sample(self, member: Member, launches: int) -> Reading:
        self.sampled.append(member.name)
        reading = super().sample(member, launches)
        self.now += reading.time_ms * launches / 1e3
        if member.name in self.disturbed:
            self.disturbed.remove(member.name)
            reading = Reading(20 * reading.time_ms, 1500.0, True)
        return Reading(reading.time_ms, next(self.clocks, 1500.0), True)


class Run:
    def __init__(self, project: ScaledProject, world: dict[str, Any]) -> None:
        plan = project.plan
        planned = plan.searches["factors"]
        self.card = Card({"configurations": world, "noise": 0.0})
        self.heats = Heats(self.card, self.card, "whole", 2.0, lambda: self.card.now)
        self.base = Contender(name=BASE, arm=planned.base, build=planned.base_build, cubin="")
        self.members = [
            Contender(name=c.name, arm=c.arm, build=c.build, cubin="")
            for c in Space.of(plan, "factors").points()
            if c.arm and c.build
        ]

    def __call__(self, names: str = "N=2 N=4 N=5", **changes: Any) -> tuple[dict[str, Checked], Raced]:
        heat = Heat(
            base=self.base,
            members=[one for one in self.members if one.name in names.split()],
            check=names.split(),
            rounds=2,
            slow=3.0,
            session="screening",
            number=4,
            seed=9,
        ).model_copy(update=changes)
        *checked, raced = list(self.heats.run(heat))
        assert isinstance(raced, Raced)
        return {one.name: one for one in checked if isinstance(one, Checked)}, raced


@pytest.fixture
def project(tmp_path: Any) -> ScaledProject:
    return ScaledProject(tmp_path)


def samples(raced: Raced) -> list[Sample]:
    return [sample_from_row(row) for row in raced.rows]


def test_rounds_are_mirrored_and_hold_the_base_twice(project: ScaledProject) -> None:
    run = Run(project, {"2": {"time_ms": 1.5}, "4": {"time_ms": 0.5}})
    checked, raced = run()
    assert {name: one.status for name, one in checked.items()} == dict.fromkeys(["N=2", "N=4", "N=5"], "ok")
    taken = samples(raced)
    assert {sample.group for sample in taken} == {4}
    for number in (0, 1):
        forward = [s.arm for s in taken if s.round == number and s.half == "forward"]
        mirror = [s.arm for s in taken if s.round == number and s.half == "mirror"]
        assert forward == mirror[::-1]
        assert sorted(forward) == sorted([BASE, AGAIN, "N=2", "N=4", "N=5"])
    ratios = pair_rounds(taken, "screening", (BASE, "N=2")).time
    assert ratios == [[pytest.approx(0.405465), pytest.approx(0.405465)]]
    # A sample lasts 2 ms, whatever a launch takes.
    assert {s.arm: s.launches for s in taken} == {BASE: 2, AGAIN: 2, "N=2": 2, "N=4": 4, "N=5": 2}
    assert raced.seconds == pytest.approx(run.card.now - 0.002)  # all but what prepared the base
    assert len(raced.rows[0]) == len(COLUMNS)


def test_the_base_warms_up_until_its_clock_is_steady_but_not_for_ever(project: ScaledProject) -> None:
    run = Run(project, {})
    run()
    begun = run.card.sampled.index("N=2")
    assert begun >= 8  # two to size the base and its twin, then two pairs of steady clocks at least
    run = Run(project, {})
    run.card.clocks = iter(1000.0 + 500 * (n % 2) for n in range(10**6))
    run()
    assert run.card.now < WARM_S + 0.2


def test_every_wait_is_announced_with_its_member(project: ScaledProject) -> None:
    run = Run(project, {})
    run()
    assert ("check", "N=4", run.heats._bench.limit_s) in run.card.announced or any(
        step == "check" and member == "N=4" for step, member, _ in run.card.announced
    )
    assert {member for step, member, _ in run.card.announced if step == "sample"} >= {BASE, AGAIN, "N=5"}
    # A launch may take 200 times as long as the base, or 2 s.
    assert run.card.limit_s == 2.0


def test_a_far_slower_one_is_left_out_but_not_for_one_disturbed_sample(project: ScaledProject) -> None:
    run = Run(project, {"2": {"time_ms": 3.5}})
    run.card.disturbed = {"N=4"}
    _, raced = run()
    assert raced.slow == {"N=2": 3.5}
    assert raced.base_ms == 1.0
    arms = {sample.arm for sample in samples(raced)}
    assert arms == {BASE, AGAIN, "N=4", "N=5"}
    _, raced = Run(project, {"2": {"time_ms": 3.5}})(slow=None)
    assert "N=2" in {sample.arm for sample in samples(raced)}


def test_wrong_ones_are_not_raced_and_known_ones_not_checked(project: ScaledProject) -> None:
    run = Run(project, {"2": {"wrong": "all"}, "4": {"load": "launch_error"}})
    checked, raced = run(check=["N=2", "N=4"])
    assert {name: one.status for name, one in checked.items()} == {
        "N=2": "wrong_result",
        "N=4": "launch_error",
    }
    assert {sample.arm for sample in samples(raced)} == {BASE, AGAIN, "N=5"}
    checked, raced = run(names="N=5", check=[], rounds=3, slow=None)
    assert checked == {}
    assert max(sample.round for sample in samples(raced)) == 2


def test_nobody_left_is_an_empty_heat(project: ScaledProject) -> None:
    checked, raced = Run(project, {"2": {"wrong": "all"}})(names="N=2")
    assert checked["N=2"].note == "all"
    assert (raced.rows, raced.slow) == ([], {})
    _, raced = Run(project, {"2": {"time_ms": 9.0}})(names="N=2")
    assert (raced.rows, raced.slow) == ([], {"N=2": 9.0})


def test_the_last_sample_of_each_is_judged(project: ScaledProject) -> None:
    _, raced = Run(project, {"4": {"wrong_later": "3 elements"}})()
    assert raced.wrong == {"N=4": "while it raced: 3 elements"}


@pytest.mark.parametrize(
    ("how", "status"), [({"check": "fault"}, "memory_fault"), ({"sample": "timeout"}, "timeout")]
)
def test_a_sticky_fault_ends_the_heat_and_names_the_member(
    project: ScaledProject, how: dict[str, str], status: str
) -> None:
    with pytest.raises(ArmFault) as caught:
        Run(project, {"4": how})()
    assert (caught.value.member, caught.value.status) == ("N=4", status)


def test_a_time_that_is_no_time_is_the_members(project: ScaledProject) -> None:
    with pytest.raises(ArmFault, match=r"took 0\.0 ms") as caught:
        Run(project, {"4": {"time_ms": 0.0}})()
    assert caught.value.member == "N=4"


def test_the_base_is_judged_first_and_after_every_wrong_one(project: ScaledProject) -> None:
    with pytest.raises(ArmFault, match="bad base") as caught:
        Run(project, {"3": {"wrong": "bad base"}})()
    assert caught.value.member == BASE
    with pytest.raises(Ruin) as ruin:
        Run(project, {"4": {"check": "ruin"}})()
    assert ruin.value.name == "N=4"
