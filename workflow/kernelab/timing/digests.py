"""What an arm's time depends on, as digests: what decides whether a measurement still holds."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping

from kernelab.device.cuda import CONTROLLING
from kernelab.device.stopwatch import METHOD
from kernelab.operation.launches import names_of, plan_launches, workspace_buffers
from kernelab.plan.arms import Arm, Plan
from kernelab.plan.config import TimingPolicy
from kernelab.records.record import settings_digest
from kernelab.records.timing import Conditions
from kernelab.timing.job import BuiltArm

METHOD_POLICY = (
    "processes",
    "extend_to",
    "half_width",
    "rounds",
    "budget_s",
    "sample_ms",
    "warmup_s",
    "steady_pct",
    "slow_factor",
    "lock_clocks",
)
"""The part of the policy that decides what is measured. The rest (limits, whether a busy card is refused) does not."""


def arm_digest(plan: Plan, arm: Arm, builds: Mapping[str, BuiltArm]) -> str:
    """The digest of an arm's machine code, launches, problem and method. Equal digests: nothing to measure again.

    Raises:
        LaunchRefused: the kernel cannot run its problem.
    """
    problem = plan.problems[arm.problem].values
    settings: dict[str, object] = {
        "device": plan.device.uuid,
        "operation": arm.operation,
        "problem": dict(problem),
        "data": arm.data,
        "l2": arm.l2,
    }
    kernel = plan.kernel(arm)
    if kernel.library is not None:
        return settings_digest(settings | {"library": kernel.library})
    levels = plan.builds[arm.build].levels
    launches = plan_launches(plan.operation(arm), kernel, levels, problem)
    workspaces = workspace_buffers(kernel, names_of(kernel, levels, problem))
    return settings_digest(
        settings
        | {
            "sass": builds[arm.build].sass_sha256,
            "launches": [dataclasses.asdict(launch) for launch in launches],
            "workspaces": {name: dataclasses.asdict(buffer) for name, buffer in workspaces.items()},
        }
    )


def expected_conditions(policy: TimingPolicy, driver: str, cupy: str) -> Conditions:
    """The conditions of a run as far as they are known before its first process; the rest is empty."""
    return Conditions(
        driver=driver,
        cuda_runtime="",
        cupy=cupy,
        cublas="",
        kernelab_method=METHOD,
        environment={name: os.environ[name] for name in CONTROLLING if name in os.environ},
        policy={name: getattr(policy, name) for name in METHOD_POLICY},
    )
