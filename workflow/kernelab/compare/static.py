"""The columns of a row that need no card: what a build is made of, at the launches that an arm's problem takes."""

from __future__ import annotations

from typing import Any

from kernelab.build.cards import Card, default_card, find_card
from kernelab.build.identity import combined
from kernelab.build.occupancy import theoretical_occupancy
from kernelab.errors import UserError
from kernelab.operation.launches import LaunchConfig, LaunchRefused, plan_launches
from kernelab.plan.arms import Arm, Plan
from kernelab.records.build import BuildRecord


def arm_launches(plan: Plan, arm: Arm) -> tuple[LaunchConfig, ...]:
    """The launches of an arm at its problem.

    Raises:
        LaunchRefused: none applies, or CUDA would refuse one.
    """
    levels = plan.builds[arm.build].levels
    return plan_launches(plan.operation(arm), plan.kernel(arm), levels, plan.problems[arm.problem].values)


def static_columns(plan: Plan, arm: Arm, build: BuildRecord) -> dict[str, Any]:
    """The static columns of an arm; empty where its build did not compile or no launch applies.

    The main launch is the last of the sequence. Registers, shared memory, grid and hot loop are of it; spills
    and the SASS hash are of all launches.
    """
    try:
        launches = arm_launches(plan, arm)
        entries = [build.entries[launch.entry] for launch in launches]
    except (LaunchRefused, KeyError):
        return {}
    main, launch = entries[-1], launches[-1]
    threads = launch.block[0] * launch.block[1] * launch.block[2]
    blocks = launch.grid[0] * launch.grid[1] * launch.grid[2]
    shared = main.static_shared_bytes + launch.dynamic_shared
    columns: dict[str, Any] = {
        "registers": main.registers,
        "spill_bytes": sum(entry.spill_store_bytes + entry.spill_load_bytes for entry in entries),
        "shared_bytes": shared,
        "threads": threads,
        "blocks": blocks,
        "sass_sha256": combined([entry.sass_sha256 for entry in entries]),
    }
    card = target_card(plan, build.arch)
    if card is not None:
        occupancy = theoretical_occupancy(
            card, threads=threads, registers=main.registers, shared_bytes=shared, blocks=blocks
        )
        columns |= {"occupancy_pct": occupancy.occupancy_pct, "waves": occupancy.waves}
    if main.hot_loop is not None:
        hot = main.hot_loop
        columns |= {
            "hot_loop_instructions": hot.instructions,
            "hot_loop_at": hot.start,
            "ffma_share_pct": hot.ffma_share_pct,
            "sts_share_pct": hot.sts_share_pct,
            "bound_pct_of_peak": hot.bound_pct_of_peak,
            **{name: hot.widths.get(name, 0) for name in ("lds_128", "lds_64", "lds_32")},
            "ldsm": hot.opcodes.get("LDSM", 0),
        }
    return columns


def target_card(plan: Plan, arch: str) -> Card | None:
    """The card that static figures are for: the one at hand, the one that config.yaml names, or the default of the architecture.

    Raises:
        UserError: config.yaml names a card that no table knows.
    """
    if plan.target_card is not None:
        card = find_card(plan.target_card)
        if card is None:
            raise UserError(
                f"config.yaml: target_card: {plan.target_card} is in no table of cards; use the driver's name for it"
            )
        return card
    if plan.device.kind == "gpu" and (card := find_card(plan.device.name)) is not None:
        return card
    return default_card(arch)
