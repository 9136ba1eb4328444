"""What the emulated device reports: hazards, which are faults, and advice, which is not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

MEMORY_FAULTS = frozenset(
    {
        "out_of_bounds_global",
        "out_of_bounds_shared",
        "out_of_bounds_local",
        "misaligned",
        "write_to_read_only",
    }
)
HAZARDS = frozenset(
    {
        "uninitialised_read",  # a read of bytes that nobody wrote
        "race_shared",  # two unordered accesses of one shared location, at least one a write
        "race_global",
        "barrier_divergence",  # lanes of one warp wait at different barrier instructions
        "deadlock",  # every remaining thread waits for threads that cannot come
        "invalid_barrier",  # a count or number that the hardware refuses
        "invalid_shuffle",  # a source lane that is absent or outside the mask
        "invalid_mask",  # a lane whose instruction's mask leaves it out, or a whole-warp instruction without all its lanes
        "cp_async_not_waited",  # shared memory touched while a cp.async into it is under way
        "invalid_mbarrier",  # an mbarrier used before initialisation or over-subscribed
        "trap",  # the kernel executed trap or a failed assert
    }
)
TIMEOUTS = frozenset({"timeout"})
KINDS = MEMORY_FAULTS | HAZARDS | TIMEOUTS


@dataclass(slots=True)
class Hazard:
    """One kind of fault at one instruction, with the first place where it was seen.

    `threads` are linear thread numbers inside `block` (x fastest); a race names both threads, and
    `other_block` is set when the second is in another block. `address` is a byte address, `array` the array
    that it belongs to or missed, `count` how many lanes did this.
    """

    kind: str
    entry: str
    ptx_line: int
    source_file: str | None
    source_line: int | None
    block: tuple[int, int, int]
    threads: tuple[int, ...]
    address: int | None
    array: str | None
    message: str
    other_ptx_line: int | None = None
    other_source_line: int | None = None
    other_block: tuple[int, int, int] | None = None
    count: int = 1

    @property
    def status(self) -> str:
        """The table's status for this kind: `memory_fault`, `timeout` or `hazard`."""
        if self.kind in MEMORY_FAULTS:
            return "memory_fault"
        return "timeout" if self.kind in TIMEOUTS else "hazard"

    def __str__(self) -> str:
        where = f"PTX line {self.ptx_line}"
        if self.source_line is not None:
            where = f"{self.source_file}:{self.source_line} ({where})"
        return f"{self.kind} in {self.entry} at {where}: {self.message}"


def worst_status(hazards: Iterable[Hazard]) -> str:
    """`memory_fault` before `timeout` before `hazard`; `ok` when there is none."""
    statuses = {hazard.status for hazard in hazards}
    return next((s for s in ("memory_fault", "timeout", "hazard") if s in statuses), "ok")


@dataclass(slots=True)
class HazardLog:
    """Collects hazards, one for each kind and pair of instructions, counting the repeats."""

    limit: int = 200
    found: dict[tuple[str, int, int | None], Hazard] = field(default_factory=dict)
    advice: dict[str, int] = field(default_factory=dict)

    def add(self, hazard: Hazard) -> None:
        key = (hazard.kind, hazard.ptx_line, hazard.other_ptx_line)
        known = self.found.get(key)
        if known is not None:
            known.count += hazard.count
        elif len(self.found) < self.limit:
            self.found[key] = hazard

    def advise(self, text: str) -> None:
        self.advice[text] = self.advice.get(text, 0) + 1
