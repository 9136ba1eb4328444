"""Block barriers: bar.sync, bar.arrive and bar.red, named ones and those with a thread count included."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .decode_control import Barrier
from .parser import Instruction


@dataclass(slots=True)
class State:
    """One barrier of one block between two completions."""

    arrived: NDArray[np.bool_]  # by thread of the block
    place: NDArray[np.int64]  # segment of the barrier at which each thread arrived, -1 when it only arrives
    expected: int | None  # threads named by the count operand
    waiting: list[tuple[int, NDArray[np.int64]]] = field(default_factory=list)


def arrive(
    m: Any, segment: Any, lanes: NDArray[np.int64] | None
) -> tuple[int, NDArray[np.int64] | None] | None:
    """Lanes reach a barrier. Returns where they go on when they complete it at once, else queues them."""
    info: Barrier = segment.end.data
    following = segment.number + 1
    if info.plain and lanes is None and not m.barriers:
        m.run.races.barrier(m, None, None)
        return following, None
    everyone = np.arange(m.lanes) if lanes is None else lanes
    assert info.number is not None
    numbers = np.broadcast_to(info.number(m, lanes), (1, len(everyone)))[0]
    counts = None
    if info.count is not None:
        counts = np.broadcast_to(info.count(m, lanes), (1, len(everyone)))[0]
    blocks = m.block_of[everyone]
    if info.plain and lanes is not None and not m.barriers and _whole_blocks(m, blocks):
        m.run.races.barrier(m, np.unique(blocks), lanes)
        _advise_exited(m, segment.end.instruction, np.unique(blocks))
        return following, lanes
    for block in np.unique(blocks).tolist():
        inside = blocks == block
        for number in np.unique(numbers[inside]).tolist():
            chosen = inside & (numbers == number)
            count = None if counts is None else int(counts[chosen][0])
            _join(m, segment, info, block, int(number), count, everyone[chosen])
    if not info.waits:
        return following, lanes
    return None


def _whole_blocks(m: Any, blocks: NDArray[np.int64]) -> bool:
    here = np.bincount(blocks, minlength=len(m.blocks))
    return bool(((here == 0) | (here == m.live_in_block)).all())


def _advise_exited(m: Any, instruction: Instruction, blocks: NDArray[np.int64]) -> None:
    if (m.live_in_block[blocks] < m.run.threads).any():
        m.run.hazards.advise(
            f"PTX line {instruction.line}: some threads exited before this barrier; sm_70 and later let the others pass"
        )


def _join(
    m: Any, segment: Any, info: Barrier, block: int, number: int, count: int | None, lanes: NDArray[np.int64]
) -> None:
    instruction = segment.end.instruction
    if number > 15 or (count is not None and (count % 32 or not 0 < count <= m.padded)):
        what = f"barrier {number}" if number > 15 else f"a count of {count} threads"
        m.run.report(
            "invalid_barrier",
            instruction,
            m,
            (int(lanes[0]),),
            f"{what} (barriers are 0 to 15, counts multiples of 32 up to the block)",
            None,
            None,
            len(lanes),
        )
        if info.waits:
            m.push(segment.number + 1, lanes)
        return
    state = m.barriers.get((block, number))
    if state is None:
        state = m.barriers[block, number] = State(np.zeros(m.padded, np.bool_), np.full(m.padded, -2), count)
    elif state.expected != count:
        m.run.report(
            "invalid_barrier",
            instruction,
            m,
            (int(lanes[0]),),
            f"barrier {number} is used with {count} threads where others used {state.expected}",
            None,
            None,
            len(lanes),
        )
    threads = m.thread_of[lanes]
    state.arrived[threads] = True
    state.place[threads] = segment.number if info.waits else -1
    if info.waits:
        state.waiting.append((segment.number, lanes))
    m.run.races.arrive(m, block, number, lanes)
    if _complete(m, block, state):
        _release(m, block, number, state)


def _complete(m: Any, block: int, state: State) -> bool:
    live = m.live[block * m.padded : (block + 1) * m.padded]
    if state.expected is None:
        return bool((state.arrived | ~live).all())
    by_warp = state.arrived.reshape(-1, 32)
    whole = by_warp.any(1) & (by_warp | ~live.reshape(-1, 32)).all(1)
    return 32 * int(whole.sum()) >= state.expected


def _release(m: Any, block: int, number: int, state: State) -> None:
    del m.barriers[block, number]
    _check_divergence(m, block, state)
    if state.waiting:
        lanes = np.sort(np.concatenate([lanes for _, lanes in state.waiting]))
        first = m.segments[state.waiting[0][0]].end
        if state.expected is None:
            _advise_exited(m, first.instruction, np.array([block]))
            places = {m.segments[place].end.instruction.line for place, _ in state.waiting}
            if len(places) > 1:
                m.run.hazards.advise(
                    f"barrier {number} completed with warps at PTX lines {', '.join(map(str, sorted(places)))}; "
                    "legal in PTX, not for __syncthreads()"
                )
        m.run.races.release(m, block, number, lanes)
        _reduce(m, state)
    for place, lanes in state.waiting:
        m.push(place + 1, lanes)


def _check_divergence(m: Any, block: int, state: State) -> None:
    place = state.place.reshape(-1, 32)
    waits = place >= 0
    low = np.where(waits, place, np.iinfo(np.int64).max).min(1)
    high = np.where(waits, place, -1).max(1)
    for warp in np.flatnonzero(waits.any(1) & (low != high)).tolist():
        one, other = m.segments[int(low[warp])].end, m.segments[int(high[warp])].end
        if not (one.data.aligned or other.data.aligned):
            continue
        base = block * m.padded + 32 * warp
        a, b = (base + int(np.flatnonzero(place[warp] == p)[0]) for p in (low[warp], high[warp]))
        m.run.report(
            "barrier_divergence",
            one.instruction,
            m,
            (a, b),
            f"lanes of one warp wait at different barriers (PTX lines {one.instruction.line} and "
            f"{other.instruction.line})",
            None,
            None,
            int(waits[warp].sum()),
            other=other.instruction,
        )


def _reduce(m: Any, state: State) -> None:
    """The result of bar.red, over every waiting thread."""
    reducing = [
        (m.segments[p].end.data, lanes) for p, lanes in state.waiting if m.segments[p].end.data.reduce
    ]
    if not reducing:
        return
    flags = []
    for info, lanes in reducing:
        value = np.broadcast_to(info.predicate(m, lanes), (1, len(lanes)))[0]
        flags.append(~value if info.negated else value)
    every = np.concatenate(flags)
    for info, lanes in reducing:
        result = (
            every.sum() if info.reduce == "popc" else every.all() if info.reduce == "and" else every.any()
        )
        info.write(m, lanes, result)


def recheck(m: Any) -> None:
    """After threads exited: barriers that waited only for them complete."""
    for (block, number), state in list(m.barriers.items()):
        if (block, number) in m.barriers and state.waiting and _complete(m, block, state):
            _release(m, block, number, state)


def report_deadlocks(m: Any) -> None:
    """Nothing can run: every barrier that still has waiting threads will wait for ever."""
    for (block, number), state in m.barriers.items():
        if not state.waiting:
            continue
        place, lanes = state.waiting[0]
        live = int(m.live_in_block[block])
        waiting = sum(len(each) for _, each in state.waiting)
        wanted = f"{state.expected} threads" if state.expected is not None else f"all {live} live threads"
        m.run.report(
            "deadlock",
            m.segments[place].end.instruction,
            m,
            (int(lanes[0]),),
            f"{waiting} threads wait at barrier {number} for {wanted}, and the others never come",
            None,
            None,
            waiting,
        )
    m.barriers.clear()
