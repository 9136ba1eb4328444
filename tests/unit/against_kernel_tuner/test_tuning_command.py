"""The comparison's two halves, without a GPU: kernel_tuner's call on a stand-in, the clocked commands, and the figures."""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import search_against_kernel_tuner as command
from against_kernel_tuner import tune
from against_kernel_tuner.project import FreshProject, Ran

from kernelab.device.identify import identify
from kernelab.plan.load import load_plan
from kernelab.records.search import SearchRow, settings_text

ROOT = Path(__file__).parents[3]
SMALL = {
    "device": "emulated",
    "problems": {"small": {"m": 128, "n": 256, "k": 64, "alpha": 2.0, "beta": 0.0}},
    "search": {
        "few": {
            "question": "?",
            "base": "12_double_buffered",
            "at": "small",
            "over": {"BM": [64, 128], "BN": [64, 128], "WNITER": [1, 2]},
        }
    },
}


class StandIn:
    """kernel_tuner by its documented words: runs every valid configuration, and checks each against the answer."""

    __version__ = "1.5.0"

    def __init__(self) -> None:
        self.checked = 0

    def tune_kernel(
        self,
        kernel_name: str,
        kernel_source: str,
        problem_size: tuple[int, ...],
        arguments: list[Any],
        tune_params: dict[str, list[int]],
        *,
        restrictions: list[str],
        answer: list[Any],
        atol: float,
        grid_div_x: list[str],
        grid_div_y: list[str],
        compiler_options: list[str],
        block_size_names: list[str],
        lang: str,
        device: int,
    ) -> tuple[list[dict[str, Any]], dict[str, float]]:
        assert f"\n{kernel_name}(" in kernel_source
        assert (lang, device, block_size_names) == ("CUPY", 3, ["block_size_x"])
        (include,) = (Path(option[2:]) for option in compiler_options if option.startswith("-I"))
        assert (include / "common" / "double_buffered.cuh").is_file()
        assert "-DBETA_READ=1" in compiler_options
        results = []
        for values in itertools.product(*tune_params.values()):
            chosen = dict(zip(tune_params, values, strict=True))
            if not all(eval(text, {"__builtins__": {}}, dict(chosen)) for text in restrictions):
                continue
            m, n, k, alpha, a, b, beta, c = arguments
            assert [type(one) for one in (m, n, k, alpha, beta)] == [np.int32] * 3 + [np.float32] * 2
            assert (a.shape, b.shape, c.shape) == ((m, k), (k, n), (m, n))
            assert problem_size == (n, m)
            assert (grid_div_x, grid_div_y) == (["BN"], ["BM"])
            out = alpha * (a @ b) + beta * c
            assert [index for index, one in enumerate(answer) if one is not None] == [7]
            assert np.allclose(answer[7], out, atol=atol)
            self.checked += 1
            outcome: dict[str, Any] = {"time": 1.0 / values[0], "compile_time": 700.0}
            if chosen["WNITER"] == 1:
                outcome = {"__error__": ValueError("no"), "compile_time": 700.0}
            results.append(chosen | outcome)
        return results, {"total_compile_time": 1400.0, "overhead_time": 50.0}


def test_kernel_tuner_is_given_arguments_and_their_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = StandIn()
    monkeypatch.setitem(sys.modules, "kernel_tuner", stand_in)  # type: ignore[arg-type]
    monkeypatch.setattr(tune, "list_gpus", lambda: [SimpleNamespace(uuid="", index=3)])
    monkeypatch.chdir(ROOT)
    found = tune.tune(load_plan(ROOT, identify, SMALL), "few")
    assert stand_in.checked == len(found["configurations"]) > 1
    assert found["phases_s"] == pytest.approx(
        {"compile": 1.4, "verify": 0.0, "benchmark": 0.0, "framework": 0.0, "start": 0.05}
    )
    by_levels = {(c["levels"]["BM"], c["levels"]["WNITER"]): c for c in found["configurations"]}
    assert by_levels["128", "2"]["time_ms"] == pytest.approx(1 / 128)
    assert by_levels["128", "2"]["compile_s"] == pytest.approx(0.7)
    assert (by_levels["128", "1"]["time_ms"], by_levels["128", "1"]["error"]) == (None, "ValueError")
    json.dumps(found)


def test_a_card_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune, "list_gpus", list)
    with pytest.raises(Exception, match="not visible to CUDA"):
        tune.cuda_index(load_plan(ROOT, identify, SMALL))


def test_a_copy_is_fresh_and_uses_its_own_package(tmp_path: Path) -> None:
    project = FreshProject(ROOT, tmp_path)
    script = "import kernelab, os; print(kernelab.__file__); print(os.environ['CUPY_CACHE_DIR']); print(os.listdir())"
    ran = project.run(["-c", script], 60)
    package, cache, listed = ran.words.splitlines()
    assert ran.status == 0
    assert Path(package).is_relative_to(tmp_path)
    assert Path(cache).is_relative_to(tmp_path)
    assert "'results'" not in listed
    assert project.compile_seconds() == []


def test_a_command_past_its_limit_is_stopped_with_its_children(tmp_path: Path) -> None:
    project = FreshProject(ROOT, tmp_path)
    script = (
        "import subprocess, sys, time; "
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); "
        "print(child.pid, 'time=1', flush=True); time.sleep(600)"
    )
    ran = project.run(["-c", script], 3.0)
    assert ran.status is None
    assert 3.0 <= ran.wall_s < 20.0
    child = int(ran.words.split()[0])
    deadline = time.monotonic() + 10.0
    while alive(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(child)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ours(cold_s: float = 20.0) -> command.Ours:
    rows = [
        SearchRow(
            1, "BM=64", "finalist", time_ms=3.0, ratio=0.90, settings=settings_text({"BM": "64", "TM": "8"})
        ),
        SearchRow(
            2, "BM=128", "dropped", time_ms=3.3, ratio=0.99, settings=settings_text({"BM": "128", "TM": "4"})
        ),
        SearchRow(None, "BM=256", "excluded", settings=settings_text({"BM": "256", "TM": "4"})),
    ]
    seconds = {"build": 8.0, "check": 5.0, "race": 9.0, "total": 18.0}
    return command.Ours(cold_s, 1.5, {"seconds": seconds}, rows, [40.0, 60.0])


def theirs() -> command.Theirs:
    found = {
        "wall_s": 160.0,
        "phases_s": {"compile": 80.0, "verify": 40.0},
        "configurations": [
            {"levels": {"BM": "128", "TM": "4"}, "time_ms": 3.1},
            {"levels": {"BM": "64", "TM": "8"}, "time_ms": 3.41},
            {"levels": {"BM": "64", "TM": "4"}, "time_ms": None},
        ],
    }
    return command.Theirs(160.0, found, "")


def test_figures() -> None:
    told = {line.figure: line.value for line in command.figures(theirs(), ours(), 16, 196)}
    assert told["kernel_tuner, wall"] == 160.0
    assert told["kernel_tuner, verify"] == 40.0
    assert told["kernel_tuner over kernelab, cold"] == 8.0
    assert told["compiles one by one, over the cores: the floor"] == 5.0  # the smaller sum, 80 s, over 16
    assert told["kernelab, cold over floor"] == 4.0
    assert told["kernelab, best"] == "BM=64,TM=8"
    assert told["kernel_tuner, best"] == "BM=128,TM=4"
    assert told["kernelab's best over kernel_tuner's, by kernel_tuner's clock"] == pytest.approx(1.1)
    assert told["rank of kernel_tuner's best in kernelab's race"] == 2
    assert told["kernelab's best over kernel_tuner's, by kernelab's ratios"] == pytest.approx(0.90 / 0.99)


def test_figures_without_kernel_tuner_and_when_it_was_stopped() -> None:
    alone = {line.figure for line in command.figures(None, ours(), 16, 196)}
    assert "kernelab, cold over floor" in alone
    assert not any("kernel_tuner" in figure for figure in alone)
    stopped = command.Theirs(400.0, None, "stopped after 400 s, with 30 configurations timed")
    (wall,) = [line for line in command.figures(stopped, ours(), 16, 196) if "kernel_tuner" in line.figure]
    assert (wall.value, wall.aim) == (400.0, "stopped after 400 s, with 30 configurations timed")


def test_how_kernel_tuner_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    outcomes = iter(
        [
            Ran(None, 9.0, "BM=64, time=3ms\nBM=128, time=4ms\n"),
            Ran(
                1,
                2.0,
                "No module named 'kernel_tuner': the comparison needs pip install kernel_tuner==1.5.0\n",
            ),
        ]
    )
    monkeypatch.setattr(FreshProject, "__init__", lambda self, root, folder: None)
    monkeypatch.setattr(FreshProject, "run", lambda self, arguments, limit_s: next(outcomes))
    assert (
        command.run_theirs(ROOT, tmp_path, "few", 9.0).note
        == "stopped after 9 s, with 2 configurations timed"
    )
    assert "pip install kernel_tuner" in command.run_theirs(ROOT, tmp_path, "few", 9.0).note


def test_the_csv(tmp_path: Path) -> None:
    command.write(
        tmp_path / "figures.csv",
        [command.Line("a, wall", 1.23456789, "s", "aim 2"), command.Line("best", "BM=64")],
    )
    assert (
        tmp_path / "figures.csv"
    ).read_text() == 'figure,value,unit,note\n"a, wall",1.23457,s,aim 2\nbest,BM=64,,\n'


def test_without_a_gpu_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["search_against_kernel_tuner.py", "--root", os.fspath(ROOT)])
    monkeypatch.setattr(
        command, "load_plan", lambda root, device: load_plan(root, device, {"device": "emulated"})
    )
    assert command.main() == 1
    assert capsys.readouterr().err == "no GPU is visible to CUDA; both tools time kernels on one\n"
