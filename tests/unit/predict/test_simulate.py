"""The simulated SM against cases that can be worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from kernelab.predict.machine import WRITE_BACK, Machine
from kernelab.predict.microcode import BARRIER, FMA, GLOBAL, SHARED, Micro
from kernelab.predict.simulate import simulate

MACHINE = Machine()
ADD = Micro(FMA)


def load(cost: float, board: int = 0) -> Micro:
    return Micro(SHARED, sets=board, cost=cost)


def test_one_warp_issues_an_instruction_a_cycle_and_then_branches_back() -> None:
    steady = simulate([ADD] * 10, warps=1, blocks=1, machine=MACHINE)
    assert steady.cycles == 10 + MACHINE.branch_latency


def test_warps_in_step_meet_the_branch_together() -> None:
    steady = simulate([ADD] * 10, warps=16, blocks=1, machine=MACHINE)
    # Four warps a scheduler take turns; the last one's turn covers three cycles of the first one's branch.
    assert steady.cycles == 4 * 10 + MACHINE.branch_latency - 3
    assert steady.shares["issue"] == pytest.approx(40 / 45)


def test_schedulers_do_not_share_their_issue_slots() -> None:
    one = simulate([ADD] * 10, warps=1, blocks=1, machine=MACHINE).cycles
    assert simulate([ADD] * 10, warps=4, blocks=1, machine=MACHINE).cycles == one
    assert simulate([ADD] * 10, warps=5, blocks=1, machine=MACHINE).cycles > one


def test_sixteen_lanes_take_two_cycles() -> None:
    half = replace(MACHINE, fma_cycles=2)
    assert simulate([ADD] * 10, warps=16, blocks=1, machine=half).cycles == pytest.approx(80, abs=1)


def test_stall_counts_hold_a_lone_warp_back() -> None:
    steady = simulate([Micro(FMA, stall=4)] * 10, warps=1, blocks=1, machine=MACHINE)
    assert steady.cycles == 40 + MACHINE.branch_latency
    full = simulate([Micro(FMA, stall=4)] * 10, warps=16, blocks=1, machine=MACHINE)
    assert full.cycles == 40 + MACHINE.branch_latency  # others fill the stalls


@pytest.mark.parametrize(
    ("banks", "cycles"), [((1, 1), 1), ((1, 0), 1), ((2, 0), 2), ((0, 3), 3), ((2, 1), 2)]
)
def test_a_bank_gives_one_register_a_cycle(banks: tuple[int, int], cycles: int) -> None:
    code = [Micro(FMA, kept=banks, cold=banks)] * 32
    steady = simulate(code, warps=16, blocks=1, machine=MACHINE, turns=20)
    assert steady.cycles == pytest.approx(4 * 32 * cycles, rel=0.1)


def test_the_window_lets_conflicts_of_neighbours_even_out() -> None:
    code = [Micro(FMA, kept=(2, 0), cold=(2, 0)), Micro(FMA, kept=(0, 2), cold=(0, 2))] * 16
    alone = replace(MACHINE, port_window=1)
    assert simulate(code, 4, 1, alone).cycles > 1.3 * simulate(code, 4, 1, MACHINE).cycles


def test_a_kept_operand_holds_the_scheduler_to_its_warp() -> None:
    dear = [Micro(FMA, kept=(1, 1), cold=(3, 3), keeps=True)] * 32
    free = [ADD] * 32
    # But for the first of a turn, no instruction reads what another warp's has driven out.
    assert simulate(dear, 16, 1, MACHINE).cycles <= simulate(free, 16, 1, MACHINE).cycles + 4 * 3


def test_a_load_is_waited_for() -> None:
    code = [load(2.0), Micro(FMA, waits=1)]
    steady = simulate(code, warps=1, blocks=1, machine=MACHINE)
    # Four cycles to the pipe, two wavefronts, the latency; the FFMA; the branch back.
    assert steady.cycles == 4 + 2 + MACHINE.shared_latency + 1 + MACHINE.branch_latency
    assert steady.shares["latency"] > 0.5


def test_warps_hide_each_others_latency() -> None:
    code = [load(1.0), Micro(FMA, waits=1)]
    one = simulate(code, warps=4, blocks=1, machine=MACHINE).cycles
    four = simulate(code, warps=16, blocks=1, machine=MACHINE).cycles
    assert four < 1.5 * one


def test_the_pipe_of_shared_memory_serves_all_schedulers() -> None:
    code = [load(8.0, board=1), *[ADD] * 4]
    steady = simulate(
        code, warps=16, blocks=1, machine=MACHINE, turns=50
    )  # the queue is full after the first
    assert steady.cycles == pytest.approx(16 * 8, rel=0.05)
    assert steady.shares["shared"] > 0.5


def test_time_grows_with_wavefronts() -> None:
    times = [
        simulate([*[load(float(cost))] * 4, Micro(FMA, waits=1), *[ADD] * 40], 8, 1, MACHINE, turns=50).cycles
        for cost in (1, 2, 4, 8, 16)
    ]
    # A wavefront that hides behind arithmetic may cost or gain a cycle; the pipe's own time does not hide.
    assert all(later > 0.97 * earlier for earlier, later in pairwise(times))
    assert times[-1] == pytest.approx(2 * times[-2], rel=0.05)
    assert times[-1] == pytest.approx(8 * 4 * 16, rel=0.05)


def test_a_barrier_waits_for_the_slowest_warp_of_its_block_only() -> None:
    code = [*[ADD] * 20, Micro(BARRIER)]
    together = simulate(code, warps=8, blocks=1, machine=MACHINE).cycles
    assert together >= 2 * 20 + MACHINE.barrier_latency
    apart = simulate(code, warps=4, blocks=2, machine=MACHINE).cycles
    assert apart <= together


def test_a_second_block_hides_the_first_ones_loads() -> None:
    code = [Micro(GLOBAL, sets=0, cost=4.0, sectors=16.0), *[ADD] * 600, Micro(FMA, waits=1), Micro(BARRIER)]
    code = code[:1] + code[-2:] + code[1:-2]  # waited for at once
    one = simulate(code, warps=4, blocks=1, machine=MACHINE).cycles
    two = simulate(code, warps=4, blocks=2, machine=MACHINE, gap=700).cycles
    assert one > MACHINE.global_latency + 600
    assert two < 1.2 * one


def test_warps_that_wait_for_each_other_are_an_error() -> None:
    never = Micro(FMA, waits=1 << 5)
    with pytest.raises(ValueError, match="wait for each other"):
        simulate([Micro(SHARED, sets=5, cost=float("inf")), never], 1, 1, MACHINE)


@pytest.mark.parametrize(("load", "cycles"), WRITE_BACK.items())
def test_what_a_load_brings_is_written_at_its_schedulers_cost(load: tuple[str, int], cycles: float) -> None:
    store = [Micro(SHARED, cost=0.5), *[ADD] * 40]
    loads = [Micro(SHARED, cost=0.5, loads=load), *[ADD] * 40]
    lost = simulate(loads, 4, 1, MACHINE).cycles - simulate(store, 4, 1, MACHINE).cycles
    assert lost == pytest.approx(cycles)


def test_wide_loads_cost_most_and_ldmatrix_less_than_two_registers_at_once() -> None:
    assert WRITE_BACK["LDS", 32] < WRITE_BACK["LDSM", 128] < WRITE_BACK["LDS", 64] < WRITE_BACK["LDS", 128]
    assert WRITE_BACK["LDSM", 32] < WRITE_BACK["LDSM", 64] < WRITE_BACK["LDSM", 128]
