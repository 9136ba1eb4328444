"""The sections of docs/frontier.md on rung 25 and on single settings say what their snapshot says."""

from __future__ import annotations

import json
from math import prod

import pytest
from snapshot_figures import (
    FRONTIER_25,
    ROOT,
    RUNS,
    one_line,
    rows_of,
    rung_line,
    setting_line,
    size_line,
    unchecked,
    with_interval,
)

from kernelab.report.beside import beside
from kernelab.report.reader import read_results

PAGE = (ROOT / "docs" / "frontier.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("\n## Rung 25: what a load costs\n")[2].partition("\n## ")[0]
SINGLE = PAGE.partition("\n## One setting each\n")[2].partition("\n## ")[0]
CUBLAS, BEFORE, RUNG = "00_cublas", "24_code_gap", "25_matrix_loads"
GOAL = 112.1
SETTINGS = ("settings_of_17", "settings_of_20", "settings_of_21", "settings_of_23")

COMPARISONS = rows_of("comparisons.csv", FRONTIER_25)
STEPS = {row["level"]: row for row in COMPARISONS if row["experiment"] == "frontier"}
SIZES = {
    tuple(row["arm"].replace("/default", "").split("@")): row
    for row in COMPARISONS
    if row["experiment"] == "frontier_sizes"
}
TABLE = rows_of("table.csv", FRONTIER_25)
RUNGS = {row["kernel"]: row for row in TABLE if row["experiment"] == "frontier"}
ON_SIZES = {(row["kernel"], row["problem"]): row for row in TABLE if row["experiment"] == "frontier_sizes"}
RUN5, RUN6 = rows_of("run5.csv", RUNS), rows_of("run6.csv", RUNS)
RUN5_BASES = {
    call: [row["percent"] for row in RUN5 if row["call"] == call and row["change"] == "as_it_is"]
    for call in "123"
}
SLOTS, LOADS = 1630, 72  # of rung 24's hot loop (test_what_if)
ASKED = (
    "fewer",
    "pairs_4",
    "sixes_4",
    "one_address",
    "nop",
    "nop_fewer",
    "no_register",
    "lds_32",
    "lds_64",
    "ldsm_x1_a",
    "ldsm_x2_a",
    "ldsm_x4_a",
    "ldsm_x4",
)


def of(experiment: str) -> list[dict[str, str]]:
    return [row for row in COMPARISONS if row["experiment"] == experiment]


def problem_of(row: dict[str, str]) -> str:
    return row["arm"].partition("@")[2]


def percent(row: dict[str, str]) -> str:
    return f"{100 / float(row['ratio']):.1f}"


def profile(rung: str) -> dict[str, float]:
    record = next(FRONTIER_25.glob(f"*/profile/{rung}/default/square_4096.json"))
    values: dict[str, float] = json.loads(record.read_text(encoding="utf-8"))["values"]
    return values


def counter_line(rung: str) -> str:
    found = profile(rung)
    ffmas = prod(float(RUNGS[rung][side]) for side in "mnk") / 32
    figures = [
        f"{100 * ffmas / found['ncu_instructions']:.1f}",
        *(f"{found[f'ncu_{name}_pct']:.1f}" for name in ("issue_active", "fma_pipe")),
        *(f"{found[f'ncu_stall_{name}']:.2f}" for name in ("dispatch_stall", "no_instruction")),
        f"{found['ncu_shared_wavefronts'] * 1e-6:.0f}",
        f"{found['ncu_dram_read_bytes'] * 1e-9:.2f}",
    ]
    return f"| `{rung}` | {' | '.join(figures)} |"


def asked_line(row: dict[str, str]) -> str:
    """A line of run 5, with the range of its call's base."""
    bases = [float(r["percent"]) for r in RUN5 if r["call"] == row["call"] and r["change"] == "as_it_is"]
    base = f"{min(bases):.2f} to {max(bases):.2f}" if len(bases) > 1 else f"{bases[0]:.2f}"
    return f"| {row['words'].replace('|', '/')} (`{row['change']}`) | {float(row['percent']):.2f} | {base} |"


def beside_line(problem: str) -> str:
    shares = [percent(SIZES[rung, problem]) for rung in ("23_spare_warps", BEFORE, RUNG)]
    return f"| `{problem}` | {' | '.join(shares)} |"


def single_line(row: dict[str, str]) -> str:
    return f"| `{row['base_arm'].partition('/')[0]}` | `{row['level']}` | {with_interval(row)} | {row['verdict']} |"


def lines() -> list[str]:
    asked = [next(row for row in RUN5 if row["change"] == change) for change in ASKED]
    return [
        *(rung_line(row, STEPS.get(rung)) for rung, row in RUNGS.items()),
        *map(asked_line, asked),
        *map(counter_line, (BEFORE, RUNG, CUBLAS)),
        *(
            size_line(row, ON_SIZES[CUBLAS, problem], ON_SIZES[RUNG, problem])
            for (rung, problem), row in SIZES.items()
            if rung == RUNG
        ),
        *(beside_line(problem) for rung, problem in SIZES if rung == RUNG),
        *map(setting_line, of("settings_of_25")),
    ]


def single_lines() -> list[str]:
    return [single_line(row) for experiment in SETTINGS for row in of(experiment)]


def facts() -> list[str]:
    """What the text says, as the snapshot has it."""
    tflops = {rung: float(row["tflops"]) for rung, row in RUNGS.items()}
    rates = {row["arm"]: float(row["tflops"]) for row in TABLE if row["experiment"] == "fp32_ceiling"}
    chains = {n: rates[f"ffma/ACC={n},UNROLL={512 // n}@chains"] for n in (1, 2, 4, 16)}
    most = rates["ffma/default@chains"]  # eight
    found = profile(RUNG)
    idle = 100 - found["ncu_issue_active_pct"]
    (sm_80,) = of("ldmatrix_for_all")
    sm_80_percent = next(
        float(row["pct_of_cublas"]) for row in TABLE if row["kernel"] == "cp_async_matrix_loads"
    )
    kept = {problem_of(row): row for row in of("kept")}
    (counts,) = (
        json.loads(path.read_text(encoding="utf-8"))["counts"]
        for path in FRONTIER_25.glob("*/search/matrix_loads.json")
    )
    (winner, *_) = json.loads(
        next(FRONTIER_25.glob("*/search/matrix_loads.confirmed.json")).read_text(encoding="utf-8")
    )["winners"]
    small, ragged = (
        {row["variant"].partition("|")[0]: float(row["percent"]) for row in RUN6 if row["problem"] == problem}
        for problem in ("square_1024", "frontier_ragged")
    )
    last_call = {row["variant"]: float(row["percent"]) for row in RUN6 if row["call"] == "6"}
    in_step = max(percent for variant, percent in last_call.items() if variant.startswith("step"))
    at_random = [float(row["percent"]) for row in RUN6 if row["call"] == "2"]
    on_the_card = sum(row["call"] in ("3", "5") for row in RUN6)
    nop = next(float(row["percent"]) for row in RUN5 if row["change"] == "nop")
    turn = SLOTS / profile(BEFORE)["ncu_issue_active_pct"] * 100  # cycles of a scheduler
    cost = sorted((1 - float(base) / nop) * turn / LOADS for base in RUN5_BASES["2"])
    faster = {f"{100 * (nop / float(base) - 1):.0f}" for base in RUN5_BASES["2"]}
    assert faster == {"6"}
    sides = beside(
        read_results(FRONTIER_25), *(f"{arm}/default@square_4096" for arm in (RUNG, CUBLAS)), "frontier"
    )
    factor = {
        f.name: f.second / f.first for f in sides.figures if f.section == "factors" and f.first and f.second
    }
    return [
        f"cuBLAS needs {factor['time measured']:.4f} of the time, made of instructions {factor['instructions']:.4f}, cycles an "
        f"issue {factor['cycles an issue']:.4f}, and elapsed over active cycles {factor['elapsed over active']:.4f}",
        "(1.0303 for rung 23, above)",  # (test_frontier_page)
        "{:.0f} MHz beside {:.0f}".format(*(float(RUNGS[rung]["sm_clock_mhz"]) for rung in (RUNG, CUBLAS))),
        f"Rung 25 takes {with_interval(STEPS[RUNG])} of rung 24's time, and passes the goal of {GOAL}%",
        "NVRTC 13.0",
        "the loop would be 6% faster",
        f"a load takes {cost[0]:.1f} to {cost[1]:.1f} cycles from its scheduler beyond its own",
        f"{tflops[RUNG]:.1f} TFLOP/s are {100 * tflops[RUNG] / most:.1f}% of what",
        f"({most:.1f} with eight chains a thread, {chains[4]:.1f} with four;",
        f"{chains[1]:.1f} with one, {chains[2]:.1f} with two; {chains[16]:.1f} with sixteen)",
        f"{found['ncu_issue_active_pct'] - found['ncu_fma_pipe_pct']:.1f}% of the cycles that issue something else, and "
        f"{idle:.1f}% that issue nothing",
        f"saw {small['25b8']:.1f} there where k-tiles of 12 had {small['25']:.1f}",
        f"rung 25 had {ragged['25']:.1f} with `READ_ROWS: 2`, as rung 24 has it, and {ragged['25r4']:.1f} with four",
        f"({on_the_card} settings built, checked and timed",
        f"{counts['raced']} settings) found nothing better; its best, `{winner['configuration']}`, takes "
        f"{winner['ratio']:.4f} ({winner['ratio_low']:.4f} to {winner['ratio_high']:.4f}) of the defaults' time "
        f"(`{winner['verdict']}`)",
        f"between {min(at_random):.2f} and {max(at_random):.2f}% of cuBLAS in one call (run6.csv, call 2)",
        f"takes {with_interval(sm_80)} of rung 17's time (`{sm_80['verdict']}`), and reaches {sm_80_percent:.1f}% of cuBLAS",
        f"{last_call['c2_4_16_128']:.2f}% in a screening (run6.csv, call 6), and {last_call['c1_4_16_128']:.2f} with",
        f"at most {in_step:.2f} against {last_call['base']:.2f} (run6.csv, call 6)",
        "beta 0.5",
        f"{with_interval(kept['square_4096'])} at 4096 cubed, {with_interval(kept['square_8192'])} at 8192 cubed and "
        f"{with_interval(kept['skinny'])} at the skinny problem, but {with_interval(kept['square_1024'])} at 1024 cubed",
    ]


def other_facts() -> list[str]:
    """Figures that come from elsewhere, each checked where it comes from, or in the conclusions below."""
    return [
        "`predict` says 0.6%",  # (docs/predict.md: a model)
        "takes 201 registers for rung 17 in place of 184",
        "Its loop of 36 KB",  # (test_frontier_page's rungs)
        "more than half a percent",
    ]


@pytest.mark.parametrize("line", lines())
def test_each_line_of_the_tables_is_the_snapshots(line: str) -> None:
    assert line in SECTION.splitlines()


@pytest.mark.parametrize("line", single_lines())
def test_each_single_setting_is_the_snapshots(line: str) -> None:
    assert line in SINGLE.splitlines()


@pytest.mark.parametrize("fact", facts())
def test_the_text_says_what_was_measured(fact: str) -> None:
    assert fact in one_line(SECTION + SINGLE)


def test_no_figure_goes_unchecked() -> None:
    known = [*facts(), *other_facts()]
    assert unchecked(SECTION, lines(), known) == []
    assert unchecked(SINGLE, single_lines(), known) == []
    heads = ("| problem |", "| rung |", "| what if |", "| away ")
    for section, shown in ((SECTION, lines()), (SINGLE, single_lines())):
        rows = [x for x in section.splitlines() if x.startswith("| ") and not x.startswith(heads)]
        assert sorted(rows) == sorted(shown)


def test_the_headline_is_the_snapshots() -> None:
    large = SIZES[RUNG, "square_4096"]
    said = f"Rung 25 takes {with_interval(large)} of cuBLAS's time at 4096 cubed: {percent(large)}% of its speed."
    assert said in one_line(PAGE)


@pytest.mark.parametrize(
    ("kind", "instructions"),
    [("load", "smsp__inst_executed_op_ldsm.sum"), ("store", "smsp__inst_executed_op_shared_stsm.sum")],
)
def test_a_card_serves_each_matrix_by_itself(kind: str, instructions: str) -> None:
    """docs/emulated-device.md, Wavefronts: rung 25 has no other loads and stores of shared memory."""
    record = next(FRONTIER_25.glob(f"*/profile/{RUNG}/default/square_4096.json"))
    found = json.loads(record.read_text(encoding="utf-8"))
    (kernel,) = found["kernels"]
    passes = (
        found["values"][f"ncu_shared_{kind}_wavefronts"] - found["values"][f"ncu_shared_{kind}_conflicts"]
    )
    assert passes == 4 * kernel["metrics"][instructions]["value"]


def test_the_conclusions_follow() -> None:
    """Ahead everywhere, past the goal at 4096; where rung 23 is ahead, and which settings matter."""
    assert "lds_128 72 -> 0; ldsm 0 -> 72" in STEPS[RUNG]["outcomes_changed"]
    assert {row["verdict"] for row in SIZES.values()} == {"faster"}
    assert 100 / float(SIZES[RUNG, "square_4096"]["ratio_high"]) > GOAL
    behind = {
        p
        for r, p in SIZES
        if r == RUNG and float(SIZES[r, p]["ratio"]) > float(SIZES["23_spare_warps", p]["ratio"])
    }
    assert behind == {"square_1024", "ragged_4000"}
    assert {row["verdict"] for row in of("settings_of_25")} <= {
        "slower", "within_margin", "equivalent", "identical_code",
    }  # fmt: skip
    registers = {row["arm"]: row["registers"] for row in TABLE if row["experiment"] == "settings_of_17"}
    assert registers["17_cp_async_ring/default@square_4096"] == "184"
    assert registers["17_cp_async_ring/MIN_BLOCKS=1@square_4096"] == "201"
    moved = {
        row["level"]
        for name in ("settings_of_20", "settings_of_21")
        for row in of(name)
        if abs(float(row["ratio"]) - 1) > 0.005
    }
    assert moved == {"AHEAD=7", "POLL_AT=7", "PARTIALS=column_1032"}
    gained = prod(
        float(STEPS[rung]["ratio"]) for rung in ("18_tma_ring", "19_rotating_producer", "20_early_poll")
    )
    (one_block,) = (float(row["ratio"]) for row in of("settings_of_17") if row["level"] == "MIN_BLOCKS=1")
    assert 0.45 < (1 - one_block) / (1 - gained) < 0.55


if __name__ == "__main__":
    print("\n".join([*lines(), "", *single_lines()]))
