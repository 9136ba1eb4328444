"""How many blocks of a kernel fit on an SM, and how many waves a grid takes.

The rules are cuxray's port of NVIDIA's cuda_occupancy.h; docs/dependencies.md says what it was tried against.
Importing cuxray costs 50 ms, so this is for the steps that read many builds at once, not for the build
itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from cuxray.archspec import lookup
from cuxray.occupancy import compute

from kernelab.build.cards import Card


@dataclass(frozen=True)
class Occupancy:
    """Theoretical figures; the largest shared-memory carve-out is assumed.

    `limiter` names what binds (registers, shared_memory, warps, blocks), joined by `+` where several do.
    `waves` is blocks over the blocks that the card holds at once, as ncu counts it: 1.5 is one full wave and
    half of one. It is None when no block fits.
    """

    blocks_per_sm: int
    occupancy_pct: float
    limiter: str
    waves: float | None


def theoretical_occupancy(
    card: Card, *, threads: int, registers: int, shared_bytes: int, blocks: int
) -> Occupancy:
    """Occupancy of a launch on a card.

    Args:
        threads: threads a block.
        registers: registers a thread, as ptxas reports them.
        shared_bytes: static and dynamic shared memory a block, without the 1 KB that the system reserves from
            sm_80 on. ptxas reports it so; `cuobjdump --dump-resource-usage` adds the reserve from sm_90 on.
        blocks: blocks in the grid.

    Raises:
        KeyError: cuxray does not know the card's architecture.
    """
    found = compute(lookup(card.arch), registers, threads, shared_bytes)
    resident = found.blocks_per_sm * card.sms
    return Occupancy(
        blocks_per_sm=found.blocks_per_sm,
        occupancy_pct=found.occupancy_pct,
        limiter=found.limiter,
        waves=blocks / resident if resident else None,
    )
