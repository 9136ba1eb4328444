"""docs/results-h200.md says what the snapshot says: every claim's row, and every figure of the text around them."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from snapshot_figures import ROOT, SNAPSHOT, one_line, rows_of, unchecked, with_interval

PAGE = (ROOT / "docs" / "results-h200.md").read_text(encoding="utf-8")
TEXT = one_line(PAGE)
SM_REGISTERS = 65536
SIZE = "@square_4096"


CLAIMS = {row["claim"]: row for row in rows_of("claims.csv")}
COMPARISONS = rows_of("comparisons.csv")
ARMS = {(row["experiment"], row["arm"].removesuffix(SIZE)): row for row in rows_of("table.csv")}


def claim_row(row: dict[str, str]) -> str:
    """A claim as its line in the page's tables."""
    text = row["text"].replace("__launch_bounds__(NT, 1)", "`__launch_bounds__(NT, 1)`")
    if row["measured_low"]:
        measured = with_interval(row, "measured", "measured_low", "measured_high")
    else:
        measured = f"{float(row['measured']):.4g}" if row["measured"] else ""
    return f"| {row['claim']} | {text} | {row['claimed']} | {measured} | {row['status'].replace('_', ' ')} |"


def number(experiment: str, arm: str, column: str) -> float:
    return float(ARMS[experiment, arm][column])


def ladder(rung: str, column: str) -> float:
    return number("ladder", f"{rung}/default", column)


def ratio(experiment: str, arm: str, base: str = "") -> str:
    """The one comparison of an experiment with that arm (and base): its ratio with its interval."""
    (row,) = (
        row
        for row in COMPARISONS
        if row["experiment"] == experiment
        and row["arm"].removesuffix(SIZE) == arm
        and base in ("", row["base_arm"].removesuffix(SIZE))
    )
    return with_interval(row)


def between(rungs: tuple[str, str], column: str, style: str = "{:.3g}", scale: float = 1.0) -> str:
    low, high = (style.format(ladder(rung, column) * scale) for rung in rungs)
    return f"{low} to {high}"


NAIVE, COALESCED, SMEM, ONE_D = "01_naive", "02_gmem_coalesced", "03_smem", "04_1d_blocktiling"
TWO_D, TRANSPOSED, WARPS, STAGED = "05_2d_blocktiling", "06_2d_transposed", "08_warptiling", "11_staged"
BUFFERED, FINAL = "12_double_buffered", "13_final"
WIDE = "12_double_buffered/BN=128,TM=16,WN=64"
UNPADDED = "12_double_buffered/A_PAD=0,BN=128,TM=16,WN=64"
UNREAD = "12_double_buffered/A_PAD=0,BETA_READ=false,BN=128,TM=16,WN=64"
BOUND = "12_double_buffered/A_PAD=0,BETA_READ=false,BN=128,MIN_BLOCKS=1,TM=16,WN=64"
DEFAULT = "13_final/default"
SWIZZLED = "13_final/A_SWIZZLE=true"
READ = ("beta_read", "13_final/BETA_READ=true")


def facts() -> list[str]:
    """What the text says, as the snapshot has it."""
    status = Counter(row["status"] for row in CLAIMS.values())
    verdict = Counter(row["verdict"] for row in COMPARISONS)
    read = [number("beta_read", arm, "ncu_dram_read_bytes") * 1e-6 for arm in (READ[1], DEFAULT)]
    group = {row["level"]: float(row["ratio"]) for row in COMPARISONS if row["experiment"] == "rasterisation"}
    unbound = [
        ARMS["launch_bounds", "13_final/MIN_BLOCKS=none"],
        ARMS["retune_waterfall", UNREAD],
    ]
    conflicts = ladder(WARPS, "ncu_shared_load_conflicts") / ladder(WARPS, "ncu_shared_load_wavefronts")
    passes = [
        number("padding_premise", arm, "emu_wavefronts_per_store")
        for arm in (DEFAULT, "13_final/A_PAD=2", "12_double_buffered/A_PAD=0", "12_double_buffered/A_PAD=4")
    ]
    compiler = json.loads((SNAPSHOT / "toolchain.json").read_text(encoding="utf-8"))["nvrtc"]["compiler"]
    return [
        f"{compiler.replace('nvrtc', 'NVRTC').rpartition('.')[0]}, 4096 cubed",
        "the 95% interval",
        f"{len({row['experiment'] for row in COMPARISONS})} experiments, {len(COMPARISONS)} comparisons",
        f"{verdict['faster']} faster, {verdict['slower']} slower, {verdict['equivalent']} equivalent, "
        f"{verdict['within_margin']} within the margin, {verdict['confounded']} confounded",
        f"Of {len(CLAIMS)} claims {status['holds']} hold, {status['stronger']} are stronger, {status['weaker']} weaker, "
        f"{status['reversed']} reversed, {status['no_effect']} without effect, {status['refused']} refused, "
        f"{status['not_measured']} not measured",
        # what held
        f"stop at {ladder(WARPS, 'pct_of_cublas'):.1f}% of cuBLAS where the article reached "
        f"{CLAIMS['A2_08_cublas']['claimed']} (A2)",
        f"from {between((NAIVE, COALESCED), 'ncu_global_load_sectors_per_request')} sectors a load",
        f"L1TEX from {between((NAIVE, COALESCED), 'ncu_l1tex_pct')}%",
        f"LG throttle from {between((NAIVE, COALESCED), 'ncu_stall_lg_throttle')} warps an issue",
        f"MIO throttle from {between((SMEM, ONE_D), 'ncu_stall_mio_throttle')} warps an issue",
        f"stores' wavefronts from {between((TWO_D, TRANSPOSED), 'ncu_shared_store_wavefronts', '{:.0f}', 1e-6)} million",
        f"all wavefronts from {between((TWO_D, TRANSPOSED), 'ncu_shared_wavefronts', '{:.0f}', 1e-6)} million",
        f"it takes {100 - 100 * float(CLAIMS['A4b']['measured']):.1f}% less time",
        f"registers from {between((TWO_D, TRANSPOSED), 'registers')}",
        f"occupancy from {between((TWO_D, TRANSPOSED), 'occupancy_pct')}%",
        f"issuing from {between((TWO_D, TRANSPOSED), 'ncu_issue_active_pct')}% of the cycles",
        f"{conflicts * 100:.3f}% of its load wavefronts",
        # what reversed
        ratio("forced_unroll", "11_staged/default"),
        f"{number('forced_unroll', '11_staged/UNROLL=false', 'registers'):.0f} registers to "
        f"{ladder(STAGED, 'registers'):.0f}",
        f"{SM_REGISTERS // (2 * 256)} registers",
        f"long scoreboard stalls rise from {between((WARPS, STAGED), 'ncu_stall_long_scoreboard')} warps an issue",
        ratio("retune", DEFAULT),
        f"{100 - 100 * ladder(FINAL, 'ncu_instructions') / ladder(BUFFERED, 'ncu_instructions'):.0f}% fewer instructions",
        f"{100 - 100 * ladder(FINAL, 'ncu_shared_wavefronts') / ladder(BUFFERED, 'ncu_shared_wavefronts'):.0f}% "
        "fewer wavefronts",
        f"{100 - 100 * ladder(FINAL, 'ncu_dram_read_bytes') / ladder(BUFFERED, 'ncu_dram_read_bytes'):.0f}% "
        "fewer bytes from DRAM",
        f"issue in {ladder(FINAL, 'ncu_issue_active_pct'):.1f}% of the cycles where rung 12 issues in "
        f"{ladder(BUFFERED, 'ncu_issue_active_pct'):.1f}%",
        f"long scoreboard stalls go from {between((BUFFERED, FINAL), 'ncu_stall_long_scoreboard', '{:.2f}')}",
        f"conflicts of shared stores from {between((BUFFERED, FINAL), 'ncu_shared_store_conflicts', '{:.1f}', 1e-6)} million",
        ratio("retune_waterfall", WIDE, "12_double_buffered/default"),
        ratio("retune_waterfall", UNPADDED, WIDE),
        ratio("retune_waterfall", UNREAD, UNPADDED),
        ratio("retune_waterfall", BOUND, UNREAD),
        ratio("padding_premise", "13_final/A_PAD=2"),
        ratio("padding_premise", "12_double_buffered/A_PAD=4"),
        ratio("padding_premise", "13_final/A_PAD=4"),
        ratio("beta_read", DEFAULT),
        f"{read[0] - read[1]:.0f} MB fewer read from DRAM",
        # what to act on
        ratio("swizzle", SWIZZLED),
        f"{number('swizzle', SWIZZLED, 'time_ms'):.3f} ms, {number('swizzle', SWIZZLED, 'pct_of_cublas'):.1f}% of cuBLAS",
        f"from {passes[0]:.3g} to {passes[1]:.3g}",
        f"from {passes[2]:.3g} to {passes[3]:.3g}",
        f"{unbound[0]['registers']} registers and {float(unbound[0]['time_ms']):.3f} ms",
        f"{unbound[1]['registers']} registers and {float(unbound[1]['time_ms']):.3f} ms",
        ratio("launch_bounds", DEFAULT),
        ratio("rasterisation", "13_final/GROUP=1"),
        ratio("rasterisation", "13_final/GROUP=8"),
        f"{100 - 100 * group['8'] / group['1']:.1f}% less time than groups of 1",
        ratio("tile_depth", "13_final/BK=8"),
        ratio("block_shape", "13_final/BN=256"),
        # what was refused
        with_interval(CLAIMS["B6"], "measured", "measured_low", "measured_high"),
    ]


@pytest.mark.parametrize("claim", CLAIMS)
def test_each_claim_has_its_row(claim: str) -> None:
    assert claim_row(CLAIMS[claim]) in PAGE.splitlines()


@pytest.mark.parametrize("fact", facts())
def test_the_text_says_what_was_measured(fact: str) -> None:
    assert fact in TEXT


def test_no_figure_goes_unchecked() -> None:
    """Rows and facts taken away, no measured figure is left."""
    assert unchecked(PAGE, set(map(claim_row, CLAIMS.values())), facts()) == []


def test_one_machine_code_from_two_sources() -> None:
    """With the launch bound rungs 12 and 13 are the same machine code, without it they are not."""
    codes = [
        ARMS[key]["sass_sha256"]
        for key in (
            ("retune_waterfall", BOUND),
            ("launch_bounds", DEFAULT),
            ("retune_waterfall", UNREAD),
            ("launch_bounds", "13_final/MIN_BLOCKS=none"),
        )
    ]
    assert codes[0] == codes[1]
    assert codes[2] != codes[3]


def test_the_method_quotes_the_same_two_codes() -> None:
    method = " ".join((ROOT / "docs" / "method.md").read_text(encoding="utf-8").split())
    for row, said in (
        (ARMS["launch_bounds", "13_final/MIN_BLOCKS=none"], "{:.3f} ms with {} registers"),
        (ARMS["retune_waterfall", UNREAD], "{:.3f} ms with {}"),
    ):
        assert said.format(float(row["time_ms"]), row["registers"]) in method


def test_the_swizzled_kernel_is_the_fastest_of_ours() -> None:
    times = {
        arm: float(row["time_ms"])
        for (_, arm), row in ARMS.items()
        if row["problem"] == SIZE[1:] and row["kernel"] != "00_cublas"
    }
    assert min(times, key=lambda arm: times[arm]) == SWIZZLED


def test_what_has_no_counters_is_said() -> None:
    assert {CLAIMS[claim]["status"] for claim in ("B8b", "B8d")} == {"not_measured"}
    assert "not profiled: the launch died under ncu" in ARMS["against_cublas", "00_cublas/default"]["note"]
    assert not any(row["ncu_time_ms"] for (_, arm), row in ARMS.items() if arm.startswith("00_cublas"))
    assert not any(
        row["ncu_time_ms"]
        for (name, arm), row in ARMS.items()
        if name in ("padding_premise", "swizzle", "rasterisation") and arm in (SWIZZLED, "13_final/GROUP=8")
    )
    assert {row["verdict"] for row in COMPARISONS} & {"inconclusive", "unstable", "not_measured"} == set()
