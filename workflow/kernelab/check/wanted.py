"""Which checks an arm needs: by the policy, on the device, and by emulation for the emu_* counters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kernelab.device.identify import EMULATED
from kernelab.plan.arms import Arm, Plan
from kernelab.records.layout import SMALL


def wanted_checks(plan: Plan, arms: Iterable[Arm]) -> Iterator[tuple[str, str, str]]:
    """The checks of arms that run, as record key, problem and device; each once."""
    policy, device, on_gpu = plan.check, plan.device.id, plan.device.kind == "gpu"
    wanted: dict[tuple[str, str, str], None] = {}
    for arm in arms:
        key = arm.record_key
        if arm.build or on_gpu:
            wanted[key, SMALL, device] = None
        if on_gpu and policy.timed_problem:
            wanted[key, arm.problem, device] = None
        if on_gpu and policy.emulate and arm.build:
            wanted[key, SMALL, EMULATED.id] = None
    yield from wanted
