"""Run the warps of one SM through their steady path, instruction by instruction, and time it.

Each scheduler issues one instruction a cycle, of the warp that has waited longest among those that can go on; it stays
with a warp whose operands are to be reused. A warp can go on when the stall that the compiler wrote has passed, its
scoreboards are free, a unit and the register ports can take the instruction, and its block's barrier has opened.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from kernelab.predict.machine import Machine
from kernelab.predict.microcode import BARRIER, COMMIT, COPY, NONE, SHARED, SPECIAL, Micro

_NEVER = float("inf")


@dataclass(frozen=True)
class Steady:
    """`cycles` of the SM until every resident warp has gone once through the path. `shares`: what the schedulers' cycles
    went to: issue, or what held back the warp that could go on first (stall, pipe, ports, shared, latency, barrier)."""

    cycles: float
    shares: dict[str, float]


def simulate(
    code: Sequence[Micro], warps: int, blocks: int, machine: Machine, *, gap: float = 0.0, turns: int = 3
) -> Steady:
    """Time the path with `blocks` resident blocks of `warps` warps.

    Args:
        code: one turn of the path.
        warps, blocks: of a block, and on the SM.
        machine: the constants.
        gap: cycles by which each block starts after the one before.
        turns: that are timed, of all warps together; one more comes before them.

    Raises:
        ValueError: the warps wait for each other, as when only some of a block meet a barrier.
    """
    return _Sm(code, warps, blocks, machine, gap).run(turns)


class _Warp:
    __slots__ = ("at", "block", "boards", "copies", "ready", "reason")

    def __init__(self, block: int, ready: float) -> None:
        self.block, self.ready, self.reason = block, ready, "stall"
        self.at = 0
        self.boards: list[list[float]] = [
            [],
            [],
            [],
            [],
            [],
            [],
        ]  # when each scoreboard's instructions are done
        self.copies = 0.0  # when the asynchronous copies so far are done


class _Sm:
    def __init__(self, code: Sequence[Micro], warps: int, blocks: int, machine: Machine, gap: float) -> None:
        self.code, self.warps, self.machine = code, warps, machine
        # Cycles, beyond its slot, that each instruction takes from its scheduler.
        self.written = [machine.write_back.get(micro.loads, 0.0) if micro.loads else 0.0 for micro in code]
        lanes = range(machine.schedulers)
        everyone = [_Warp(block, block * gap) for block in range(blocks) for _ in range(warps)]
        self.total = len(everyone)
        # Warps of a scheduler, the one that issued last at the end.
        self.groups = [everyone[lane :: machine.schedulers] for lane in lanes]
        self.arrived: list[list[_Warp]] = [[] for _ in range(blocks)]
        self.now = [0.0 if group else _NEVER for group in self.groups]
        self.last: list[_Warp | None] = [None for _ in lanes]
        self.stays = [False for _ in lanes]
        self.units = [[0.0] * (SPECIAL + 1) for _ in lanes]  # when the lanes of each unit are free
        self.holds = (machine.fma_cycles, machine.imad_cycles, machine.alu_cycles, machine.special_cycles)
        self.memory = [0.0 for _ in lanes]
        self.banks = [[0.0, 0.0] for _ in lanes]  # when the reads of the even and the odd registers are done
        self.lsu = self.port = 0.0
        self.spent: defaultdict[str, float] = defaultdict(float)

    def run(self, turns: int) -> Steady:
        now, start = self.now, 0.0
        each = len(self.code) * self.total
        issued = 0
        while True:
            t = min(now)
            if t == _NEVER:
                raise ValueError("the warps wait for each other")
            lane = now.index(t)
            warp, when, why = self._choose(lane, t)
            if warp is None:
                if when < _NEVER:
                    self.spent[why] += when - t
                now[lane] = when
                continue
            now[lane] = t + 1
            written = self.written[warp.at]
            if written:
                now[lane] += written
                self.spent["ports"] += written
            self._issue(lane, warp, t)
            self.spent["issue"] += 1
            issued += 1
            if issued == each:
                start = t
                self.spent.clear()
            elif issued == (turns + 1) * each:
                break
        total = sum(self.spent.values())
        return Steady((t - start) / turns, {name: value / total for name, value in self.spent.items()})

    def _choose(self, lane: int, t: float) -> tuple[_Warp | None, float, str]:
        """The warp to issue at `t`; or None, and when the first may issue and what it waits for until then."""
        group, last = self.groups[lane], self.last[lane]
        units, banks, memory = self.units[lane], self.banks[lane], self.memory[lane]
        throttled = self.lsu - self.machine.memory_queue
        window = self.machine.port_window
        soonest, why = _NEVER, "barrier"
        for warp in (last, *group) if last is not None and self.stays[lane] else group:
            when = warp.ready
            if when == _NEVER:
                continue
            reason = warp.reason
            micro = self.code[warp.at]
            kind = micro.kind
            if kind <= SPECIAL:
                if units[kind] > when:
                    when, reason = units[kind], "pipe"
                even, odd = micro.kept if warp is last else micro.cold
                if even and banks[0] + even - window > when:
                    when, reason = banks[0] + even - window, "ports"
                if odd and banks[1] + odd - window > when:
                    when, reason = banks[1] + odd - window, "ports"
            elif kind <= COPY:
                if memory > when:
                    when, reason = memory, "shared"
                if throttled > when:
                    when, reason = throttled, "shared"
            if when <= t:
                return warp, when, reason
            if when < soonest:
                soonest, why = when, reason
        return None, soonest, why

    def _issue(self, lane: int, warp: _Warp, t: float) -> None:
        micro, machine = self.code[warp.at], self.machine
        kind, boards = micro.kind, warp.boards
        read = t + machine.operand_latency
        done = t + machine.result_latency
        if kind <= SPECIAL:
            self.units[lane][kind] = t + self.holds[kind]
            banks = self.banks[lane]
            even, odd = micro.kept if warp is self.last[lane] else micro.cold
            if even:
                banks[0] = max(banks[0], t) + even
            if odd:
                banks[1] = max(banks[1], t) + odd
        elif kind <= COPY:
            begin = max(self.lsu, t + 4)
            self.lsu = begin + micro.cost
            self.memory[lane] = t + machine.memory_issue_cycles
            read = self.lsu + machine.operand_latency
            done = self._answered(micro, begin)
            if kind == COPY:
                warp.copies = max(warp.copies, done)
        elif kind == COMMIT:
            done = warp.copies
        if micro.sets != NONE:
            boards[micro.sets].append(done)
        if micro.frees != NONE:
            boards[micro.frees].append(read)
        group = self.groups[lane]
        group.remove(warp)
        group.append(warp)
        self.last[lane], self.stays[lane] = warp, micro.keeps
        ready = t + micro.stall
        warp.at += 1
        if warp.at == len(self.code):
            warp.at = 0
            ready += machine.branch_latency
        if kind == BARRIER:
            self._arrive(warp, t)
        else:
            self._next(warp, ready, "stall")

    def _answered(self, micro: Micro, begin: float) -> float:
        """When a memory access that the LSU pipe took at `begin` is done."""
        if micro.kind == SHARED:
            return self.lsu + self.machine.shared_latency
        if not micro.sectors:
            return self.lsu + self.machine.l1_latency
        self.port = max(self.port, begin) + micro.sectors * self.machine.sector_cycles
        return self.port + self.machine.global_latency

    def _arrive(self, warp: _Warp, t: float) -> None:
        waiting = self.arrived[warp.block]
        waiting.append(warp)
        warp.ready = _NEVER
        if len(waiting) < self.warps:
            return
        opened = t + self.machine.barrier_latency
        for other in waiting:
            self._next(other, opened, "barrier")
        waiting.clear()
        for lane, group in enumerate(self.groups):
            if group:
                self.now[lane] = min(self.now[lane], opened)

    def _next(self, warp: _Warp, ready: float, reason: str) -> None:
        """Set when the warp's next instruction may issue, as far as the warp itself is concerned."""
        micro = self.code[warp.at]
        waits, board = micro.waits, 0
        while waits:
            if waits & 1 and warp.boards[board]:
                latest = max(warp.boards[board])
                if latest > ready:
                    ready, reason = latest, "latency"
                warp.boards[board].clear()
            waits >>= 1
            board += 1
        if micro.pending >= 0 and warp.boards[0]:  # DEPBAR: all but the last `pending` groups of copies
            done = sorted(warp.boards[0])
            awaited = done[: len(done) - micro.pending] if micro.pending else done
            if awaited and awaited[-1] > ready:
                ready, reason = awaited[-1], "latency"
            warp.boards[0] = done[len(awaited) :]
        warp.ready, warp.reason = ready, reason
