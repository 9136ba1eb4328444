"""The whole step with a made-up card: sessions, what is kept, what is lost, and what is told."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelab.device.nvml import Monitor, Process
from kernelab.errors import UserError
from kernelab.plan.arms import Plan
from kernelab.records.record import read_record
from kernelab.records.timing import TimingRecord
from kernelab.timing import held
from kernelab.timing.experiment import Refusal, TimeStep, time_experiment
from kernelab.timing.rounds import pair_rounds
from kernelab.timing.samples import read_samples

from .conftest import CONFIG, UUID, Project, World

BASE, TWO, FOUR = "02_fast/default@big", "02_fast/V=2@big", "02_fast/V=4@big"
LIBRARY = "00_library/default@big"


class QuietMonitor(Monitor):
    """NVML that is not there, but for processes that a test puts on the card."""

    others: tuple[Process, ...] = ()

    def __init__(self, uuid: str) -> None:
        self.uuid, self.why_not = uuid, "made up"
        self._nvml = self._handle = None

    def other_processes(self, own: object = ()) -> tuple[Process, ...]:
        return self.others


@pytest.fixture
def step(project: Project) -> Callable[..., TimeStep]:
    def make(
        experiment: str = "vary",
        *,
        plan: Plan | None = None,
        changed: dict[str, str] | None = None,
        **more: object,
    ) -> TimeStep:
        made = TimeStep(
            plan=plan or project.plan(),
            experiment=experiment,
            builds=project.builds(changed),
            root=project.root,
            samples=project.root / f"{experiment}.csv.gz",
            record=project.root / f"{experiment}.json",
            digest="d",
        )
        return dataclasses.replace(made, **more)  # type: ignore[arg-type]

    return make


@pytest.fixture
def timed(world: World) -> Callable[..., TimingRecord]:
    def run(wanted: TimeStep, say: Callable[[str], None] = lambda _: None) -> TimingRecord:
        return time_experiment(wanted, say=say, run=world.run, monitor=QuietMonitor)

    return run


def pairs(record: TimingRecord) -> list[tuple[str, str, str]]:
    return [(pair.base, pair.arm, pair.session) for pair in record.pairs]


Step = Callable[..., TimeStep]
Timed = Callable[..., TimingRecord]


def test_a_first_run_is_one_session_of_fresh_processes(step: Step, timed: Timed, world: World) -> None:
    wanted = step()
    record = timed(wanted)
    assert pairs(record) == [(BASE, TWO, "s1"), (BASE, FOUR, "s1")]
    assert len(world.jobs) == 3
    assert len({job.seed for job in world.jobs}) == 3
    assert [job.sizes is None for job in world.jobs] == [True, False, False]
    (session,) = record.sessions
    assert sorted(session.members) == sorted([BASE, f"{BASE}#aa", TWO, FOUR, LIBRARY])
    assert record.controls("s1") == [(BASE, f"{BASE}#aa")]
    assert not session.extended
    assert "widest interval" in session.reason
    assert session.conditions.driver == "580.1"
    assert read_record(wanted.record, TimingRecord, "d") == record
    samples = read_samples(wanted.samples)
    assert len(samples) == 3 * 8 * 2 * 5
    assert len(pair_rounds(samples, "s1", (BASE, TWO)).time) == 3
    assert not (wanted.root / ".vary.journal").exists()


def test_arms_carry_times_intervals_and_their_reference(step: Step, timed: Timed, world: World) -> None:
    world.times_ms = {TWO: 1.0, LIBRARY: 3.0}
    record = timed(step())
    arm = record.arms[TWO]
    assert arm.status == "ok"
    assert arm.time_ms == pytest.approx(1.0, rel=0.01)
    assert arm.time_low_ms is not None
    assert arm.time_high_ms is not None
    assert arm.time_low_ms < arm.time_ms < arm.time_high_ms
    assert arm.reference_ms == pytest.approx(3.0, rel=0.01)
    assert (arm.session, arm.samples, arm.processes) == ("s1", 48, 3)
    (problem,) = record.problems
    assert (problem.flops, problem.bytes, problem.inputs_sha256) == (1e9, 8e6, {"x": "ab"})


def test_nothing_changed_times_nothing_and_keeps_every_sample(step: Step, timed: Timed, world: World) -> None:
    timed(step())
    before = step().samples.read_bytes()
    lines: list[str] = []
    record = timed(step(digest="e"), lines.append)
    assert len(world.jobs) == 3
    assert lines == ["nothing has changed since it was timed"]
    assert step().samples.read_bytes() == before
    assert read_record(step().record, TimingRecord, "e") == record


def test_a_changed_arm_is_timed_again_with_its_partner_control_and_reference_only(
    step: Step, timed: Timed, world: World
) -> None:
    timed(step())
    record = timed(step(changed={"02_fast/V=4": "edited"}))
    assert pairs(record) == [(BASE, TWO, "s1"), (BASE, FOUR, "s2")]
    assert sorted(record.session("s2").members) == sorted([BASE, f"{BASE}#aa", FOUR, LIBRARY])
    assert record.arms[TWO].session == "s1"
    assert record.arms[FOUR].session == "s2"
    samples = read_samples(step().samples)
    assert {sample.session for sample in samples} == {"s1", "s2"}
    assert pair_rounds(samples, "s2", (BASE, FOUR)).time
    assert not pair_rounds(samples, "s2", (BASE, TWO)).time
    assert len(world.jobs) == 6


def test_a_changed_base_times_everything_and_drops_the_old_session(step: Step, timed: Timed) -> None:
    timed(step())
    record = timed(step(changed={"02_fast/default": "edited"}))
    assert pairs(record) == [(BASE, TWO, "s2"), (BASE, FOUR, "s2")]
    assert [session.id for session in record.sessions] == ["s2"]
    assert {sample.session for sample in read_samples(step().samples)} == {"s2"}


def test_an_added_level_is_timed_alone_with_the_base(step: Step, timed: Timed, project: Project) -> None:
    project.write(CONFIG.replace("vary: {V: [1, 2, 4]}", "vary: {V: [1, 2]}"))
    assert pairs(timed(step())) == [(BASE, TWO, "s1")]
    project.write()
    record = timed(step())
    assert pairs(record) == [(BASE, TWO, "s1"), (BASE, FOUR, "s2")]


def test_a_level_that_was_taken_away_and_comes_back_is_not_timed_again(
    step: Step, timed: Timed, project: Project
) -> None:
    timed(step())
    project.write(CONFIG.replace("vary: {V: [1, 2, 4]}", "vary: {V: [1, 2]}"))
    assert pairs(timed(step())) == [(BASE, TWO, "s1")]
    project.write()
    assert pairs(timed(step())) == [(BASE, TWO, "s1"), (BASE, FOUR, "s1")]


@pytest.mark.parametrize("change", ["policy", "environment"])
def test_another_method_times_everything_again(
    step: Step, timed: Timed, project: Project, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    timed(step())
    if change == "policy":
        project.write(CONFIG.replace("rounds: 8", "rounds: 9"))
    else:
        monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "1")
    record = timed(step())
    assert {session for _, _, session in pairs(record)} == {"s2"}


def test_limits_are_no_part_of_the_method(step: Step, timed: Timed, project: Project) -> None:
    timed(step())
    project.write(CONFIG.replace("rounds: 8", "rounds: 8, launch_limit_s: 3.0, busy: warn"))
    assert {session for _, _, session in pairs(timed(step()))} == {"s1"}


def test_a_damaged_record_is_timed_anew(step: Step, timed: Timed, world: World) -> None:
    timed(step())
    step().record.write_text("{")
    lines: list[str] = []
    record = timed(step(), lines.append)
    assert any("times anew" in line for line in lines)
    assert len(world.jobs) == 6
    assert len(record.pairs) == 2


def test_a_hung_arm_is_left_out_and_the_session_starts_anew(step: Step, timed: Timed, world: World) -> None:
    world.faults = {TWO: ("timeout", "launch: not done after 30 s")}
    record = timed(step())
    assert record.arms[TWO].status == "timeout"
    assert record.arms[TWO].time_ms is None
    assert record.arms[BASE].status == record.arms[FOUR].status == "ok"
    assert pairs(record) == [(BASE, FOUR, "s1")]
    assert TWO not in record.session("s1").members
    assert len(world.jobs) == 4


def test_a_failure_is_not_tried_again_until_the_arm_changes(step: Step, timed: Timed, world: World) -> None:
    world.faults = {TWO: ("timeout", "hung")}
    timed(step())
    jobs = len(world.jobs)
    record = timed(step())
    assert len(world.jobs) == jobs
    assert record.arms[TWO].status == "timeout"
    world.faults = {}
    record = timed(step(changed={"02_fast/V=2": "edited"}))
    assert record.arms[TWO].status == "ok"
    assert pairs(record) == [(BASE, TWO, "s2"), (BASE, FOUR, "s1")]


def test_a_hung_base_ends_the_experiment_with_its_status(step: Step, timed: Timed, world: World) -> None:
    world.faults = {BASE: ("timeout", "hung")}
    record = timed(step())
    assert record.arms[BASE].status == "timeout"
    assert record.arms[TWO].status == "not_measured"
    assert BASE in record.arms[TWO].note
    assert record.pairs == []
    assert record.sessions == []
    assert read_samples(step().samples) == []
    assert len(world.jobs) == 1
    again = timed(step())
    assert again == record
    assert len(world.jobs) == 1


def test_a_base_that_lost_all_its_arms_is_still_timed_and_kept(
    step: Step, timed: Timed, world: World
) -> None:
    world.faults = {TWO: ("timeout", "hung"), FOUR: ("memory_fault", "illegal address")}
    record = timed(step())
    assert record.arms[BASE].status == "ok"
    assert pairs(record) == [(BASE, BASE, "s1")]
    jobs = len(world.jobs)
    assert timed(step()) == record
    assert len(world.jobs) == jobs


def test_a_hung_rung_leaves_the_rungs_beside_it(step: Step, timed: Timed, world: World) -> None:
    middle = "02_fast/default@big"
    world.faults = {middle: ("timeout", "hung")}
    record = timed(step("ladder"))
    assert {name: arm.status for name, arm in record.arms.items()} == {
        "01_slow/default@big": "ok",
        middle: "timeout",
        "03_faster/default@big": "ok",
        LIBRARY: "ok",
    }
    assert timed(step("ladder")) == record


def test_an_impossible_base_takes_its_arms_along_for_good(step: Step, timed: Timed, world: World) -> None:
    world.times_ms = {BASE: 0.02}
    record = timed(step())
    assert record.arms[BASE].status == "impossible"
    assert record.arms[TWO].status == "not_measured"
    assert "its base" in record.arms[TWO].note
    assert record.pairs == []
    again = timed(step())
    assert again.arms[TWO] == record.arms[TWO]
    assert len(world.jobs) == 3


def test_a_hung_base_at_one_problem_leaves_the_other_alone(step: Step, timed: Timed, world: World) -> None:
    world.faults = {BASE: ("memory_fault", "illegal address")}
    record = timed(step("sizes"))
    assert [(base, arm) for base, arm, _ in pairs(record)] == [("02_fast/default@small", "02_fast/V=2@small")]
    assert record.arms["02_fast/V=2@small"].status == "ok"
    assert record.arms[TWO].status == "not_measured"


def test_a_missing_library_costs_only_the_reference(step: Step, timed: Timed, world: World) -> None:
    world.faults = {LIBRARY: ("launch_error", "cuBLAS is not here")}
    record = timed(step())
    assert len(record.pairs) == 2
    assert record.arms[BASE].reference_ms is None
    assert record.arms[LIBRARY].status == "launch_error"
    jobs = len(world.jobs)
    timed(step(changed={"02_fast/V=4": "edited"}))
    assert len(world.jobs) == jobs + 3


def test_a_kernel_that_remembers_its_output_is_caught(step: Step, timed: Timed, world: World) -> None:
    world.wrong = {TWO: "after timing, on other inputs: the kernel wrote nothing to y"}
    record = timed(step())
    assert record.arms[TWO].status == "wrong_result"
    assert "other inputs" in record.arms[TWO].note
    assert pairs(record) == [(BASE, FOUR, "s1")]


def test_figures_above_the_peak_are_impossible(step: Step, timed: Timed, world: World) -> None:
    # 1 GFLOP at 1500 MHz on 100 SMs of 128 lanes: 38.4 TFLOP/s are the peak, so 0.026 ms are the least.
    world.times_ms = {TWO: 0.02}
    record = timed(step())
    arm = record.arms[TWO]
    assert arm.status == "impossible"
    assert "50." in arm.note or "49." in arm.note
    assert "1500 MHz" in arm.note
    assert arm.time_ms is None
    assert pairs(record) == [(BASE, FOUR, "s1")]
    assert any(sample.arm == TWO for sample in read_samples(step().samples))


def test_figures_above_the_bandwidth_are_impossible_where_the_cache_is_cold(
    step: Step, timed: Timed, world: World, project: Project
) -> None:
    # 1.6 GB at 3.07 TB/s, without the 1 MB of the L2, take 0.52 ms; their 1,000 flops an element are not what limits here.
    catalogue = (project.root / "kernels/scale/kernels.yaml").read_text()
    project.write(
        catalogue=catalogue.replace("bytes: 8*n", "bytes: 1600*n").replace("flops: 1000*n", "flops: n")
    )
    world.times_ms = {TWO: 0.5, FOUR: 0.54}
    record = timed(step())
    assert record.arms[TWO].status == "impossible"
    assert "GB/s" in record.arms[TWO].note
    assert record.arms[FOUR].status == "ok"


def test_a_wide_interval_extends_once_and_a_narrow_one_never(step: Step, timed: Timed, world: World) -> None:
    world.process_noise = 0.05
    record = timed(step())
    (session,) = record.sessions
    assert session.extended
    assert len(session.processes) == 5
    assert "3 to 5 processes" in session.reason
    assert {sample.process for sample in read_samples(step().samples)} == set(range(5))


def test_a_large_but_certain_effect_does_not_extend(step: Step, timed: Timed, world: World) -> None:
    world.times_ms = {TWO: 1.0, FOUR: 4.0}
    assert not timed(step()).sessions[0].extended


def test_a_killed_run_goes_on_from_its_finished_processes(step: Step, timed: Timed, world: World) -> None:
    world.kill_before = 2
    with pytest.raises(KeyboardInterrupt):
        timed(step())
    assert not step().record.exists()
    world.kill_before = None
    lines: list[str] = []
    record = timed(step(), lines.append)
    assert len(world.jobs) == 3
    assert "goes on after 2 processes of a run that was ended" in lines
    assert len(record.sessions[0].processes) == 3
    assert {job.process for job in world.jobs} == {0, 1, 2}


def test_a_run_that_is_killed_after_a_failure_goes_on_too(step: Step, timed: Timed, world: World) -> None:
    world.faults = {TWO: ("timeout", "hung")}
    world.kill_before = 3
    with pytest.raises(KeyboardInterrupt):
        timed(step())
    world.kill_before = None
    record = timed(step())
    # One that fails, two of three; then one that fails again, and the third.
    assert [job.process for job in world.jobs] == [0, 0, 1, 0, 2]
    assert len(record.sessions[0].processes) == 3
    assert not (step().root / ".vary.journal").exists()


def test_a_killed_run_of_other_code_is_not_believed(step: Step, timed: Timed, world: World) -> None:
    world.kill_before = 2
    with pytest.raises(KeyboardInterrupt):
        timed(step())
    world.kill_before = None
    timed(step(changed={"02_fast/V=2": "edited"}))
    assert len(world.jobs) == 2 + 3


def test_half_a_journal_entry_is_not_believed(step: Step, timed: Timed, world: World) -> None:
    world.kill_before = 2
    with pytest.raises(KeyboardInterrupt):
        timed(step())
    entry = sorted((step().root / ".vary.journal").iterdir())[1]
    entry.write_text(entry.read_text()[:100])
    world.kill_before = None
    timed(step())
    assert [job.process for job in world.jobs] == [0, 1, 1, 2]


def test_a_ladder_is_controlled_by_its_last_rung(step: Step, timed: Timed, world: World) -> None:
    world.times_ms = {"01_slow/default@big": 300.0}
    record = timed(step("ladder"))
    assert record.controls("s1") == [("03_faster/default@big", "03_faster/default@big#aa")]
    assert record.session("s1").strides["01_slow/default@big"] > 1
    assert len(record.pairs) == 2


def test_steps_share_one_control(step: Step, timed: Timed) -> None:
    record = timed(step("steps"))
    assert len(record.controls("s1")) == 1
    assert len(record.pairs) == 3


def test_refused_arms_keep_their_reason_and_are_not_timed(step: Step, timed: Timed, world: World) -> None:
    record = timed(step(refused={TWO: Refusal("wrong_result", "3 of 8 elements")}))
    assert (record.arms[TWO].status, record.arms[TWO].note) == ("wrong_result", "3 of 8 elements")
    assert all(TWO not in [m.name for g in job.groups for m in g.members] for job in world.jobs)
    assert pairs(record) == [(BASE, FOUR, "s1")]


def test_with_a_refused_base_the_other_arms_are_still_timed(step: Step, timed: Timed) -> None:
    record = timed(step(refused={BASE: Refusal("compile_error", "no")}))
    assert pairs(record) == [(TWO, TWO, "s1"), (FOUR, FOUR, "s1")]
    assert record.arms[TWO].time_ms is not None


def test_with_every_arm_refused_nothing_is_run_and_the_record_says_why(
    step: Step, timed: Timed, world: World, project: Project
) -> None:
    lines: list[str] = []
    arms = project.plan().experiments["vary"].arms
    record = timed(step(refused={name: Refusal("compile_error", "no") for name in arms}), lines.append)
    assert lines == ["there is nothing that can be timed"]
    assert world.jobs == []
    assert {record.arms[name].status for name in arms} == {"compile_error"}
    assert record.arms[LIBRARY].status == "not_measured"
    assert read_samples(step().samples) == []


def test_an_arm_that_cannot_run_its_problem_is_told_apart(step: Step, timed: Timed, project: Project) -> None:
    catalogue = (project.root / "kernels/scale/kernels.yaml").read_text()
    project.write(
        catalogue=catalogue.replace(
            'entry: scale, grid: "ceil_div', 'entry: scale, when: V < 4, grid: "ceil_div'
        )
    )
    record = timed(step())
    assert record.arms[FOUR].status == "launch_error"
    assert "no launch applies" in record.arms[FOUR].note


def test_a_card_in_use_is_refused_or_warned_of(
    step: Step, timed: Timed, project: Project, monkeypatch: pytest.MonkeyPatch, world: World
) -> None:
    monkeypatch.setattr(QuietMonitor, "others", (Process(4711, "python"),))
    monkeypatch.setattr(held, "SETTLE_S", 0.0)
    with pytest.raises(UserError, match=r"python \(4711\).*busy: warn"):
        timed(step())
    assert world.jobs == []
    project.write(CONFIG.replace("rounds: 8", "rounds: 8, busy: warn"))
    lines: list[str] = []
    record = timed(step(), lines.append)
    assert len([line for line in lines if "4711" in line]) == 1
    assert record.sessions[0].other_processes == ["python (4711)"]


def test_clocks_that_may_not_be_locked_are_told_and_recorded(
    step: Step, timed: Timed, project: Project
) -> None:
    project.write(CONFIG.replace("rounds: 8", "rounds: 8, lock_clocks: 1400"))
    lines: list[str] = []
    record = timed(step(), lines.append)
    assert any("1400 MHz" in line for line in lines)
    assert record.sessions[0].locked_clock_mhz is None


def test_a_lock_needs_its_clock(step: Step, timed: Timed, project: Project) -> None:
    project.write(CONFIG.replace("rounds: 8", "rounds: 8, lock_clocks: true"))
    with pytest.raises(UserError, match="in MHz"):
        timed(step())


def test_without_a_gpu_it_says_so(step: Step, timed: Timed, project: Project) -> None:
    plan = project.plan()
    emulated = plan.device.model_copy(update={"kind": "emulated", "id": "emulated"})
    with pytest.raises(UserError, match="needs a GPU"):
        timed(step(plan=plan.model_copy(update={"device": emulated})))


def test_one_process_is_enough_for_times_but_not_for_an_interval(
    step: Step, timed: Timed, project: Project
) -> None:
    project.write(CONFIG.replace("processes: 3, extend_to: 5", "processes: 1, extend_to: 1"))
    record = timed(step())
    assert record.arms[TWO].time_ms is not None
    assert record.arms[TWO].time_low_ms is None


def test_the_record_names_the_card(step: Step, timed: Timed) -> None:
    card = timed(step()).card
    assert card is not None
    assert (card.uuid, card.multiprocessors, card.fp32_lanes) == (UUID, 100, 128)


def test_the_results_folder_holds_nothing_but_results(step: Step, timed: Timed, project: Project) -> None:
    timed(step())
    left = {path.name for path in Path(project.root).iterdir()}
    assert left == {"config.yaml", "kernels", "vary.json", "vary.csv.gz"}
