from __future__ import annotations

import dataclasses
import gzip
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelab.errors import UserError
from kernelab.records.timing import CardFacts
from kernelab.timing.peak import above_bandwidth, fp32_lanes, fp32_peak_tflops, impossible, memory_peak_gb_s
from kernelab.timing.rounds import pair_rounds
from kernelab.timing.samples import COLUMNS, Sample, read_samples, sample_from_row, write_samples
from kernelab.timing.summary import summarise

ONE = Sample(
    session="s1",
    process=0,
    group=0,
    round=0,
    half="forward",
    position=0,
    problem="big",
    arm="a",
    role="arm",
    launches=3,
    time_ms=2.6843545,
    sm_clock_mhz=1980.0,
    cycles=5315022.0,
    power_w=650.5,
    temperature_c=61.0,
    throttle="none",
    queued=1,
)


def visit(arm: str, half: str, time: float, process: int = 0, number: int = 0, **more: object) -> Sample:
    fields = {
        "arm": arm,
        "half": half,
        "time_ms": time,
        "process": process,
        "round": number,
        "cycles": time * 1e6,
    }
    return dataclasses.replace(ONE, **(fields | more))  # type: ignore[arg-type]


def test_samples_survive_the_file_and_empty_cells_stay_empty(tmp_path: Path) -> None:
    bare = dataclasses.replace(
        ONE, sm_clock_mhz=None, cycles=None, power_w=None, temperature_c=None, throttle="", queued=0
    )
    write_samples(tmp_path / "x.csv.gz", [ONE, bare])
    assert read_samples(tmp_path / "x.csv.gz") == [ONE, bare]


@given(st.floats(2.0**-13, 2.0**16, width=32))
def test_no_digit_of_an_event_time_is_lost(tmp_path_factory: pytest.TempPathFactory, time: float) -> None:
    path = tmp_path_factory.mktemp("s") / "x.csv.gz"
    write_samples(path, [dataclasses.replace(ONE, time_ms=time)])
    (back,) = read_samples(path)
    assert math.isclose(back.time_ms, time, rel_tol=1e-8)


def test_equal_samples_give_equal_bytes(tmp_path: Path) -> None:
    write_samples(tmp_path / "a.csv.gz", [ONE])
    write_samples(tmp_path / "b.csv.gz", [ONE])
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.csv.gz").read_bytes()).startswith(
        b"session,process,group,round,half,position,"
    )


def test_a_file_that_is_not_whole_is_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "x.csv.gz"
    with pytest.raises(UserError, match="not made yet"):
        read_samples(path)
    write_samples(path, [ONE] * 200)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(UserError, match="damaged"):
        read_samples(path)
    path.write_bytes(gzip.compress(b"a,b\n1,2\n"))
    with pytest.raises(UserError, match="columns"):
        read_samples(path)
    header = ",".join(COLUMNS)
    path.write_bytes(gzip.compress(f"{header}\n{','.join(['x'] * len(COLUMNS))}\n".encode()))
    with pytest.raises(UserError, match="damaged"):
        read_samples(path)


def test_nothing_that_is_not_a_number_is_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nan"):
        write_samples(tmp_path / "x.csv.gz", [dataclasses.replace(ONE, time_ms=math.nan)])
    assert not (tmp_path / "x.csv.gz").exists()


def test_a_row_has_all_its_values() -> None:
    assert sample_from_row(dataclasses.astuple(ONE)) == ONE
    with pytest.raises(ValueError, match="16 values"):
        sample_from_row(dataclasses.astuple(ONE)[:-1])


def test_a_round_is_the_mean_of_its_two_halves() -> None:
    samples = [
        visit("b", "forward", 2.0),
        visit("a", "forward", 2.2),
        visit("a", "mirror", 2.0),
        visit("b", "mirror", 2.0),
    ]
    rounds = pair_rounds(samples, "s1", ("b", "a"))
    assert rounds.time == [[pytest.approx(math.log(1.1) / 2)]]
    assert rounds.cycles == rounds.time
    assert rounds.throttled == [[False]]


def test_a_linear_drift_cancels_within_a_round() -> None:
    times = {("b", "forward"): 1.00, ("a", "forward"): 1.01, ("a", "mirror"): 1.02, ("b", "mirror"): 1.03}
    rounds = pair_rounds([visit(arm, half, time) for (arm, half), time in times.items()], "s1", ("b", "a"))
    assert abs(rounds.time[0][0]) < 3e-4


def test_rounds_that_one_of_the_two_sat_out_and_other_sessions_do_not_count() -> None:
    samples = [
        visit(arm, half, 2.0, process, number)
        for process in (0, 1)
        for number in range(4)
        for half in ("forward", "mirror")
        for arm in ("b", "a")
        if arm == "b" or number % 2 == 0
    ]
    samples += [visit(arm, half, 9.0, session="s2") for arm in ("a", "b") for half in ("forward", "mirror")]
    samples += [visit("c", half, 9.0) for half in ("forward", "mirror")]
    rounds = pair_rounds(samples, "s1", ("b", "a"))
    assert rounds.time == [[0.0, 0.0], [0.0, 0.0]]


def test_what_was_not_read_is_none_and_what_throttled_is_told() -> None:
    halves = [(arm, half) for arm in ("a", "b") for half in ("forward", "mirror")]
    unread = pair_rounds([visit(a, h, 2.0, cycles=None, throttle="") for a, h in halves], "s1", ("b", "a"))
    assert unread.cycles is None
    assert unread.throttled is None
    hot = pair_rounds(
        [visit(a, h, 2.0, throttle="sw_power_cap+hw_thermal_slowdown") for a, h in halves], "s1", ("b", "a")
    )
    assert hot.throttled == [[True]]
    capped = pair_rounds([visit(a, h, 2.0, throttle="sw_power_cap") for a, h in halves], "s1", ("b", "a"))
    assert capped.throttled == [[False]]


def test_a_pair_that_was_never_timed_has_no_rounds() -> None:
    assert pair_rounds([ONE], "s1", ("x", "y")).time == []


def test_the_peak_of_known_cards() -> None:
    assert fp32_peak_tflops(132, 128, 1980.0) == pytest.approx(66.9, abs=0.05)  # H200
    assert fp32_peak_tflops(28, 128, 1777.0) == pytest.approx(12.74, abs=0.05)  # RTX 3060
    assert [fp32_lanes(arch) for arch in ("sm_75", "sm_80", "sm_86", "sm_90a", "sm_61")] == [
        64,
        64,
        128,
        128,
        None,
    ]


def test_a_sample_above_the_peak_at_its_own_clock_is_impossible() -> None:
    flops = 2 * 4096.0**3
    fast = visit("a", "forward", 2.1, sm_clock_mhz=1980.0)  # 65.4 TFLOP/s
    assert impossible([fast], flops, 132, 128) is None
    slow_clock = dataclasses.replace(fast, sm_clock_mhz=1900.0)  # peak 64.2
    assert impossible([fast, slow_clock], flops, 132, 128) is slow_clock
    assert impossible([dataclasses.replace(fast, sm_clock_mhz=None, time_ms=0.1)], flops, 132, 128) is None
    assert impossible([slow_clock], flops, 132, None) is None


def test_what_must_move_bounds_a_cold_time() -> None:
    card = CardFacts(
        uuid="",
        name="H200",
        arch="sm_90",
        multiprocessors=132,
        fp32_lanes=128,
        l2_bytes=60_000_000,
        memory_clock_mhz=3201.0,
        memory_bus_bits=6016,
        max_sm_clock_mhz=1980.0,
        power_limit_w=700.0,
    )
    assert memory_peak_gb_s(card) == pytest.approx(4814, abs=1)
    moved = 805e6  # at 4.81 TB/s, without what the L2 may keep: 0.1548 ms
    honest, cheat = visit("a", "forward", 0.185), visit("a", "forward", 0.15)
    assert above_bandwidth([honest], moved, card) is None
    assert above_bandwidth([honest, cheat], moved, card) is cheat
    assert above_bandwidth([cheat], 50e6, card) is None
    assert above_bandwidth([cheat], moved, card.model_copy(update={"memory_clock_mhz": None})) is None


def test_a_summary_is_the_mean_of_process_medians() -> None:
    times = {0: [1.0, 1.0, 9.0], 1: [1.21, 1.21, 1.21]}
    samples = [visit("a", "forward", time, process) for process, values in times.items() for time in values]
    seen: list[list[float]] = []

    def interval(medians: object) -> tuple[float, float]:
        seen.append(list(medians))  # type: ignore[call-overload]
        return math.log(1.0), math.log(1.3)

    summary = summarise(samples, interval)
    assert seen == [[pytest.approx(0.0), pytest.approx(math.log(1.21))]]
    assert summary.time_ms == pytest.approx(1.1)
    assert (summary.time_low_ms, summary.time_high_ms) == (pytest.approx(1.0), pytest.approx(1.3))
    assert (summary.samples, summary.processes, summary.launches, summary.sm_clock_mhz) == (6, 2, 3, 1980.0)


def test_one_process_has_no_interval() -> None:
    summary = summarise([visit("a", "forward", 2.0, sm_clock_mhz=None)], lambda _: pytest.fail("not asked"))
    assert (summary.time_low_ms, summary.time_high_ms, summary.sm_clock_mhz) == (None, None, None)
