"""The step `check` by what the plan calls things: which files it reads and writes, on the device or by emulation."""

from __future__ import annotations

from pathlib import Path

from kernelab.check.arm import check_arm
from kernelab.device.identify import EMULATED
from kernelab.digests import Digests
from kernelab.errors import UserError
from kernelab.plan.arms import Plan
from kernelab.records.check import CheckRecord
from kernelab.records.layout import Layout


def check_planned(
    plan: Plan, key: str, problem: str, device: str, layout: Layout, digests: Digests, root: Path = Path()
) -> CheckRecord:
    """Check one build, or a library function, and write its record.

    Args:
        plan: the plan.
        key: a build's key, or `<kernel>/default` for a library function.
        problem: a problem's name, or SMALL for the operation's own check problems.
        device: the plan's device, or the emulated one.
        layout: where the build is, and where the record goes.
        digests: of the plan.
        root: the project's folder.

    Raises:
        UserError: the plan knows no such build, problem or device; and those of check_arm.
        BrokenMachine: the check could not be made.
    """
    if device not in (plan.device.id, EMULATED.id):
        raise UserError(f"--device {device}: the plan is for {plan.device.id}; name that or {EMULATED.id}")
    is_build = key in plan.builds
    return check_arm(
        plan if device == plan.device.id else plan.model_copy(update={"device": EMULATED}),
        key if is_build else key.partition("/")[0],
        problem,
        layout.build(key) if is_build else None,
        layout.check(key, problem, device),
        digests.check(key, problem, device),
        root,
    )
