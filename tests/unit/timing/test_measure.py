from __future__ import annotations

from collections import Counter

import pytest

from kernelab.plan.config import TimingPolicy
from kernelab.timing.faults import ArmFault
from kernelab.timing.groups import form_groups
from kernelab.timing.job import Job, JobGroup, JobMember, Sizes
from kernelab.timing.measure import Measured, Measurement, Run
from kernelab.timing.samples import Sample

from .conftest import FakeBench, Project, World


def bench_of(
    project: Project, world: World, experiment: str = "vary", seed: int = 1
) -> tuple[FakeBench, Run]:
    plan = project.plan()
    planned = plan.experiments[experiment]
    groups = form_groups(
        [plan.arms[name] for name in planned.arms],
        [plan.arms[name] for name in planned.references],
        [(c.base, c.arm) for c in planned.comparisons],
    )
    members = [[JobMember(name=m.name, arm=m.arm, role=m.role) for m in group.members] for group in groups]
    job = Job(
        root=".",
        plan=plan,
        session="s1",
        process=0,
        seed=seed,
        groups=[
            JobGroup(members=inside, anchor=group.anchor)
            for inside, group in zip(members, groups, strict=True)
        ],
        builds={},
        budget_s=10.0,
        sizes=None,
        references="",
        result="",
    )
    run = Run("s1", 0, seed, [g.members for g in groups], [g.anchor for g in groups], plan.timing, 10.0, None)
    return FakeBench(world, job), run


def take(bench: FakeBench, run: Run) -> Measured:
    return Measurement(run, bench, bench, bench.now).take()


def in_round(samples: list[Sample], number: int) -> list[Sample]:
    return [sample for sample in samples if sample.round == number]


def test_a_process_loads_launches_warms_up_measures_and_checks_again(project: Project, world: World) -> None:
    bench, run = bench_of(project, world)
    measured = take(bench, run)
    steps = [step for step, _, _ in bench.announced]
    assert steps[:5] == ["load"] * 5
    assert steps[5:10] == ["launch"] * 5
    assert set(steps[10:-5]) == {"sample"}
    assert steps[-5:] == ["check"] * 5
    assert measured.steady
    assert measured.wrong == {}
    assert measured.sizes.rounds == 8
    assert len(measured.samples) == 8 * 2 * 5


def test_load_order_follows_the_seed(project: Project, world: World) -> None:
    orders = set()
    for seed in range(6):
        bench, run = bench_of(project, world, seed=seed)
        take(bench, run)
        orders.add(tuple(bench.loaded))
    assert len(orders) > 3


def test_rounds_are_mirrored_and_hold_every_member_twice(project: Project, world: World) -> None:
    bench, run = bench_of(project, world)
    samples = take(bench, run).samples
    for number in range(8):
        inside = in_round(samples, number)
        order = [sample.arm for sample in inside]
        assert order == order[::-1]
        assert set(Counter(order).values()) == {2}
        assert [sample.position for sample in inside] == list(range(10))
    assert {(s.arm, s.role) for s in samples if s.role != "arm"} == {
        ("02_fast/default@big", "base"),
        ("02_fast/default@big#aa", "aa"),
        ("00_library/default@big", "reference"),
    }


def test_samples_carry_clock_cycles_power_and_throttle(project: Project, world: World) -> None:
    bench, run = bench_of(project, world)
    sample = take(bench, run).samples[0]
    assert sample.sm_clock_mhz == 1500.0
    assert sample.cycles == pytest.approx(sample.time_ms * 1.5e6)
    assert (sample.power_w, sample.temperature_c, sample.throttle, sample.queued) == (300.0, 50.0, "none", 1)
    world.clock_mhz = None
    bench, run = bench_of(project, world)
    measured = take(bench, run)
    assert not measured.steady
    assert {sample.cycles for sample in measured.samples} == {None}


def test_a_warm_up_ends_at_half_the_budget(project: Project, world: World) -> None:
    world.clock_mhz = None
    bench, run = bench_of(project, world)
    assert 5.0 <= take(bench, run).warmup_s < 5.2


def test_slow_arms_get_fewer_rounds_and_short_launches_are_repeated(project: Project, world: World) -> None:
    world.times_ms = {"02_fast/V=2@big": 100.0, "02_fast/V=4@big": 0.1}
    bench, run = bench_of(project, world)
    measured = take(bench, run)
    visits = Counter(sample.arm for sample in measured.samples)
    # A hundred times slower than the base: in every second of 8 rounds, so that three are left.
    assert visits["02_fast/default@big"] == 16
    assert visits["02_fast/V=2@big"] == 8
    assert measured.sizes.launches["02_fast/V=4@big"] == pytest.approx(20, abs=1)
    assert measured.sizes.launches["02_fast/default@big"] in (1, 2)


def test_the_budget_limits_the_rounds_but_leaves_three(project: Project, world: World) -> None:
    world.default_ms = 200.0
    bench, run = bench_of(project, world)
    assert take(bench, run).sizes.rounds == 3


def test_given_sizes_are_kept(project: Project, world: World) -> None:
    bench, run = bench_of(project, world)
    names = [member.name for member in run.groups[0]]
    sizes = Sizes(rounds=4, launches=dict.fromkeys(names, 7), strides=dict.fromkeys(names, 1))
    again = Run(run.session, 1, 2, run.groups, run.anchors, run.policy, run.budget_s, sizes)
    measured = take(bench, again)
    assert measured.sizes == sizes
    assert {sample.launches for sample in measured.samples} == {7}
    assert {sample.process for sample in measured.samples} == {1}


def test_two_problems_take_their_rounds_in_turn(project: Project, world: World) -> None:
    bench, run = bench_of(project, world, "sizes")
    samples = take(bench, run).samples
    assert [sample.group for sample in in_round(samples, 0)] == [0] * 8 + [1] * 8
    assert {sample.problem for sample in samples if sample.group == 1} == {"small"}


def test_a_fault_names_its_member(project: Project, world: World) -> None:
    world.faults = {"02_fast/V=4@big": ("memory_fault", "illegal address")}
    bench, run = bench_of(project, world)
    with pytest.raises(ArmFault) as caught:
        take(bench, run)
    assert (caught.value.member, caught.value.status) == ("02_fast/V=4@big", "memory_fault")
    assert bench.announced[-1][1] == "02_fast/V=4@big"


def test_a_time_of_nothing_is_a_fault(project: Project, world: World) -> None:
    world.times_ms = {"02_fast/V=4@big": 0.0}
    bench, run = bench_of(project, world)
    with pytest.raises(ArmFault, match="took 0"):
        take(bench, run)


def test_every_wait_is_announced_with_the_policys_limit(project: Project, world: World) -> None:
    bench, run = bench_of(project, world)
    take(bench, run)
    assert {limit for step, _, limit in bench.announced if step in ("launch", "sample")} == {
        TimingPolicy().launch_limit_s
    }
    assert len([step for step, _, _ in bench.announced if step == "sample"]) == len(bench.sampled)


def test_a_wrong_result_after_timing_is_told_by_arm(project: Project, world: World) -> None:
    world.wrong = {"02_fast/default@big": "3 of 8 elements of y are wrong"}
    bench, run = bench_of(project, world)
    assert take(bench, run).wrong == world.wrong
