"""From a launch to milliseconds on a card, and what they are made of."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from kernelab.predict.board import Board
from kernelab.predict.machine import Machine
from kernelab.predict.microcode import FMA
from kernelab.predict.simulate import Steady, simulate
from kernelab.predict.workload import Workload

PARTS = ("fma", "issue", "ports", "pipe", "shared", "latency", "barrier", "fetch", "waves", "bandwidth")
_SECTOR = 32
# Nobody knows how far apart the blocks of an SM start; these shares of the longest gap are averaged.
_GAPS = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class Prediction:
    """`ms` of all launches together; `parts`: what they go to, in ms, by the names of PARTS.

    fma        issuing FP32 arithmetic
    issue      issuing everything else, and the stalls that the compiler wrote
    ports      register banks that are busy
    pipe       units that are busy
    shared     the LSU pipe: wavefronts of shared memory, cache lines of global memory
    latency    waiting for a result
    barrier    waiting for the other warps of the block
    fetch      waiting for instructions
    waves      the busiest SM has more blocks than a fair share
    bandwidth  of the L2 cache or the memory, as far as it takes longer than all that
    """

    ms: float
    parts: dict[str, float]

    @property
    def bound(self) -> str:
        """What would pay most to shorten: the largest part but `fma`, or that where it is nine tenths of the time."""
        if self.parts["fma"] >= 0.9 * self.ms:
            return "fma"
        return max((name for name in PARTS if name != "fma"), key=lambda name: self.parts[name])


def predict(
    workloads: Sequence[Workload],
    *,
    operations: float,
    least_bytes: float,
    sms: int,
    board: Board,
    machine: Machine,
) -> Prediction | None:
    """Time of launches that follow each other; None where a loop's turns cannot be counted (it computes nothing).

    Args:
        workloads: the launches in order.
        operations: floating-point operations of the whole; the launch whose loop does most of them gets them all.
        least_bytes: that must move through the card's memory.
        sms, board, machine: the card.
    """
    main = max(workloads, key=lambda w: (w.loops, w.operations * w.warps * w.blocks))
    parts: defaultdict[str, float] = defaultdict(float)
    for workload in workloads:
        turns = 1.0
        if workload.loops and workload is main:
            each = 32.0 * workload.warps * workload.blocks * workload.operations
            if not each or not operations:
                return None
            turns = operations / each
        for name, cycles in _parts(workload, turns, sms, board, machine).items():
            parts[name] += cycles
    floor = least_bytes / board.memory_bytes
    total = sum(parts.values())
    if total < floor:
        parts["bandwidth"] += floor - total
    ms = 1e-3 / board.clock_mhz
    return Prediction(sum(parts.values()) * ms, {name: parts.get(name, 0.0) * ms for name in PARTS})


def _parts(workload: Workload, turns: float, sms: int, board: Board, machine: Machine) -> dict[str, float]:
    """Cycles of one launch, by what they go to."""
    each = math.ceil(workload.blocks / sms)  # blocks of the busiest SM
    resident = max(1, min(workload.resident, each))
    rounds, left = divmod(each, resident)
    parts: defaultdict[str, float] = defaultdict(float)
    issued = 0.0
    for blocks, times in ((resident, rounds), (left, 1)):
        if not blocks or not times:
            continue
        steady = _steady(workload, blocks, machine)
        issued += steady.shares.get("issue", 0.0) * steady.cycles * turns * times
        for name, share in steady.shares.items():
            parts["issue" if name == "stall" else name] += share * steady.cycles * turns * times
        parts["fetch"] += _fetch(workload, blocks, machine) * turns * times
    arithmetic = sum(micro.kind == FMA for micro in workload.code) / len(workload.code)
    parts["fma"] = arithmetic * issued
    parts["issue"] -= parts["fma"]
    # What the busiest SM does beyond a fair share of the grid, all parts alike.
    total = sum(parts.values())
    fair = workload.blocks / (sms * each)
    floor = _floor(workload, turns, sms, board, machine)
    shared_out = {name: value * fair for name, value in parts.items()}
    return shared_out | {"waves": total * (1 - fair), "bandwidth": max(0.0, floor - total)}


def _steady(workload: Workload, blocks: int, machine: Machine) -> Steady:
    gaps = _GAPS if blocks > 1 else _GAPS[:1]
    runs = [
        simulate(workload.code, workload.warps, blocks, machine, gap=gap * machine.start_gap) for gap in gaps
    ]
    shares: defaultdict[str, float] = defaultdict(float)
    for run in runs:
        for name, share in run.shares.items():
            shares[name] += share * run.cycles
    total = sum(shares.values())
    cycles = sum(run.cycles for run in runs) / len(runs)
    return Steady(cycles, {name: value / total for name, value in shares.items()})


def _fetch(workload: Workload, blocks: int, machine: Machine) -> float:
    """Cycles a turn that schedulers wait for instructions which the cache cannot hold."""
    beyond = max(0, workload.code_bytes - machine.instruction_cache) / workload.code_bytes
    return beyond * len(workload.code) * workload.warps * blocks / machine.schedulers * machine.fetch_cycles


def _floor(workload: Workload, turns: float, sms: int, board: Board, machine: Machine) -> float:
    """Cycles that the launch takes at least for what it moves: through the L2 cache, and, where there is no loop to come
    back to the same bytes, through memory."""
    moved = workload.sectors * _SECTOR * turns * workload.warps * workload.blocks
    through = moved / (machine.l2_bytes * sms)
    return through if workload.loops else max(through, moved / board.memory_bytes)
