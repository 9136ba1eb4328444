"""A results folder made by hand: builds, samples and timing records of a card that is not there, clearly synthetic."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernelab.compare.step import compare_experiment
from kernelab.plan.arms import Arm, Device, Plan
from kernelab.plan.load import load_plan
from kernelab.records.build import BuildRecord, CodeMix, EntryRecord, HotLoopRecord
from kernelab.records.compare import ComparedPair, CompareRecord
from kernelab.records.layout import Layout
from kernelab.records.record import read_record, write_record
from kernelab.records.timing import (
    CardFacts,
    Conditions,
    ProcessFacts,
    SessionMember,
    SessionRecord,
    TimedArm,
    TimedPair,
    TimedProblem,
    TimingRecord,
)
from kernelab.timing.digests import arm_digest
from kernelab.timing.gate import machine_code
from kernelab.timing.groups import form_groups
from kernelab.timing.job import BuiltArm
from kernelab.timing.samples import Sample, write_samples

CARD = Device(
    id="synthetic-card-00000000",
    kind="gpu",
    name="Synthetic Card",
    arch="sm_86",
    uuid="GPU-00000000-synthetic",
)
CATALOGUE = """\
operation:
  name: scale
  title: y = s x
  problem: {n: int, s: float}
  arrays:
    x: {shape: [n], role: input}
    y: {shape: [n], role: output}
  arguments: [n, s, x, y]
  flops: n
  bytes: 8*n
  tolerance: {absolute: 1.0e-6, relative: 1.0e-6, frobenius: 1.0e-6}
  checks: {tiny: {n: 8, s: 2.0}}
kernels:
  00_library: {library: cublas, idea: reference}
  one: &kernel
    source: one.cu
    idea: the base
    parameters:
      UNROLL: {type: int, default: 1, levels: [1, 2, 4], about: elements of a thread}
      BLOCK: {type: int, default: 64, levels: [64, 128], about: threads, controls: [grid, block, threads]}
      TILE: {type: int, default: 1, levels: [1, 2], about: moves the grid and does not say so}
      WIDE: {type: int, default: 0, levels: [0, 1], about: moves the block and does not say so}
      POOL: {type: int, default: 0, levels: [0, 512], about: takes shared memory and does not say so}
      EXTRA: {type: int, default: 0, levels: [0, 1], about: adds a launch and does not say so}
      BOUND: {type: choice, default: none, levels: {none: 0, 1: 1}, about: bound, controls: [min_blocks]}
      DISPATCH: {type: choice, default: host, levels: {host: 0, device: 1}, about: dispatch}
    composites:
      shape: {about: both, levels: {small: {BLOCK: 64, UNROLL: 1}, large: {BLOCK: 128, UNROLL: 4}}}
    launches:
      - {entry: scale, when: EXTRA == 1, grid: 1, block: 32}
      - {entry: scale, grid: "ceil_div(n, BLOCK*TILE)", block: "BLOCK*(1 + WIDE)", dynamic_shared: POOL}
  two:
    source: two.cu
    idea: another
    parameters:
      BOUND: {type: choice, default: none, levels: {none: 0, 1: 1}, about: bound, controls: [min_blocks]}
    launches: [{entry: scale, grid: "ceil_div(n, 64)", block: 64}]
""".replace("&kernel", "")
CONFIG = """\
device: auto
problems:
  long: {n: 1000000, s: 2.0}
  short: {n: 1000, s: 2.0}
experiments:
"""
UNROLL = 'unroll: {question: "Does unrolling help?", base: one, vary: {UNROLL: [1, 2]}}'


class Lab:
    """A project and its results. `experiments` are flow YAML, one each."""

    def __init__(self, root: Path) -> None:
        self.root = root
        folder = root / "kernels" / "scale"
        folder.mkdir(parents=True)
        (folder / "kernels.yaml").write_text(CATALOGUE)
        (folder / "operation.py").write_text("def reference(problem, arrays):\n    return {}\n")
        (folder / "one.cu").write_text("#define A 1\nint a = A;\n")
        (folder / "two.cu").write_text("int b = 2;\n")
        self.layout = Layout(root / "results", CARD.id)

    def plan(self, *experiments: str, claims: str = "", device: Device = CARD) -> Plan:
        """The plan; it is also written where `verify` and the steps read it."""
        text = CONFIG + "".join(f"  {experiment}\n" for experiment in experiments or (UNROLL,))
        (self.root / "config.yaml").write_text(text + claims)
        plan = load_plan(self.root, lambda _: device)
        self.layout.results.mkdir(exist_ok=True)
        (self.layout.results / "plan.json").write_text(plan.model_dump_json())
        return plan

    def build(self, plan: Plan, changed: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        """A build record for every build; `changed` maps a build's key to fields of its record or (entry) of its entry."""
        for key, planned in plan.builds.items():
            fields = dict((changed or {}).get(key, {}))
            entry = synthetic_entry(**{"sass_sha256": f"{key:0<64}"[:64], **fields.pop("entry", {})})
            defines = {name: str(value) for name, value in planned.defines.items()}
            flags = [f"-D{name}={value}" for name, value in defines.items()]
            record = BuildRecord(
                **{
                    "digest": "d",
                    "kernel": planned.kernel,
                    "variant": planned.variant,
                    "status": "ok",
                    "note": "",
                    "source": planned.source,
                    "source_sha256": f"{planned.source:0<64}",
                    "arch": planned.arch,
                    "toolchain": {"name": "nvrtc", "compiler": "nvrtc 12.9", "disassembler": "nvdisasm 13.0"},
                    "defines": defines,
                    "options": planned.options,
                    "command": (
                        "nvcc",
                        "-cubin",
                        f"-arch={planned.arch}",
                        "-lineinfo",
                        *flags,
                        planned.source,
                        "-o",
                        "kernel.cubin",
                    ),
                    "log": "",
                    "seconds": 1.0,
                    "entries": {"scale": entry},
                    **fields,
                }
            )
            write_record(self.layout.build_record(key), record)

    def time(
        self,
        plan: Plan,
        experiment: str,
        times_ms: Mapping[str, float],
        *,
        processes: int = 6,
        spread: float = 0.0005,
        clocks_mhz: Mapping[str, float] | None = None,
        throttled: bool = False,
        session: Mapping[str, Any] | None = None,
        record: Mapping[str, Any] | None = None,
    ) -> None:
        """Samples and a timing record of an experiment in which each arm (by name; 1 ms else) takes a known time."""
        planned = plan.experiments[experiment]
        arms = plan.experiment_arms(experiment)
        pairs = [(c.base, c.arm) for c in planned.comparisons]
        own = [arm for arm in arms if arm.name in planned.arms]
        groups = form_groups(
            own, [a for a in arms if a.name in planned.references], pairs, ladder=planned.design == "ladder"
        )
        members = [member for group in groups for member in group.members]
        rng = random.Random(experiment)
        samples = []
        for process in range(processes):
            placement = {member.name: rng.gauss(0.0, spread) for member in members}
            for number in range(5):
                for half in ("forward", "mirror"):
                    for position, member in enumerate(members):
                        time = (
                            times_ms.get(member.arm, 1.0)
                            * (1 + placement[member.name])
                            * (1 + rng.gauss(0.0, 1e-4))
                        )
                        clock = (clocks_mhz or {}).get(member.arm, 1500.0)
                        samples.append(
                            Sample(
                                session="s1", process=process, group=0, round=number, half=half, position=position,
                                problem=plan.arms[member.arm].problem, arm=member.name, role=member.role, launches=2,
                                time_ms=time, sm_clock_mhz=clock, cycles=time * clock * 1e3, power_w=300.0,
                                temperature_c=50.0, throttle="hw_slowdown" if throttled else "none", queued=1,
                            )
                        )  # fmt: skip
        write_samples(self.layout.samples(experiment), samples)
        write_record(
            self.layout.timing(experiment),
            _timing_record(plan, experiment, groups, self._digests(plan, arms), session or {}, record or {}),
        )

    def _digests(self, plan: Plan, arms: list[Arm]) -> dict[str, str]:
        """What a session remembers of each arm."""
        built = {}
        for key in {arm.build for arm in arms if arm.build}:
            path = self.layout.build_record(key)
            code = machine_code(read_record(path, BuildRecord)) if path.is_file() else ""
            built[key] = BuiltArm(cubin="", sass_sha256=code)
        return {arm.name: arm_digest(plan, arm, built) for arm in arms}

    def compare(self, plan: Plan, experiment: str = "unroll") -> CompareRecord:
        """The step, on what is there."""
        return compare_experiment(plan, experiment, self.layout, digest="d", digests=None, root=self.root)

    def pair(self, plan: Plan, experiment: str = "unroll") -> ComparedPair:
        """The first comparison of an experiment."""
        return self.compare(plan, experiment).comparisons[0]


def synthetic_entry(**changed: Any) -> EntryRecord:
    """An entry of 40 registers and no directives."""
    mix = {
        "instructions": 100, "ffma": 50, "ffma_share_pct": 50.0, "sts_share_pct": 1.0, "classes": {}, "opcodes": {"FFMA": 50},
        "widths": {"lds_128": 4},
    }  # fmt: skip
    hot = HotLoopRecord(**CodeMix(**mix).model_dump(), start=0, loops=1, bound_pct_of_peak=50.0)
    return EntryRecord(
        **{
            **mix, "registers": 40, "stack_bytes": 0, "spill_store_bytes": 0, "spill_load_bytes": 0, "static_shared_bytes": 0,
            "barriers": 0, "constant_bytes": 0, "maxntid": None, "reqntid": None, "min_blocks": None, "max_registers": None,
            "cluster": None, "parameters": (), "sass_sha256": "0" * 64, "hot_loop": hot, **changed,
        }
    )  # fmt: skip


def conditions(**changed: Any) -> Conditions:
    """The conditions of a session."""
    return Conditions(
        **{
            "driver": "580.1", "cuda_runtime": "13000", "cupy": "14", "cublas": "130100", "kernelab_method": 1,
            "environment": {}, "policy": {"processes": 6}, **changed,
        }
    )  # fmt: skip


def _timing_record(
    plan: Plan,
    experiment: str,
    groups: Any,
    digests: Mapping[str, str],
    session: Mapping[str, Any],
    record: Mapping[str, Any],
) -> TimingRecord:
    planned = plan.experiments[experiment]
    members = [member for group in groups for member in group.members]
    compared = [pair for group in groups for pair in group.pairs]
    arms = plan.experiment_arms(experiment)
    made = SessionRecord(
        **{
            "id": "s1",
            "conditions": conditions(),
            "members": {
                m.name: SessionMember(arm=m.arm, role=m.role, digest=digests[m.arm]) for m in members
            },
            "groups": [[m.name for m in group.members] for group in groups],
            "rounds": 5,
            "launches": {m.name: 2 for m in members},
            "strides": {m.name: 1 for m in members},
            "processes": [ProcessFacts(seed=1, warmup_s=1.0, steady=True)],
            "times": {},
            "locked_clock_mhz": None,
            "extended": False,
            "reason": "",
            "other_processes": [],
            **session,
        }
    )
    problems = dict.fromkeys((arm.problem, arm.data) for arm in arms)
    return TimingRecord(
        **{
            "digest": "d",
            "experiment": experiment,
            "card": CardFacts(
                uuid=CARD.uuid, name=CARD.name, arch="sm_86", multiprocessors=28, fp32_lanes=128, l2_bytes=1,
                memory_clock_mhz=1.0,
                memory_bus_bits=1, max_sm_clock_mhz=1.0, power_limit_w=1.0,
            ),
            "sessions": [made],
            "pairs": [TimedPair(base=base, arm=arm, session="s1") for base, arm in compared],
            "failures": [],
            "arms": {name: TimedArm(status="ok", session="s1", time_ms=1.0) for name in planned.arms},
            "problems": [
                TimedProblem(
                    problem=problem, data=data, values=plan.problems[problem].values, flops=1.0, bytes=1.0,
                    inputs_sha256={"x": "aa"},
                )
                for problem, data in problems
            ],
            **record,
        }
    )  # fmt: skip
