"""Verdicts whose premise has expired: the code that they were made with is not the code of today."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kernelab.build.source import source_digest
from kernelab.compare.arms import ArmReader
from kernelab.compare.static import static_columns
from kernelab.digests import Digests
from kernelab.errors import UserError
from kernelab.plan.arms import Plan
from kernelab.records.compare import ArmCode, CompareRecord
from kernelab.records.layout import Layout


@dataclass(frozen=True)
class Expired:
    """A verdict that no longer stands, and why."""

    experiment: str
    device: str
    base: str
    arm: str
    verdict: str
    why: str


def expired(
    plan: Plan, layout: Layout, digests: Digests, records: Iterable[CompareRecord], root: Path
) -> list[Expired]:
    """The stale verdicts of some records, of whatever device.

    Where the plan builds for the architecture and with the compiler of the verdict, machine code is compared;
    elsewhere, and where the arm is not rebuilt yet, the tokens of its source.
    """
    reader = ArmReader(plan, layout, digests)
    found = []
    for record in records:
        changes = {name: _change(plan, reader, root, name, code) for name, code in record.code.items()}
        for pair in record.comparisons:
            for role, name in (("base", pair.base), ("arm", pair.arm)):
                if why := changes.get(name, ""):
                    lead = "a premise expired: its base" if role == "base" else "its arm"
                    found.append(
                        Expired(
                            record.experiment,
                            record.device,
                            pair.base,
                            pair.arm,
                            pair.verdict,
                            f"{lead} {why}",
                        )
                    )
                    break
    return found


def _change(plan: Plan, reader: ArmReader, root: Path, name: str, then: ArmCode) -> str:
    """How an arm has changed since, as a predicate; empty where it has not."""
    arm = plan.arms.get(name)
    if arm is None:
        return f"{name} is no longer in the plan"
    if not arm.build or arm.excluded or not then.source_sha256:
        return ""
    planned = plan.builds[arm.build]
    try:
        build = reader.build(arm)
    except UserError:
        build = None  # not built yet, or not since its source changed
    if build is not None and build.status == "ok" and then.sass:
        same_target = (build.arch, build.toolchain.get("compiler", "")) == (then.arch, then.compiler)
        sass = str(static_columns(plan, arm, build).get("sass_sha256", ""))
        if same_target and sass == then.sass:
            return ""
        if same_target:
            return f"{name} compiles to other code ({then.sass[:12]} then, {sass[:12]} now)"
    source = source_digest(root / plan.operations[planned.operation].folder / planned.source)
    if source != then.source_sha256:
        return f"{name} has another source ({then.source_sha256[:12]} then, {source[:12]} now)"
    return ""
