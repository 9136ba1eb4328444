"""The figures of the README are those of the snapshot, and what it names exists."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from snapshot_figures import FRONTIER_24, FRONTIER_25, ROOT, one_line, rows_of, unchecked, with_interval

TEXT = (ROOT / "README.md").read_text()


def test_the_ladder_is_the_snapshots() -> None:
    for row in (row for row in rows_of("table.csv") if row["experiment"] == "ladder"):
        figures = (
            f"{float(row['time_ms']):.4g} | {float(row['tflops']):.2f} | {float(row['pct_of_cublas']):.1f} | "
            f"{row['registers']} | {row['occupancy_pct']} |"
        )
        assert f"| `{row['kernel']}` | {figures}" in TEXT


def shown_as(row: dict[str, str]) -> str:
    """A comparison as a line of the README."""
    kernels = [row[arm].partition("/")[0] for arm in ("base_arm", "arm")]
    levels = kernels if row["variable"] == "kernel" else [row["base_level"], row["level"]]
    return f"| {row['variable']}: {levels[0]} to {levels[1]} | `{kernels[0]}` | {row['verdict']} | {with_interval(row)} |"


def test_the_verdicts_are_the_snapshots() -> None:
    known = {shown_as(row) for row in rows_of("comparisons.csv") if row["ratio"]}
    shown = re.findall(r"^\| [\w ]+: .*\|$", TEXT, re.MULTILINE)
    assert len(shown) > 5
    assert set(shown) <= known


def test_the_prose_is_the_snapshots() -> None:
    text = one_line(TEXT)
    comparisons, claims = rows_of("comparisons.csv"), rows_of("claims.csv")
    status = Counter(row["status"] for row in claims)
    ladder = {row["kernel"]: row for row in rows_of("table.csv") if row["experiment"] == "ladder"}
    cost = {row["claim"]: 100 * float(row["measured"]) - 100 for row in claims if row["measured"]}
    before, after = ladder["05_2d_blocktiling"], ladder["06_2d_transposed"]
    passes = [float(row["ncu_shared_store_wavefronts"]) * 1e-6 for row in (before, after)]
    for said in (
        f"{len({row['experiment'] for row in comparisons})} experiments, {len(comparisons)} comparisons",
        f"{ladder['02_gmem_coalesced']['samples']} samples a rung from 6 fresh processes",
        f"Of {len(claims)} claims {status['holds']} hold on this card and {status['reversed']} are reversed",
        f"the staged rung's forced unroll costs {cost['A3']:.0f}%",
        f"the retune of rung 13 costs {cost['B1']:.0f}%",
        f"from {passes[0]:.0f} to {passes[1]:.0f} million and takes {-cost['A4b']:.0f}% less time",
        f"registers go from {before['registers']} to {after['registers']}",
    ):
        assert said in text


def test_what_lies_past_cublas_is_the_snapshots() -> None:
    section = TEXT.partition("\n## Past cuBLAS\n")[2].partition("\n## ")[0]
    found = {(row["experiment"], row["arm"]): row for row in rows_of("comparisons.csv", FRONTIER_25)}
    sizes = [
        row for (experiment, arm), row in found.items()
        if experiment == "frontier_sizes" and arm.startswith("25_matrix_loads/")
    ]  # fmt: skip
    large = found["frontier_sizes", "25_matrix_loads/default@square_4096"]
    ring = found["ldmatrix_for_all", "cp_async_matrix_loads/default@square_4096"]
    gap = next(row for row in rows_of("comparisons.csv", FRONTIER_24) if row["level"] == "CODE_GAP=128")
    speeds = [100.0 / float(row["ratio"]) for row in sizes]
    assert {row["verdict"] for row in sizes} == {"faster"}
    assert len(sizes) == 7
    facts = [
        f"takes {with_interval(large)} of cuBLAS's time at 4096 cubed",
        f"{100.0 / float(large['ratio']):.1f}% of its speed",
        f"{min(speeds):.1f} to {max(speeds):.1f}%",
        f"it takes {with_interval(ring)} of the time without it",
        f"alone can be worth {100.0 * float(gap['ratio']) - 100.0:.1f}%",
    ]
    assert [fact for fact in facts if fact not in one_line(section)] == []
    assert unchecked(section, (), facts) == []


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#]+)\)", TEXT))))
def test_links_lead_somewhere(link: str) -> None:
    assert (ROOT / link).exists()


@pytest.mark.parametrize("name", sorted(set(re.findall(r"benchmarks/\w+\.py", TEXT))))
def test_benchmarks_exist(name: str) -> None:
    assert (ROOT / name).is_file()


def test_the_benchmark_figures_are_the_snapshots() -> None:
    agreement = rows_of("benchmarks/nvbench_agreement.csv")
    worst = max(abs(float(row["ratio"]) - 1.0) for row in agreement) * 100.0
    assert f"agree with nvbench to {worst:.2f}%" in TEXT
    pairs = rows_of("benchmarks/aa_on_hardware.csv")
    assert f"of {len(pairs)} comparisons of a kernel with itself none is called" in one_line(TEXT)
    assert {row["verdict"] for row in pairs} == {"equivalent"}
    assert {row["covered"] for row in rows_of("benchmarks/planted_slowdown.csv")} == {"True"}


def test_the_list_of_shared_headers_has_them_all() -> None:
    common = ROOT / "kernels" / "sgemm" / "common"
    named = set(re.findall(r"`([a-z0-9_]+)`", (common / "README.md").read_text(encoding="utf-8")))
    headers = {path.stem for path in common.glob("*.cuh")}
    kernels = {path.stem for path in common.parent.glob("*.cu")}
    assert headers <= named
    assert named <= headers | kernels
