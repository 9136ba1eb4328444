"""The comparison with nvbench, with an nvbench that is made up."""

from __future__ import annotations

import importlib.util
import sys
from array import array
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from kernelab.errors import UserError
from kernelab.timing.measure import Reading

from .conftest import Project

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "nvbench_agreement.py"


@pytest.fixture
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("nvbench_agreement", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["nvbench_agreement"] = module
    spec.loader.exec_module(module)
    return module


class Nvbench:
    """Runs every registered function, and says that each launch took 2 ms."""

    def __init__(self) -> None:
        self.functions: dict[str, Callable[[Any], None]] = {}
        self.argv: list[str] = []
        self.streams: list[tuple[int, int]] = []
        self.launched = 0

    def register(self, function: Callable[[Any], None]) -> Any:
        return SimpleNamespace(set_name=lambda name: self.functions.setdefault(name, function))

    def run_all_benchmarks(self, argv: list[str]) -> None:
        self.argv = argv
        for function in self.functions.values():
            function(self)

    def set_stream(self, provider: Any) -> None:
        self.streams.append(provider.__cuda_stream__())

    def exec(self, launch: Callable[[Any], None], *, batched: bool) -> None:
        assert batched is False
        launch(None)
        self.launched += 1

    def from_json(self, path: Path) -> Any:
        state = SimpleNamespace(samples=array("f", [0.002] * 7), frequencies=array("f", [1.5e9] * 7))
        return {name: [state] for name in self.functions}


@pytest.fixture
def nvbench(monkeypatch: pytest.MonkeyPatch) -> Nvbench:
    made = Nvbench()
    module = SimpleNamespace(register=made.register, run_all_benchmarks=made.run_all_benchmarks)
    results = SimpleNamespace(BenchmarkResult=SimpleNamespace(from_json=made.from_json))
    monkeypatch.setitem(sys.modules, "cuda", SimpleNamespace(bench=module))
    monkeypatch.setitem(sys.modules, "cuda.bench", module)
    monkeypatch.setitem(sys.modules, "cuda.bench.results", results)
    return made


def test_both_clocks_time_the_same_launches_on_one_stream(
    script: ModuleType, nvbench: Nvbench, project: Project, tmp_path: Path
) -> None:
    launches: list[str] = []
    bench = SimpleNamespace(
        launcher=lambda member: lambda: launches.append(member.arm),
        sample=lambda member, count: Reading(2.01, 1600.0, True),
    )
    session = SimpleNamespace(index=1, stream=SimpleNamespace(ptr=77))
    arms = script._arms(project.plan(), ["01_slow", "02_fast"], "big")
    found = script.Comparison(bench, session, 5).run(arms, tmp_path)
    assert [one.kernel for one in found] == ["01_slow", "02_fast"]
    assert found[0].ratio == pytest.approx(1.005)
    assert (found[0].drift, found[0].ours_samples, found[0].nvbench_samples) == (1.0, 10, 7)
    assert (found[0].ours_clock_mhz, found[0].nvbench_clock_mhz) == (1600.0, pytest.approx(1500.0))
    assert nvbench.streams == [(0, 77)] * 2
    assert nvbench.argv[nvbench.argv.index("--device") + 1] == "1"
    assert nvbench.launched == 2
    assert launches.count("01_slow/default@big") == script.WARM_UP + 1
    script._write(tmp_path / "x.csv", found)
    assert (tmp_path / "x.csv").read_text().splitlines()[1].startswith("01_slow,2.01,2,1.005,1,1600,")


def test_what_is_missing_is_said_in_a_line(
    script: ModuleType, project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="99_none/default@big: no arm"):
        script._arms(project.plan(), ["99_none"], "big")
    monkeypatch.setitem(sys.modules, "cuda.bench", None)
    with pytest.raises(UserError, match="cuda-bench cannot be imported"):
        script.Comparison(SimpleNamespace(), SimpleNamespace(), 1).run([], tmp_path)
