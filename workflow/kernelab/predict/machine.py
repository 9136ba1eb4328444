"""What an SM is made of, as far as the model knows: rates and latencies in cycles of the SM, sizes in bytes.

docs/predict.md says where each constant comes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# Cycles, beyond its slot, that a load from shared memory takes from its scheduler while its result is written into the
# registers, by opcode and bits a thread. ldmatrix returns a register at a time, and costs hardly more for four.
WRITE_BACK: Mapping[tuple[str, int], float] = {
    ("LDS", 32): 0.1,
    ("LDS", 64): 0.85,
    ("LDS", 128): 1.4,
    ("LDSM", 32): 0.19,
    ("LDSM", 64): 0.26,
    ("LDSM", 128): 0.32,
}


@dataclass(frozen=True)
class Machine:
    """The constants of one architecture.

    fma_cycles            an FFMA holds the FP32 lanes of its scheduler; likewise imad_, alu_ and special_cycles
    memory_issue_cycles   between two memory instructions of one scheduler
    memory_queue          of work that may wait for the LSU pipe before memory instructions are held back
    port_window           of reads that may wait at one of the two register banks before arithmetic is held back
    write_back            cycles that a scheduler loses to each load from shared memory, by opcode and bits a thread
    operand_latency       until an instruction has read its registers, from when a unit takes it
    result_latency        of an instruction of variable latency that is no memory access
    shared_latency        of a load, behind its last wavefront
    global_latency        of a load from the L2 cache or behind it, under load
    l1_latency            of a load that the L1 cache answers
    sector_cycles         a sector of 32 bytes holds the SM's port to the L2 cache
    barrier_latency       from the last arrival to the first instruction behind the barrier
    branch_latency        of the branch back
    start_gap             between the starts of two blocks of an SM, at most
    instruction_cache     bytes of a loop that are fetched without a wait
    fetch_cycles          that a scheduler waits for an instruction behind the instruction cache
    l2_bytes              of the L2 cache in a cycle, for each SM, when all of them read
    """

    schedulers: int = 4
    fma_cycles: int = 1
    imad_cycles: int = 2
    alu_cycles: int = 2
    special_cycles: int = 8
    memory_issue_cycles: int = 2
    memory_queue: int = 200
    port_window: int = 3
    write_back: Mapping[tuple[str, int], float] = field(default_factory=lambda: WRITE_BACK)
    operand_latency: int = 14
    result_latency: int = 20
    shared_latency: int = 26
    global_latency: int = 800
    l1_latency: int = 40
    sector_cycles: float = 0.5
    barrier_latency: int = 20
    branch_latency: int = 8
    start_gap: int = 1600
    instruction_cache: int = 32 * 1024
    fetch_cycles: float = 0.45
    l2_bytes: float = 21.0


_HALF_RATE = Machine(fma_cycles=2)  # 16 FP32 lanes a scheduler
_MACHINES = {"sm_75": _HALF_RATE, "sm_80": _HALF_RATE}


def machine_of(arch: str) -> Machine:
    """The constants for an architecture (`sm_90`). Those of sm_90 were tried against measurements; the others differ from
    them only in the rate of FFMAs."""
    return _MACHINES.get(arch.rstrip("af"), Machine())
