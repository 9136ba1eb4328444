"""From cycles to milliseconds: waves, floors, and what the time is said to go to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernelab.build.cards import find_card, make_card
from kernelab.predict.board import Board, board_of
from kernelab.predict.machine import Machine, machine_of
from kernelab.predict.microcode import FMA, Micro
from kernelab.predict.model import PARTS, Prediction, predict
from kernelab.predict.workload import Workload

BOARD = Board(1000.0, 1e9, True)  # 1 GHz, and more bandwidth than anyone could use
LOOP = Workload(
    code=(Micro(FMA),) * 92,
    operations=200,
    loops=True,
    code_bytes=1600,
    sectors=0.0,
    warps=16,
    blocks=10,
    resident=1,
)
PER_TURN = 16 * 32 * 200.0  # operations of a block


def told(workload: Workload = LOOP, turns: float = 50.0, sms: int = 10, **changed: float) -> Prediction:
    found = predict(
        [workload],
        operations=changed.get("operations", PER_TURN * workload.blocks * turns),
        least_bytes=changed.get("least_bytes", 0.0),
        sms=sms,
        board=BOARD,
        machine=Machine(),
    )
    assert found is not None
    return found


def test_turns_times_cycles_over_clock() -> None:
    # Four warps a scheduler issue 92 each; the branch shows but for three cycles: 373 cycles a turn.
    assert told(turns=50).ms == pytest.approx(50 * 373 / 1e6)
    assert told(turns=100).ms == pytest.approx(2 * told(turns=50).ms)


def test_the_parts_are_the_whole() -> None:
    made = told(replace(LOOP, code_bytes=80_000, blocks=13), least_bytes=1e9)
    assert set(made.parts) == set(PARTS)
    assert sum(made.parts.values()) == pytest.approx(made.ms)
    assert min(made.parts.values()) >= 0


@pytest.mark.parametrize(("blocks", "rounds"), [(1, 1), (10, 1), (11, 2), (20, 2), (21, 3)])
def test_the_busiest_sm_decides(blocks: int, rounds: int) -> None:
    assert told(replace(LOOP, blocks=blocks)).ms == pytest.approx(rounds * told().ms)


def test_an_uneven_grid_is_told_as_waves() -> None:
    even, uneven = told(replace(LOOP, blocks=20)), told(replace(LOOP, blocks=11))
    assert even.parts["waves"] == 0
    assert uneven.parts["waves"] == pytest.approx(uneven.ms * (1 - 11 / 20))
    assert uneven.bound == "waves"


def test_a_last_round_with_fewer_blocks_is_simulated_with_fewer() -> None:
    """Three blocks on an SM that holds two: two together, then one alone."""
    loop = replace(LOOP, warps=4, resident=2, blocks=30)
    pair, alone = replace(loop, blocks=20), replace(loop, blocks=10)
    assert told(loop).ms == pytest.approx(told(pair).ms + told(alone).ms)
    assert told(pair).ms < 2 * told(alone).ms


def test_bandwidth_is_a_floor() -> None:
    free = told()
    bound = told(least_bytes=1e9 * 1e6)  # 1e6 cycles of the memory: 1 ms
    assert bound.ms == pytest.approx(1.0)
    assert bound.bound == "bandwidth"
    assert free.parts["bandwidth"] == 0


def test_the_l2_cache_is_a_floor_too() -> None:
    heavy = told(replace(LOOP, sectors=1000.0))
    moved = 1000 * 32 * 50 * 16 * 10  # bytes of all warps
    assert heavy.ms == pytest.approx(moved / (Machine().l2_bytes * 10) / 1e6)


def test_code_beyond_the_instruction_cache_costs() -> None:
    sizes = [told(replace(LOOP, code_bytes=size)).ms for size in (16_000, 32_768, 40_000, 80_000)]
    assert sizes[0] == sizes[1] < sizes[2] < sizes[3]


def test_a_loop_that_computes_nothing_is_not_predicted() -> None:
    found = predict(
        [replace(LOOP, operations=0)], operations=1e9, least_bytes=0, sms=10, board=BOARD, machine=Machine()
    )
    assert found is None


def test_a_kernel_without_a_loop_takes_one_turn() -> None:
    assert told(replace(LOOP, loops=False), operations=0.0).ms == pytest.approx(373 / 1e6)


def test_launches_add_up() -> None:
    copy = replace(LOOP, loops=False, operations=0)
    both = predict(
        [copy, LOOP], operations=PER_TURN * 500, least_bytes=0, sms=10, board=BOARD, machine=Machine()
    )
    assert both is not None
    assert both.ms == pytest.approx(told(turns=50).ms + told(copy, operations=0.0).ms)


def test_cards_have_their_own_clock_and_bandwidth() -> None:
    h200, small = find_card("NVIDIA H200"), find_card("NVIDIA GeForce RTX 3060")
    assert h200 is not None
    assert small is not None
    assert board_of(h200).clock_mhz == 1980
    assert board_of(h200).memory_bytes * 1980e6 == pytest.approx(0.88 * 4.8e12)
    assert board_of(small).memory_bytes * board_of(small).clock_mhz * 1e6 == pytest.approx(
        0.88 * 360e9, rel=0.01
    )
    assert not board_of(make_card("Some new card", "sm_90", 100)).known


def test_architectures_differ_in_the_rate_of_ffmas() -> None:
    assert machine_of("sm_90a") == machine_of("sm_86") == Machine()
    assert machine_of("sm_80").fma_cycles == 2
