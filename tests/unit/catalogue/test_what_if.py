"""benchmarks/frontier/what_if.py changes what it says of rung 24's machine code, and nothing else."""

from __future__ import annotations

import csv
import io
import json
import struct
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from compiled_rung import FRONTIER, rung_24  # first: it makes the scripts importable

# isort: split
import bench
import what_if
from banks import text, two_reads
from changes import CHANGES
from instruction import CYCLES, FREES, NO_BARRIER, SETS, Instruction
from loop import hot_loop, hottest
from placement import placement

from kernelab.build.sass import Instruction as Sass
from kernelab.build.sass import disassemble, parse_sass
from kernelab.build.toolchain import find_toolchain

# NVRTC reuses all that can be over a load, so these three find nothing to do in rung 24.
IDLE = {"reuse", "reuse_first", "reuse_second"}
LOADS = 72  # of 12 k-steps, each with four of A and two of B
SPARE = {name for name, change in CHANGES.items() if change.spare}


@cache
def made(name: str) -> what_if.Changed:
    return what_if.changed(rung_24(), CHANGES[name])


def halves(cubin: bytes) -> list[tuple[int, ...]]:
    return list(struct.iter_unpack("<QQ", text(cubin, "sgemm")))


def hot() -> slice:
    first, last = hottest(halves(rung_24()))
    return slice(first, last + 1)


def spare() -> slice:
    first, last = placement(rung_24()).spare
    return slice(first // 16, last // 16 + 1)


@cache
def sass(name: str) -> list[Sass]:
    """What nvdisasm makes of a change."""
    return parse_sass(disassemble(made(name).cubin, find_toolchain("nvrtc").disassembler))["sgemm"]


def opcodes(name: str, where: slice) -> Counter[str]:
    return Counter(instruction.opcode for instruction in sass(name)[where])


def loads(name: str) -> Counter[str]:
    found = opcodes(name, hot())
    return Counter({opcode: n for opcode, n in found.items() if opcode.startswith("LDS")})


def test_the_cubin_as_it_is_is_the_cubin() -> None:
    found = made("as_it_is")
    assert found.cubin == rung_24()
    assert (found.different, found.conflicts) == (0, hot_loop(rung_24()).conflicts)


@pytest.mark.parametrize("name", sorted(set(CHANGES) - IDLE - {"as_it_is"}))
def test_a_change_stays_inside_its_loops(name: str) -> None:
    before, found = rung_24(), made(name)
    section = text(before, "sgemm")
    at = before.index(section)
    assert len(found.cubin) == len(before)
    assert (found.cubin[:at], found.cubin[at + len(section) :]) == (before[:at], before[at + len(section) :])
    different = {
        index
        for index, (old, new) in enumerate(zip(halves(before), halves(found.cubin), strict=True))
        if old != new
    }
    assert len(different) == found.different
    in_hot = different & set(range(*hot().indices(1 << 20)))
    in_spare = different & set(range(*spare().indices(1 << 20)))
    assert (bool(in_hot), bool(in_spare)) == (bool(CHANGES[name].loop), name in SPARE)
    assert different == in_hot | in_spare
    assert two_reads(halves(found.cubin)[hot()])[1] == found.conflicts


@pytest.mark.parametrize("name", sorted(IDLE))
def test_a_change_with_nothing_to_do_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="changes nothing here"):
        made(name)


def test_half_of_a_combination_is_refused_too() -> None:
    with pytest.raises(ValueError, match="changes nothing here"):
        what_if.changed(made("ldsm_x4").cubin, CHANGES["lds_64_fewer"])
    with pytest.raises(ValueError, match="spare warps have no such instruction"):
        what_if.changed(made("spare_nop").cubin, CHANGES["nop_spare_nop"])


def test_without_loads_those_of_a_cannot_be_told() -> None:
    with pytest.raises(ValueError, match="cannot be told from B's"):
        what_if.changed(made("nop").cubin, CHANGES["nop_a"])


@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("as_it_is", 72),
        ("nop", 0),
        ("nop_fewer", 0),
        ("nop_second", 36),
        ("nop_other_second", 36),
        ("nop_third", 48),
        ("nop_a", 24),
        ("nop_b", 48),
    ],
)
def test_so_many_loads_are_left(name: str, left: int) -> None:
    nops = opcodes("as_it_is", hot())["NOP"]
    assert loads(name) == Counter({"LDS.128": left} if left else {})
    assert opcodes(name, hot())["NOP"] == nops + LOADS - left


def test_both_halves_are_all() -> None:
    one, other = (
        {index for index, i in enumerate(sass(name)[hot()]) if i.base == "LDS"}
        for name in ("nop_second", "nop_other_second")
    )
    assert not one & other
    assert len(one | other) == LOADS


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("lds_64", {"LDS.64": 72}),
        ("lds_32", {"LDS": 72}),
        ("ldsm_x4", {"LDSM.16.M88.4": 72}),
        ("ldsm_x2", {"LDSM.16.M88.2": 72}),
        ("ldsm_x1", {"LDSM.16.M88": 72}),
        ("ldsm_x4_a", {"LDSM.16.M88.4": 48, "LDS.128": 24}),
        ("ldsm_x4_b", {"LDSM.16.M88.4": 24, "LDS.128": 48}),
        ("ldsm_x1_a", {"LDSM.16.M88": 48, "LDS.128": 24}),
    ],
)
def test_nvdisasm_reads_the_other_loads(name: str, expected: dict[str, int]) -> None:
    assert loads(name) == expected
    for before, after in zip(sass("as_it_is")[hot()], sass(name)[hot()], strict=True):
        assert before.operands == after.operands


def test_loads_of_a_and_of_b_have_a_register_each() -> None:
    def bases(name: str) -> Counter[str]:
        found = (i.operands.partition("[")[2] for i in sass(name)[hot()] if i.base == "LDSM")
        return Counter(address.replace("]", "+").partition("+")[0] for address in found)

    a, b = bases("ldsm_x4_a"), bases("ldsm_x4_b")
    assert (list(a.values()), list(b.values())) == ([48], [24])
    assert set(a) != set(b)


def test_loads_to_nowhere_and_from_one_address() -> None:
    assert {i.operands.partition(",")[0] for i in sass("no_register")[hot()] if i.base == "LDS"} == {"RZ"}
    addresses = {i.operands.partition("[")[2] for i in sass("one_address")[hot()] if i.base == "LDS"}
    assert addresses
    assert not any(address.startswith("R") and not address.startswith("RZ") for address in addresses)


@pytest.mark.parametrize(
    ("fewer", "than"),
    [
        ("fewer_in_rows", "as_it_is"),
        ("fewer_after_loads", "as_it_is"),
        ("fewer", "fewer_in_rows"),
        ("nop_fewer", "nop"),
        ("sixes_4_fewer_in_rows", "sixes_4"),
        ("sixes_4_fewer", "sixes_4_fewer_in_rows"),
    ],
)
def test_conflicts_become_fewer(fewer: str, than: str) -> None:
    assert made(fewer).conflicts < made(than).conflicts


def test_most_conflicts_go() -> None:
    assert made("fewer").conflicts < 0.4 * made("as_it_is").conflicts


@pytest.mark.parametrize(("name", "size", "moved"), [("pairs", 2, 60), ("sixes", 6, 42)])
@pytest.mark.parametrize("cycles", [1, 2, 4])
def test_loads_lie_behind_one_another(name: str, size: int, moved: int, cycles: int) -> None:
    body = [Instruction(low | high << 64) for low, high in halves(made(f"{name}_{cycles}").cubin)[hot()]]
    runs: Counter[int] = Counter()
    length = 0
    for before, here in zip([None, *body], [*body, None], strict=True):
        if here is not None and here.loads:
            length += 1
            if before is not None and before.loads and length <= size:
                assert before.get(CYCLES) == cycles
            continue
        runs[length] += 1
        length = 0
    assert sum(n * length for length, n in runs.items() if length >= size) >= moved
    assert loads(f"{name}_{cycles}") == {"LDS.128": LOADS}
    assert opcodes(f"{name}_{cycles}", hot()) == opcodes("as_it_is", hot())


@pytest.mark.parametrize(
    ("name", "gone"),
    [
        ("spare_nop", {"STS", "LDSM"}),
        ("spare_stores_nop", {"STS"}),
        ("spare_loads_nop", {"LDSM"}),
        ("nop_spare_nop", {"STS", "LDSM"}),
    ],
)
def test_the_spare_warps_do_less(name: str, gone: set[str]) -> None:
    before, after = (Counter(i.base for i in sass(which)[spare()]) for which in ("as_it_is", name))
    assert before["STS"] > 10 < before["LDSM"]
    assert gone == set(before) - set(after)
    assert after["NOP"] - before["NOP"] == sum(before[base] for base in gone)


def test_a_nop_waits_like_the_load_that_it_was() -> None:
    before, after = (
        [Instruction(low | high << 64) for low, high in halves(made(name).cubin)[hot()]]
        for name in ("as_it_is", "nop")
    )
    signalled, waited = [], []
    for load, nop in zip(before, after, strict=True):
        if not load.loads:
            assert load == nop
            continue
        signalled.append(load.get(SETS) != NO_BARRIER)
        assert nop.get(SETS) == nop.get(FREES) == NO_BARRIER
        waited.append(load.word >> 116 == nop.word >> 116 and load.get(CYCLES) == nop.get(CYCLES))
    assert any(signalled)
    assert all(waited)


def test_loop_counts_ldsm_like_lds() -> None:
    as_it_is, matrices = (hot_loop(made(name).cubin) for name in ("as_it_is", "ldsm_x4"))
    assert (as_it_is.loads, as_it_is) == (LOADS, matrices)


def test_zero_is_not_read_from_a_bank() -> None:
    ffma = 0x223 | 2 << 24 | 255 << 32  # R2 * RZ + addend
    assert two_reads([(ffma, 4)]) == (1, 1)
    assert two_reads([(ffma, 5)]) == (1, 0)


def test_make_writes_cubins_and_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = _make(tmp_path, monkeypatch)
    assert [job["id"] for job in jobs] == [name for name in CHANGES if name not in IDLE]
    assert {(job["rounds"], job["time_if_bad"], job["values"]["m"]) for job in jobs} == {(24, True, 4096)}
    for job in jobs:
        assert (tmp_path / job["cubin"]).read_bytes() == made(job["id"]).cubin
        assert job["launches"][-1]["entry"] == "sgemm"
    said = capsys.readouterr().out
    assert sum("left out: " in line for line in said.splitlines()) == len(IDLE)
    assert f"{made('fewer').conflicts} conflicts" in said


def test_measure_times_the_base_first_and_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _make(tmp_path, monkeypatch)
    ran: list[str] = []

    def run(jobs: list[dict[str, Any]], budget_s: float) -> list[dict[str, Any]]:
        ran.extend(job["id"] for job in jobs)
        times = {"bad": 9, "ms": 2.4, "cublas_ms": 2.64, "percent": 110.004}
        return [{"id": i, **(times if i != "nop" else {"error": "hang or crash: "})} for i in ran]

    monkeypatch.setattr(what_if, "run_jobs", run)
    monkeypatch.setenv("OUT", str(tmp_path))
    what_if.measure(["nop", "fewer"])
    assert ran == ["as_it_is", "nop", "fewer", "as_it_is"]
    rows = list(csv.DictReader(io.StringIO((tmp_path / "what_if.csv").read_text())))
    assert [row["percent"] for row in rows] == ["110.0", "", "110.0", "110.0"]
    assert rows[2]["words"] == CHANGES["fewer"].words
    with pytest.raises(SystemExit, match="unknown: not made; one of as_it_is, nop"):
        what_if.measure(["unknown"])


def test_each_error_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match=r"gone\.cubin: no such file"):
        what_if.make(tmp_path / "gone.cubin", "24_code_gap")
    (tmp_path / "text.cubin").write_text("no ELF file, and longer than the header of one would be" * 2)
    with pytest.raises(SystemExit, match=r"text\.cubin: no cubin of an sgemm: "):
        what_if.make(tmp_path / "text.cubin", "24_code_gap")
    (tmp_path / "rung.cubin").write_bytes(rung_24())
    for spec in ("24_code_gap:BK", "24_code_gap:CODE_GAP=x"):
        with pytest.raises(SystemExit, match=f"{spec}: no settings of 24_code_gap: "):
            what_if.make(tmp_path / "rung.cubin", spec)
    with pytest.raises(SystemExit, match="24: no such kernel; one of "):
        what_if.make(tmp_path / "rung.cubin", "24")
    monkeypatch.setattr(what_if, "JOBS", tmp_path / "what_if.json")
    with pytest.raises(SystemExit, match=r"what_if\.json is missing: run what_if\.py CUBIN first"):
        what_if.measure([])


@pytest.mark.parametrize(("asked", "timed"), [({}, False), ({"time_if_bad": True}, True)])
def test_bench_times_wrong_results_only_where_asked(
    asked: dict[str, bool], timed: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Wrong:
        values = None
        bind = staticmethod(lambda job: (None, None))
        check = staticmethod(lambda launch, reset, times: {"bad": 1})
        time = staticmethod(lambda launch, rounds: {"ms": 1.0})

    cupy = ModuleType("cupy")
    cupy.empty = lambda size: None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(bench, "_Gpu", lambda: None)
    monkeypatch.setattr(bench, "_Problem", lambda gpu, values: Wrong())
    bench.work([{"id": "x", "values": {}, "check": 1, "rounds": 3, **asked}])
    result = json.loads(capsys.readouterr().out.partition("RESULT ")[2])
    assert result == {"id": "x", "bad": 1, **({"ms": 1.0} if timed else {})}


def test_run_5_is_of_these_changes() -> None:
    with (FRONTIER / "run5.csv").open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == ["call", *what_if.FIELDS]
    assert Counter(row["call"] for row in rows if row["change"] == "as_it_is") == {"1": 2, "2": 2, "3": 2}
    for row in rows:
        words = CHANGES[row["change"]].words
        assert row["words"] == words + (row["change"] in IDLE) * ", as it was already: nothing changed"
        assert float(row["percent"]) == pytest.approx(
            100 * float(row["cublas_ms"]) / float(row["ms"]), rel=2e-3
        )
        # nvcc's code, and NVRTC's here, differ by an instruction or two
        if row["change"] not in IDLE:
            assert int(row["conflicts"]) == pytest.approx(made(row["change"]).conflicts, abs=3)


def _make(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """make(), in a folder of its own and without nvcc."""
    work = folder / ".frontier"
    work.mkdir()
    (folder / "rung.cubin").write_bytes(rung_24())
    monkeypatch.setattr(what_if, "WORK", work)
    monkeypatch.setattr(what_if, "JOBS", work / "what_if.json")
    monkeypatch.setattr(what_if, "compile_helpers", lambda: None)
    what_if.make(folder / "rung.cubin", "24_code_gap")
    return list(json.loads((work / "what_if.json").read_text()))
