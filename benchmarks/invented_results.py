"""A results folder of a card that does not exist: for tests and benchmarks of the report, where no GPU is at hand.

Every figure is invented from a seed and says so: the card is called `Invented card`. Builds and emulated checks are
taken from a real results folder where one is given. Verdicts are made by the real step from the invented samples.
"""

from __future__ import annotations

import math
import random
import shutil
from collections.abc import Callable
from pathlib import Path

from kernelab.compare.claimed import claim_row
from kernelab.compare.step import compare_experiment
from kernelab.compare.tabulate import claims_csv, comparisons_csv
from kernelab.plan.arms import Arm, Device, Plan
from kernelab.plan.expression import parse
from kernelab.plan.load import load_plan
from kernelab.plan.tabular import plan_csv
from kernelab.profile.columns import NCU_COLUMNS
from kernelab.records.build import BuildRecord, CodeMix, EntryRecord, HotLoopRecord
from kernelab.records.check import CheckedProblem, CheckRecord
from kernelab.records.layout import SMALL, Layout
from kernelab.records.profile import ProfileRecord
from kernelab.records.record import read_record, write_record, write_text
from kernelab.records.timing import (
    CardFacts,
    Conditions,
    MemberTime,
    ProcessFacts,
    SessionMember,
    SessionRecord,
    TimedArm,
    TimedPair,
    TimedProblem,
    TimingRecord,
)
from kernelab.statistics.policy import VerdictPolicy
from kernelab.table.rows import TableReader
from kernelab.table.write import table_csv
from kernelab.timing.digests import arm_digest
from kernelab.timing.gate import machine_code
from kernelab.timing.groups import form_groups
from kernelab.timing.job import BuiltArm
from kernelab.timing.samples import Sample, write_samples

CARD = Device(
    id="invented-card-00000000", kind="gpu", name="Invented card", arch="sm_86", uuid="GPU-00000000-invented"
)
FACTS = CardFacts(
    uuid=CARD.uuid,
    name=CARD.name,
    arch="sm_86",
    multiprocessors=28,
    fp32_lanes=128,
    l2_bytes=3_000_000,
    memory_clock_mhz=7501.0,
    memory_bus_bits=192,
    max_sm_clock_mhz=1800.0,
    power_limit_w=170.0,
)
Times = Callable[[Arm], float]


class AnyDigests:
    """Digests of records that nobody checks."""

    def __getattr__(self, name: str) -> Callable[..., str]:
        return lambda *_: "invented"


def invent(
    project: Path,
    out: Path,
    *,
    builds: Path | None = None,
    processes: int = 6,
    rounds: int = 10,
    device: Device = CARD,
) -> Plan:
    """Fill a results folder for the project in a folder.

    Args:
        project: holds config.yaml and kernels/.
        out: the results folder to fill.
        builds: a results folder to take build/ and emulated/ from; without it the builds are invented too.
        processes, rounds: of every session.
        device: the card, or EMULATED: then nothing is timed.
    """
    plan = load_plan(project, lambda _: device)
    layout = Layout(out, device.id)
    out.mkdir(parents=True, exist_ok=True)
    write_text(layout.plan, plan.model_dump_json(indent=1) + "\n")
    write_text(layout.plan_table, plan_csv(plan))
    write_text(
        layout.toolchain, '{"nvrtc": {"compiler": "nvrtc 0.0 (invented)", "disassembler": "nvdisasm 0.0"}}\n'
    )
    if builds is not None:
        for folder in ("build", "emulated"):
            shutil.copytree(builds / folder, out / folder, dirs_exist_ok=True)
    else:
        for key in plan.builds:
            _build(plan, layout, key)
    truth = _time_of(plan)
    for arm in plan.arms.values():
        if arm.runs:
            _check(plan, layout, arm)
            if device.kind == "gpu":
                _profile(plan, layout, arm)
    records = []
    for name in plan.experiments:
        if device.kind == "gpu" and plan.timed_comparisons(name):
            _time(plan, layout, name, truth, processes, rounds)
        record = compare_experiment(plan, name, layout, digest="invented", digests=None, root=project)
        write_record(layout.compare(name), record)
        records.append(record)
    write_text(layout.comparisons, comparisons_csv(records, {}))
    by_name, policy = {record.experiment: record for record in records}, VerdictPolicy()
    write_text(
        layout.claims,
        claims_csv([claim_row(n, c, by_name.get(c.experiment), policy) for n, c in plan.claims.items()]),
    )
    reader = TableReader(plan, layout, AnyDigests())  # type: ignore[arg-type]
    reader._read = lambda path, model, digest: read_record(path, model)  # type: ignore[method-assign]
    write_text(layout.table, table_csv(reader.rows()))
    return plan


def _time_of(plan: Plan) -> Times:
    def time_ms(arm: Arm) -> float:
        rng = random.Random(arm.name)
        problem = plan.problems[arm.problem].values
        operation = plan.operation(arm)
        work = float(parse(operation.flops)(problem)) / 13e9
        traffic = float(parse(operation.bytes)(problem)) / 330e6
        number = int(arm.kernel[:2]) if arm.kernel[:2].isdigit() else 12
        share = (
            1.0 if arm.build == "" else min(1.05, 0.012 * 1.75 ** min(number, 8) * rng.uniform(0.97, 1.03))
        )
        return max(work / share, traffic) * rng.uniform(0.985, 1.015)

    return time_ms


def _build(plan: Plan, layout: Layout, key: str) -> None:
    planned, rng = plan.builds[key], random.Random(key)
    ffma = rng.randint(200, 800)
    mix = CodeMix(
        instructions=ffma + 60,
        ffma=ffma,
        ffma_share_pct=100.0 * ffma / (ffma + 60),
        sts_share_pct=1.0,
        classes={},
        opcodes={"FFMA": ffma, "LDS": 48},
        widths={"lds_128": 48},
    )
    entry = EntryRecord(
        **mix.model_dump(),
        registers=rng.randint(60, 200),
        stack_bytes=0,
        spill_store_bytes=0,
        spill_load_bytes=0,
        static_shared_bytes=0,
        barriers=0,
        constant_bytes=0,
        maxntid=None,
        reqntid=None,
        min_blocks=None,
        max_registers=None,
        cluster=None,
        parameters=(),
        sass_sha256=f"{rng.getrandbits(256):064x}",
        hot_loop=HotLoopRecord(**mix.model_dump(), start=16, loops=1, bound_pct_of_peak=mix.ffma_share_pct),
    )
    entries = [launch.entry for launch in plan.operations[planned.operation].kernels[planned.kernel].launches]
    record = BuildRecord(
        digest="invented",
        kernel=planned.kernel,
        variant=planned.variant,
        status="ok",
        note="",
        source=planned.source,
        source_sha256=f"{planned.source:0<64}"[:64],
        arch=planned.arch,
        toolchain={"name": "nvrtc", "compiler": "nvrtc 0.0 (invented)"},
        defines={name: str(value) for name, value in planned.defines.items()},
        options=planned.options,
        command=(),
        log="",
        seconds=0.1,
        entries=dict.fromkeys(entries, entry),
    )
    write_record(layout.build_record(key), record)
    loop = ".L_x_0:\n" + "".join(
        f"        /*{address:04x}*/ {opcode} ;\n" for address, opcode in _listing(rng)
    )
    write_text(
        layout.build(key) / "kernel.sass",
        "".join(f'\t.section\t.text.{name},"ax"\n{loop}' for name in entries),
    )


def _listing(rng: random.Random) -> list[tuple[int, str]]:
    """A loop of FFMAs that ptxas might have written."""
    body = (
        ["MOV R1, R2", "LDS.128 R4, [R1]"]
        + ["FFMA R8, R4, R5, R8"] * rng.randint(8, 16)
        + ["BAR.SYNC 0x0"] * rng.randint(0, 2)
    )
    lines = [*body, "@P0 BRA `(.L_x_0)", "EXIT"]
    return [(16 * number, line) for number, line in enumerate(lines)]


def _check(plan: Plan, layout: Layout, arm: Arm) -> None:
    kernel, _, variant = arm.record_key.partition("/")
    result = CheckedProblem(status="ok", correct=True, max_abs_error=1e-6, rel_error=1e-7)
    for problem in (SMALL, arm.problem):
        record = CheckRecord(
            digest="invented",
            kernel=kernel,
            variant=variant,
            device=plan.device.id,
            status="ok",
            note="",
            problems={problem: result},
        )
        write_record(layout.check(arm.record_key, problem, plan.device.id), record)


def _profile(plan: Plan, layout: Layout, arm: Arm) -> None:
    rng = random.Random(arm.name + "profile")
    values = {
        c.name: abs(rng.gauss(0.3, 0.3)) if "stall" in c.name else rng.uniform(10, 90) for c in NCU_COLUMNS
    }
    problem = plan.problems[arm.problem].values
    values["ncu_dram_read_bytes"] = float(parse(plan.operation(arm).bytes)(problem)) * rng.uniform(1.0, 4.0)
    record = ProfileRecord(
        digest="invented", arm=arm.name, status="ok", note="", ncu="invented", kernels=[], values=values
    )
    write_record(layout.profile(arm.record_key, arm.problem), record)


def _time(plan: Plan, layout: Layout, experiment: str, truth: Times, processes: int, rounds: int) -> None:
    planned = plan.experiments[experiment]
    arms = plan.experiment_arms(experiment)
    runnable = {arm.name for arm in arms}
    own = [arm for arm in arms if arm.name in planned.arms]
    references = [arm for arm in arms if arm.name in planned.references]
    pairs = [(c.base, c.arm) for c in plan.timed_comparisons(experiment)]
    groups = form_groups(own, references, pairs, ladder=planned.design == "ladder")
    members = [member for group in groups for member in group.members]
    built = {arm.build: BuiltArm(cubin="", sass_sha256=_code(layout, arm.build)) for arm in arms if arm.build}
    rng = random.Random(experiment)
    samples = []
    for process in range(processes):
        placement = {member.name: rng.gauss(0.0, 0.001) for member in members}
        for group_number, group in enumerate(groups):
            for number in range(rounds):
                power, clock = rng.gauss(160, 2), 1777.0 + 8 * math.sin(number / 3) + rng.gauss(0, 1)
                for half, order in (("forward", group.members), ("mirror", list(reversed(group.members)))):
                    for position, member in enumerate(order):
                        noise = (1 + placement[member.name]) * (1 + rng.gauss(0.0, 4e-4)) * 1777.0 / clock
                        time = truth(plan.arms[member.arm]) * noise
                        samples.append(
                            Sample(
                                "s1",
                                process,
                                group_number,
                                number,
                                half,
                                position,
                                plan.arms[member.arm].problem,
                                member.name,
                                member.role,
                                1,
                                time,
                                clock,
                                time * clock * 1e3,
                                power,
                                61.0,
                                "none",
                                1,
                            )
                        )
    write_samples(layout.samples(experiment), samples)
    times = {
        m.name: _member_time(truth(plan.arms[m.arm]), processes * rounds * 2, processes) for m in members
    }
    reference = next((times[arm.name].time_ms for arm in references), None)
    session = SessionRecord(
        id="s1",
        conditions=Conditions(
            driver="0.0",
            cuda_runtime="0",
            cupy="0",
            cublas="0",
            kernelab_method=1,
            environment={},
            policy={"processes": processes},
        ),
        members={
            m.name: SessionMember(arm=m.arm, role=m.role, digest=arm_digest(plan, plan.arms[m.arm], built))
            for m in members
        },
        groups=[[m.name for m in group.members] for group in groups],
        rounds=rounds,
        launches={m.name: 1 for m in members},
        strides={m.name: 1 for m in members},
        processes=[ProcessFacts(seed=p, warmup_s=1.0, steady=True) for p in range(processes)],
        times=times,
        locked_clock_mhz=None,
        extended=False,
        reason="invented",
        other_processes=[],
    )
    compared = [pair for group in groups for pair in group.pairs]
    found = {
        name: TimedArm(status="ok", session="s1", **times[name].model_dump(), reference_ms=reference)
        for name in runnable
        if name in times
    }
    problems = dict.fromkeys((arm.problem, arm.data) for arm in arms)
    record = TimingRecord(
        digest="invented",
        experiment=experiment,
        card=FACTS,
        sessions=[session],
        pairs=[TimedPair(base=base, arm=arm, session="s1") for base, arm in compared],
        failures=[],
        arms=found,
        problems=[
            TimedProblem(
                problem=problem,
                data=data,
                values=plan.problems[problem].values,
                flops=float(parse(plan.operation(own[0]).flops)(plan.problems[problem].values)),
                bytes=float(parse(plan.operation(own[0]).bytes)(plan.problems[problem].values)),
                inputs_sha256={},
            )
            for problem, data in problems
        ],
    )
    write_record(layout.timing(experiment), record)


def _code(layout: Layout, key: str) -> str:
    path = layout.build_record(key)
    return machine_code(read_record(path, BuildRecord)) if path.is_file() else ""


def _member_time(time: float, samples: int, processes: int) -> MemberTime:
    return MemberTime(
        time_ms=time,
        time_low_ms=time * 0.999,
        time_high_ms=time * 1.001,
        sm_clock_mhz=1777.0,
        samples=samples,
        processes=processes,
        launches=1,
    )
