"""docs/frontier.md says what the frontier's snapshot says: its tables line by line, and every figure of the text around them."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache
from math import prod
from statistics import mean

import pytest
from snapshot_figures import FRONTIER, ROOT, one_line, rows_of, rung_line, size_line, unchecked, with_interval

from kernelab.plan.catalogue import read_catalogue
from kernelab.statistics.estimate import Estimate, estimate
from kernelab.statistics.policy import VerdictPolicy
from kernelab.timing.rounds import pair_rounds
from kernelab.timing.samples import read_samples

WHOLE = (ROOT / "docs" / "frontier.md").read_text(encoding="utf-8")
# What is between is of other snapshots (test_frontier_24_section, test_frontier_25_section).
BEFORE, _, REST = WHOLE.partition("\n## Rung 24: where the code lies\n")
FROM = "\n## What did not help\n"
PAGE = BEFORE + FROM + REST.partition(FROM)[2]
# What comes from earlier runs, and says so, is in no snapshot.
MEASURED = PAGE.partition("\nFrom earlier runs on H200s")[0]
NEXT = PAGE.partition("\n## What to try next\n")[2].partition("\n## ")[0]
CUBLAS, LAST = "00_cublas", "23_spare_warps"
GOAL = 112.1
LAST_HEADLINE = BEFORE.partition("**Rung 25 ")[2].partition("**")[0]
OTHERS_HEADLINE = BEFORE.partition("rung 24, on another H200, ")[2].partition(". All of it")[0]
DEFAULTS = (
    read_catalogue(ROOT / "kernels/sgemm/kernels.yaml", "kernels/sgemm/kernels.yaml").kernels[LAST].defaults()
)

COMPARISONS = rows_of("comparisons.csv", FRONTIER)
STEPS = {row["level"]: row for row in COMPARISONS if row["experiment"] == "frontier"}
SIZES = {row["arm"].partition("@")[2]: row for row in COMPARISONS if row["experiment"] == "frontier_sizes"}
TABLE = rows_of("table.csv", FRONTIER)
RUNGS = {row["kernel"]: row for row in TABLE if row["experiment"] == "frontier"}
ON_SIZES = {(row["kernel"], row["problem"]): row for row in TABLE if row["experiment"] == "frontier_sizes"}
BEST = [row for row in rows_of("searches.csv", FRONTIER) if row["search"] == "spare_warps"]
SEARCH = next(FRONTIER.glob("*/search/spare_warps.json"))


def number(rung: str, column: str) -> float:
    return float(RUNGS[rung][column])


def warp_ffmas() -> float:
    """FFMA instructions of warps that the problem of the ladder takes."""
    return prod(number(LAST, side) for side in "mnk") / 32


def counter_line(rung: str) -> str:
    figures = [
        f"{100 * warp_ffmas() / number(rung, 'ncu_instructions'):.1f}",
        *(f"{number(rung, f'ncu_{name}_pct'):.1f}" for name in ("issue_active", "fma_pipe", "sm_active")),
        f"{number(rung, 'ncu_stall_dispatch_stall'):.2f}",
        f"{number(rung, 'ncu_shared_wavefronts') * 1e-6:.0f}",
        f"{number(rung, 'ncu_dram_read_bytes') * 1e-9:.2f}",
    ]
    return f"| `{rung}` | {' | '.join(figures)} |"


def winner_line(row: dict[str, str]) -> str:
    moved = {
        name: level
        for name, level in json.loads(row["settings"]).items()
        if str(DEFAULTS[name]).lower() != level
    }
    name = ",".join(f"{parameter}={level}" for parameter, level in sorted(moved.items()))
    return f"| {row['rank']} | `{name}` | {with_interval(row)} | {row['verdict']} |"


def level_lines() -> list[str]:
    """The mean ratio of each level of each setting, over all configurations of the search."""
    ratios: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows_of("spare_warps.csv", SEARCH.parent):
        for name, level in json.loads(row["settings"]).items():
            ratios[name][level].append(float(row["ratio"]))
    shown = {
        "MOVE_QUADS": ("true", "false"),
        "SHARED_TILES": ("last", "all"),
        "LOAD_ORDER": ("before_rows", "after_first_quad", "after_each_quad"),
    }
    return [
        f"| `{name}` | {', '.join(f'{level} {mean(levels[level]):.4f}' for level in shown.get(name, sorted(levels)))} |"
        for name, levels in ratios.items()
    ]


@cache
def beside_cublas(rank: int) -> Estimate:
    """cuBLAS's time over that of a winner of the search (0: the defaults), in the session that confirmed it."""
    samples = read_samples(next(FRONTIER.glob("*/search/spare_warps/*/timing/search_spare_warps.csv.gz")))
    variant = BEST[rank - 1]["configuration"] if rank else "default"
    arms = tuple(f"{arm}@square_4096" for arm in (f"{LAST}/{variant}", f"{CUBLAS}/default"))
    return estimate(pair_rounds(samples, "s1", arms).time, VerdictPolicy())


def percent(found: Estimate) -> str:
    return f"{100 * found.ratio:.2f}% ({100 * found.low:.2f} to {100 * found.high:.2f})"


def product() -> float:
    """Percent of cuBLAS's speed that two controlled ratios give for the best of the search."""
    return 100 / (float(BEST[0]["ratio"]) * float(SIZES["square_4096"]["ratio"]))


def going(rungs: tuple[str, str], column: str, style: str = "{:.2f}", scale: float = 1.0) -> list[str]:
    return [style.format(number(rung, column) * scale) for rung in rungs]


def facts() -> list[str]:
    """What the text says, as the snapshot has it."""
    search = json.loads(SEARCH.read_text(encoding="utf-8"))
    large = SIZES["square_4096"]
    speed = 100 / float(large["ratio"])
    factors = [
        number(CUBLAS, "time_ms") / number(LAST, "time_ms"),
        number(CUBLAS, "ncu_instructions") / number(LAST, "ncu_instructions"),
        number(LAST, "ncu_issue_active_pct") / number(CUBLAS, "ncu_issue_active_pct"),
        number(LAST, "ncu_sm_active_pct") / number(CUBLAS, "ncu_sm_active_pct"),
    ]
    issuing, fma = number(LAST, "ncu_issue_active_pct"), number(LAST, "ncu_fma_pipe_pct")
    interleaved, ring, tma = ("14_swizzled", "15_interleaved"), "17_cp_async_ring", "18_tma_ring"
    passes = going(interleaved, "ncu_shared_wavefronts", "{:.0f}", 1e-6)
    shares = [100 * warp_ffmas() / number(rung, "ncu_instructions") for rung in interleaved]
    waits = going((ring, tma), "ncu_stall_wait")
    turns = (tma, "19_rotating_producer")
    scoreboard = going((ring, tma), "ncu_stall_long_scoreboard")
    step = {rung: float(row["ratio"]) for rung, row in STEPS.items()}
    return [
        "which reaches " + f"{number('13_final', 'pct_of_cublas'):.1f}% of cuBLAS on an H200",
        f"takes {with_interval(large)} of cuBLAS's time at 4096 cubed: {speed:.1f}% of its speed",
        one_line(OTHERS_HEADLINE),
        one_line(LAST_HEADLINE),
        "NVRTC 13.0",
        "the 95% interval",
        "beta 0.5",
        # the search
        f"{search['counts']['raced']} settings of rung 23",
        f"raced in {search['seconds']['total']:.0f} s",
        f"the best is {100 - 100 * float(BEST[0]['ratio']):.1f}% faster than the defaults",
        "inside the margin of 1%",
        f"the best setting reaches {percent(beside_cublas(1))} of its speed, the defaults {percent(beside_cublas(0))}",
        f"{float(BEST[0]['ratio']):.4f} of {float(large['ratio']):.4f}, gives {product():.1f}%, "
        f"since there the defaults came to {speed:.1f}%",
        f"The goal of {GOAL}% at 4096 cubed is not reached**, by {GOAL - 100 * beside_cublas(1).ratio:.1f} to "
        f"{GOAL - product():.1f} points",
        # where the time goes
        f"the problem's {warp_ffmas() * 1e-9:.3f}e9 FFMAs of a warp",
        "cuBLAS needs {:.4f} of the time, made of instructions {:.4f}".format(*factors),
        f"cycles an issue {factors[2]:.4f}, and elapsed over active cycles {factors[3]:.4f}",
        f"its 512 blocks are {512 / 132:.2f} waves of 132 SMs",
        f"{100 - issuing:.1f}% issue nothing",
        "dispatch, {} warps an issue where cuBLAS has {}".format(
            *going((LAST, CUBLAS), "ncu_stall_dispatch_stall")
        ),
        f"{issuing - fma:.1f}% issue something other than an FMA",
        f"idle for {100 - number(LAST, 'ncu_sm_active_pct'):.1f}% of the cycles",
        "reads {} GB from DRAM where cuBLAS reads {}".format(
            *going((LAST, CUBLAS), "ncu_dram_read_bytes", scale=1e-9)
        ),
        "({} against {}% of what DRAM can)".format(*going((LAST, CUBLAS), "ncu_dram_pct", "{:.1f}")),
        f"rungs 21 and 22 {number('21_stream_k', 'ncu_dram_read_bytes') * 1e-9:.2f}",
        # the ideas
        f"{number(LAST, 'threads') / 32:.0f} warps would have {RUNGS[LAST]['registers']} registers each",
        # what did not help
        f"takes {with_interval(STEPS['15_interleaved'])} of rung 14's time",
        "fall from {} to {} million".format(*passes),
        "(MIO throttle {} warps an issue)".format(*going(interleaved, "ncu_stall_mio_throttle", "{:.3f}")),
        "FFMA share falls from {:.1f} to {:.1f}%".format(*shares),
        f"the two take {step['15_interleaved'] * step['16_serpentine']:.3f} of 14's time",
        f"takes {with_interval(STEPS[tma])} of rung 17's time",
        f"issues in {number(tma, 'ncu_issue_active_pct'):.1f}% of the cycles where 17 does in "
        f"{number(ring, 'ncu_issue_active_pct'):.1f}%",
        "rise from {} to {} warps an issue, and".format(*scoreboard),
        "wait stalls from {} to {}".format(*waits),
        f"equivalent to 18, {with_interval(STEPS['19_rotating_producer'])}",
        "long scoreboard stalls, {} to {};".format(*going(turns, "ncu_stall_long_scoreboard")),
        "wait stalls stay, {} to {},".format(*going(turns, "ncu_stall_wait")),
        f"brings wait stalls back to {number('20_early_poll', 'ncu_stall_wait'):.2f}",
        f"take {step[tma] * step[turns[1]] * step['20_early_poll']:.3f} of the time",
    ]


def lines() -> list[str]:
    return [
        *(rung_line(row, STEPS.get(rung)) for rung, row in RUNGS.items()),
        *map(counter_line, RUNGS),
        *(size_line(SIZES[name], ON_SIZES[CUBLAS, name], ON_SIZES[LAST, name]) for name in SIZES),
        *map(winner_line, BEST),
        *level_lines(),
    ]


@pytest.mark.parametrize("line", lines())
def test_each_line_of_the_tables_is_the_snapshots(line: str) -> None:
    assert line in PAGE.splitlines()


def test_the_tables_have_no_other_line() -> None:
    shown = [line for line in PAGE.splitlines() if line.startswith(("| `", "| 1 ", "| 2 ", "| 3 "))]
    assert sorted(shown) == sorted(lines())


@pytest.mark.parametrize("fact", facts())
def test_the_text_says_what_was_measured(fact: str) -> None:
    assert fact in one_line(MEASURED)


def test_no_figure_goes_unchecked() -> None:
    assert unchecked(MEASURED, lines(), facts()) == []
    assert unchecked(NEXT, (), ()) == []


def test_the_conclusions_follow() -> None:
    """Ahead everywhere; the goal passed at two problems, missed at 4096 even by the best of the search; what the best share."""
    assert {row["verdict"] for row in SIZES.values()} == {"faster"}
    passed = {problem for problem, row in SIZES.items() if 100 / float(row["ratio_high"]) > GOAL}
    assert passed == {"square_8192", "skinny"}
    assert 100 * beside_cublas(1).high < GOAL
    assert {json.loads(row["settings"])["SHARED_TILES"] for row in BEST} == {"last"}
    assert {json.loads(row["settings"])["MOVE_QUADS"] for row in BEST} == {"true"}
    assert DEFAULTS["SHARED_TILES"] == "all"
    assert number("21_stream_k", "ncu_dram_read_bytes") == pytest.approx(
        number("22_late_transposition", "ncu_dram_read_bytes"), rel=0.01
    )
    assert number("18_tma_ring", "ncu_instructions") < number("17_cp_async_ring", "ncu_instructions")
