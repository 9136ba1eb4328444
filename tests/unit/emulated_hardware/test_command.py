"""The command without a card: its cases, what it asks of ncu, its files and its exit status."""

from __future__ import annotations

import csv
from pathlib import Path

import emulator_against_hardware as command
import pytest
from against_hardware import counters
from against_hardware.rows import METRICS, CounterRow
from against_hardware.verdicts import HazardRow

from kernelab.device.identify import Gpu
from kernelab.errors import UserError
from kernelab.profile.ncu import NcuRun
from kernelab.records.profile import Metric, ProfiledKernel

ROOT = Path(__file__).parents[3]
CARD = Gpu(0, "GPU-00000000-0000-0000-0000-000000000000", "Card", "sm_90")
SMALL = ("03_smem", "13_final", "cp_async_16b_untransposed", "triad_vectorized")


def test_the_cases_are_the_ladder_the_copies_and_the_triads():
    found = [(case.kernel, case.problem) for case in command.cases(ROOT)]
    kernels = {kernel for kernel, _ in found}
    assert sum(kernel[:2].isdigit() for kernel in kernels) == 13
    assert {kernel for kernel in kernels if not kernel[:2].isdigit()} == {
        "cp_async_4b_transposed", "cp_async_16b_untransposed", "triad", "triad_vectorized",
    }  # fmt: skip
    assert [kernel for kernel, problem in found if problem == "ragged"] == list(command.RAGGED_KERNELS)


class Card:
    """A card that computes and counts what the emulated device does, with a factor on one counter of one kernel."""

    def __init__(self, wrong_entry: int = -1, factor: float = 1.0) -> None:
        self.wrong_entry, self.factor = wrong_entry, factor
        self.prepared: list[counters.Prepared] = []

    def build(self, case, arch, toolchain):
        made = real_build(case, arch, toolchain)
        self.prepared.append(made)
        return made

    def profile(self, launches, folder):
        kernels = []
        for number, launch in enumerate(launches):
            (one,) = [
                p
                for p in self.prepared
                if Path(launch.cubin).read_bytes() == p.cubin and p.launch.entry == launch.entry
            ]
            emulated = counters.emulate_case(one)
            for name, output in emulated.outputs.items():
                output.tofile(launch.arrays[name].save)
            factor = self.factor if number == self.wrong_entry else 1.0
            metrics = {
                METRICS[name][0][0]: Metric(
                    value=float(value) * (factor if name == "global_store_sectors" else 1), unit=""
                )
                for name, value in emulated.counters.items()
                if name in METRICS
            }
            kernels.append(ProfiledKernel(name=launch.entry, metrics=metrics))
        return kernels


real_build = counters.build_case


def run(monkeypatch: pytest.MonkeyPatch, out: Path, card: Card) -> int:
    chosen = [case for case in command.cases(ROOT) if case.kernel in SMALL and case.problem == "exact"]
    monkeypatch.setattr(command, "list_gpus", lambda: (CARD,))
    monkeypatch.setattr(command, "cases", lambda root: chosen)
    monkeypatch.setattr(command, "build_case", card.build)
    monkeypatch.setattr(command, "profile_launches", card.profile)
    return command.main(["--out", str(out), "--only", "counters", "--toolchain", "nvrtc"])


def test_equal_counters_pass_and_are_written(monkeypatch, tmp_path, capsys):
    assert run(monkeypatch, tmp_path, Card()) == 0
    with (tmp_path / "counters.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(SMALL) * len(METRICS)
    assert set(rows[0]) == {
        "kernel",
        "problem",
        "counter",
        "emulated",
        "measured",
        "ratio",
        "explanation",
        "agrees",
    }
    stores = next(
        row for row in rows if row["kernel"] == "13_final" and row["counter"] == "global_store_sectors"
    )
    assert (stores["emulated"], stores["measured"], stores["ratio"], stores["explanation"]) == (
        "8192",
        "8192",
        "1",
        "",
    )
    assert "0 unexplained" in capsys.readouterr().out


def test_a_counter_that_is_off_fails(monkeypatch, tmp_path, capsys):
    assert run(monkeypatch, tmp_path, Card(wrong_entry=1, factor=1.02)) == 1
    printed = capsys.readouterr().out
    assert "UNEXPLAINED" in printed
    assert "1 unexplained" in printed


def test_a_wrong_result_fails(monkeypatch, tmp_path, capsys):
    card = Card()
    profile = card.profile

    def spoiled(launches, folder):
        kernels = profile(launches, folder)
        (output,) = [array.save for array in launches[0].arrays.values() if array.save]
        Path(output).write_bytes(bytes(Path(output).stat().st_size))
        return kernels

    monkeypatch.setattr(card, "profile", spoiled)
    assert run(monkeypatch, tmp_path, card) == 1
    assert "WRONG RESULT: 03_smem exact: the card:" in capsys.readouterr().out


def test_one_half_may_fail_alone(monkeypatch, tmp_path, capsys):
    def refused(*_):
        raise UserError("ncu is not here")

    row = HazardRow("a fault", "memcheck", "planted", "misaligned", "misaligned", True, "", "there", "here")
    monkeypatch.setattr(command, "list_gpus", lambda: (CARD,))
    monkeypatch.setattr(command, "compare_all_counters", refused)
    monkeypatch.setattr(command, "find_toolchain", lambda name: None)
    monkeypatch.setattr(command, "compare_verdicts", lambda *_: [row])
    assert command.main(["--out", str(tmp_path)]) == 1
    assert "counters: ncu is not here" in capsys.readouterr().err
    assert (
        (tmp_path / "hazards.csv")
        .read_text()
        .splitlines()[1]
        .startswith("a fault,memcheck,planted,misaligned")
    )


def test_a_verdict_that_differs_fails(capsys):
    same = HazardRow("one", "memcheck", "clean", "clean", "clean", True, "", "", "")
    other = HazardRow("two", "racecheck", "planted", "clean", "race_shared", False, "", "", "there")
    assert command.show_hazards([same])
    assert not command.show_hazards([same, other])
    assert "1 of 2 verdicts agree" in capsys.readouterr().out


def test_what_is_not_comparable_is_not_held_against_it(capsys):
    row = CounterRow(
        "k",
        "exact",
        "instructions",
        5,
        50.0,
        0.1,
        "not comparable: the emulator counts PTX instructions, ncu those of SASS",
        True,
    )
    assert command.show_counters([row], [])
    assert not command.show_counters([row], ["k exact: 3 elements are wrong"])


def test_without_a_gpu_it_says_so(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(command, "list_gpus", lambda: ())
    assert command.main(["--out", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith("no GPU is visible to CUDA")


@pytest.fixture
def launches(tmp_path):
    case = next(case for case in command.cases(ROOT) if case.kernel == "triad")
    return [counters.bare_launch(counters.build_case(case, "sm_90", "nvrtc"), tmp_path)]


def test_metrics_that_the_card_lacks_are_dropped(monkeypatch, tmp_path, launches):
    lacking = METRICS["global_copy_sectors"][0][0]
    asked = []

    def run_ncu(words, limit_s):
        asked.append(words[words.index("--metrics") + 1].split(","))
        if lacking in asked[-1]:
            return NcuRun(1, f"==ERROR== Failed to find metric {lacking}\n")
        (tmp_path / "counters.ncu-rep").touch()
        return NcuRun(0, "")

    monkeypatch.setattr(counters, "find_ncu", lambda: "ncu")
    monkeypatch.setattr(counters, "run_ncu", run_ncu)
    monkeypatch.setattr(counters, "read_report", lambda path: [ProfiledKernel(name="triad", metrics={})])
    assert len(counters.profile_launches(launches, tmp_path)) == 1
    assert [lacking in names for names in asked] == [True, False]
    assert set(asked[0]) - set(asked[1]) == {lacking}


def test_a_report_of_other_launches_is_refused(launches):
    with pytest.raises(UserError, match="ncu saw 0 kernels"):
        counters.expected_kernels([], launches)
    with pytest.raises(UserError, match="other"):
        counters.expected_kernels([ProfiledKernel(name="other", metrics={})], launches)


def test_ncu_without_a_report_is_quoted(monkeypatch, tmp_path, launches):
    monkeypatch.setattr(counters, "find_ncu", lambda: "ncu")
    monkeypatch.setattr(counters, "run_ncu", lambda words, limit_s: NcuRun(1, "==ERROR== ERR_NVGPUCTRPERM\n"))
    with pytest.raises(UserError, match="ERR_NVGPUCTRPERM"):
        counters.profile_launches(launches, tmp_path)
