"""What the project's config asks of the machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kernelab.device.identify import identify
from kernelab.doctor.finding import Finding
from kernelab.errors import UserError
from kernelab.plan.arms import Device, Plan
from kernelab.plan.load import load_plan


@dataclass(frozen=True)
class Needs:
    """What the plan uses.

    Attributes:
        device: the card that the config names, or None: emulated, or no plan could be made.
        toolchains: nvrtc, nvcc, or both.
        profile: whether arms are to be profiled with ncu.
        exclusive: whether timing refuses a card that somebody else uses.
        lock_clocks: whether timing is to lock the SM clock.
    """

    device: Device | None = None
    toolchains: frozenset[str] = frozenset({"nvrtc"})
    profile: bool = True
    exclusive: bool = True
    lock_clocks: bool = False


def read_needs(root: Path) -> tuple[Needs, Finding]:
    """What the config in a folder needs, and whether it can be read; the defaults where it cannot."""
    try:
        plan = load_plan(root, identify)
    except UserError as error:
        lines = str(error).splitlines()
        more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
        return Needs(), Finding(
            "config", "missing", f"{lines[0]}{more}", "mend it; `python -m kernelab plan` lists every fault"
        )
    what = f"{len(plan.experiments)} experiments, {len(plan.arms)} arms, {len(plan.builds)} builds"
    return _needs(plan), Finding("config", "ok", f"{what} for {plan.device.name}")


def _needs(plan: Plan) -> Needs:
    return Needs(
        device=plan.device if plan.device.kind == "gpu" else None,
        toolchains=frozenset(build.toolchain for build in plan.builds.values()),
        profile=plan.profile.enabled,
        exclusive=plan.timing.busy == "refuse",
        lock_clocks=plan.timing.lock_clocks is not False,
    )
