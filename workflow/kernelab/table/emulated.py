"""The emu_* columns: what the emulated device counted at the check problem that comes closest to the timed one."""

from __future__ import annotations

from typing import Any

from kernelab.operation.launches import LaunchRefused, plan_launches
from kernelab.plan.arms import Arm, Plan
from kernelab.plan.expression import Number, parse
from kernelab.records.check import CheckRecord


def emulated_columns(plan: Plan, arm: Arm, record: CheckRecord) -> dict[str, Any]:
    """The columns of one arm; empty where no check problem was counted that launches the same entries.

    Of several such problems the one with the most FLOPs is taken: per-request figures have settled there.
    """
    name = _closest(plan, arm, record)
    if name is None:
        return {}
    counters = record.problems[name].counters
    loads, stores = counters["shared_load_wavefronts"], counters["shared_store_wavefronts"]
    excess = counters["shared_load_excess_wavefronts"] + counters["shared_store_excess_wavefronts"]
    return {
        "emu_problem": name,
        "emu_global_load_sectors": _whole(counters["global_load_sectors"]),
        "emu_global_store_sectors": _whole(counters["global_store_sectors"]),
        "emu_sectors_per_load": _ratio(counters["global_load_sectors"], counters["global_load_requests"]),
        "emu_sectors_per_store": _ratio(counters["global_store_sectors"], counters["global_store_requests"]),
        "emu_shared_load_wavefronts": _whole(loads),
        "emu_shared_store_wavefronts": _whole(stores),
        "emu_wavefronts_per_load": _ratio(loads, counters["shared_load_requests"]),
        "emu_wavefronts_per_store": _ratio(stores, counters["shared_store_requests"]),
        "emu_bank_conflict_pct": _ratio(100.0 * excess, loads + stores),
        "emu_instructions": _whole(counters["instructions"]),
    }


def _closest(plan: Plan, arm: Arm, record: CheckRecord) -> str | None:
    operation, kernel = plan.operation(arm), plan.kernel(arm)
    levels = plan.builds[arm.build].levels

    def entries(values: dict[str, Number]) -> list[str] | None:
        try:
            return [launch.entry for launch in plan_launches(operation, kernel, levels, values)]
        except LaunchRefused:
            return None

    wanted = entries(dict(plan.problems[arm.problem].values))
    best, most = None, -1.0
    for name, declared in operation.checks.items():
        result = record.problems.get(name)
        values = operation.problem_values(declared, name)
        flops = float(parse(operation.flops)(values))
        if result is not None and result.counters and flops > most and entries(values) == wanted:
            best, most = name, flops
    return best


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _whole(count: float) -> int:
    return round(count)
