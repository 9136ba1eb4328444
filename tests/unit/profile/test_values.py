from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelab.errors import UserError
from kernelab.profile.columns import INSTRUCTIONS, METRICS, NCU_COLUMNS, TIME
from kernelab.profile.report import counted, read_report
from kernelab.profile.values import column_values
from kernelab.records.profile import Metric, ProfiledKernel

CRASHED = Path(__file__).parents[2] / "data" / "crashed-target.ncu-rep"
ASKED_FOR = {  # beside the sections, so not in a report that was made with sections alone
    "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
    INSTRUCTIONS,
}


def kernel(name: str = "k", **metrics: float) -> ProfiledKernel:
    values = {TIME: 1e6, INSTRUCTIONS: 1e9} | metrics
    return ProfiledKernel(
        name=name, metrics={key: Metric(value=value, unit="") for key, value in values.items()}
    )


def every(value: float, time: float = 1e6, instructions: float = 1e9) -> ProfiledKernel:
    metrics = {name: value for column in NCU_COLUMNS for name in (*column.metrics, *column.over)}
    return kernel(**(metrics | {TIME: time, INSTRUCTIONS: instructions}))


def test_columns_are_named_apart_and_documented() -> None:
    names = [column.name for column in NCU_COLUMNS]
    assert len(set(names)) == len(names)
    assert all(name.startswith("ncu_") for name in names)
    assert all(column.about and column.unit for column in NCU_COLUMNS)


def test_every_metric_is_one_that_ncu_knows() -> None:
    ncu_report = pytest.importorskip("ncu_report")
    action = ncu_report.load_report(str(CRASHED)).range_by_idx(0).action_by_idx(0)
    known = set(action.metric_names()) | ASKED_FOR
    wanted = {name for column in NCU_COLUMNS for name in (*column.metrics, *column.over)}
    assert wanted <= known
    assert set(METRICS) >= ASKED_FOR


def test_the_report_of_a_crashed_program_gives_no_figures() -> None:
    (only,) = read_report(CRASHED)
    assert only.name == "ke"
    assert TIME not in only.metrics
    assert not counted(only)
    assert column_values([only]) == {}


@pytest.mark.parametrize("content", [b"", b"no report", CRASHED.read_bytes()[:50_000]])
def test_a_damaged_report_is_no_report(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.ncu-rep"
    path.write_bytes(content)
    try:
        kernels = read_report(path)
    except UserError:
        kernels = []
    assert not any(counted(one) for one in kernels)


def test_a_missing_report_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"missing\.ncu-rep"):
        read_report(tmp_path / "missing.ncu-rep")


def test_one_kernel_gives_every_column_its_own_value() -> None:
    values = column_values([every(7.0, time=3e6, instructions=5e9)])
    assert set(values) == {column.name for column in NCU_COLUMNS}
    assert values["ncu_time_ms"] == pytest.approx(3.0)
    assert values["ncu_instructions"] == 5e9
    assert values["ncu_stall_barrier"] == 7.0
    assert values["ncu_global_load_sectors_per_request"] == 1.0


def test_a_sequence_adds_counts_and_weighs_rates() -> None:
    fma, stall = (
        "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active",
        "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio",
    )
    sectors, requests = (f"l1tex__t_{what}_pipe_lsu_mem_global_op_ld.sum" for what in ("sectors", "requests"))
    first = kernel(
        **{
            TIME: 1e6,
            INSTRUCTIONS: 1e9,
            fma: 80.0,
            stall: 0.1,
            sectors: 400.0,
            requests: 100.0,
            "dram__bytes_read.sum": 5.0,
        }
    )
    second = kernel(
        **{
            TIME: 3e6,
            INSTRUCTIONS: 1e9,
            fma: 40.0,
            stall: 0.3,
            sectors: 200.0,
            requests: 200.0,
            "dram__bytes_read.sum": 7.0,
        }
    )
    values = column_values([first, second])
    assert values["ncu_time_ms"] == pytest.approx(4.0)
    assert values["ncu_dram_read_bytes"] == 12.0
    assert values["ncu_fma_pipe_pct"] == pytest.approx(50.0)  # by time: (80 + 3 * 40) / 4
    assert values["ncu_stall_wait"] == pytest.approx(0.2)  # by instructions
    assert values["ncu_global_load_sectors_per_request"] == pytest.approx(
        2.0
    )  # 600 / 300, not the mean of 4 and 1


def test_a_metric_that_one_kernel_lacks_leaves_its_column_empty() -> None:
    values = column_values([kernel(**{"dram__bytes_read.sum": 5.0}), kernel()])
    assert "ncu_dram_read_bytes" not in values
    assert values["ncu_time_ms"] == pytest.approx(2.0)


def test_the_second_name_of_a_metric_is_taken_where_all_have_it() -> None:
    first, second = NCU_COLUMNS[1].metrics
    assert NCU_COLUMNS[1].name == "ncu_fma_pipe_pct"
    assert column_values([kernel(**{second: 30.0})])["ncu_fma_pipe_pct"] == 30.0
    assert (
        column_values([kernel(**{first: 20.0, second: 30.0}), kernel(**{second: 30.0})])["ncu_fma_pipe_pct"]
        == 30.0
    )


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(1, 1e9), st.floats(1, 1e12)), min_size=1, max_size=5))
def test_weighted_means_stay_between_the_kernels(parts: list[tuple[float, float, float]]) -> None:
    values = column_values([every(value, time, instructions) for value, time, instructions in parts])
    low, high = min(p[0] for p in parts), max(p[0] for p in parts)
    for column in NCU_COLUMNS:
        if column.rule != "sum":
            assert low - 1e-6 <= values[column.name] <= high + 1e-6
