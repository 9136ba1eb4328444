"""The whole step with real worker processes, a card made of numbers and a pool that need not compile."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from scaled_project import ScaledProject

from kernelab.digests import Digests
from kernelab.errors import UserError
from kernelab.plan.arms import Device, Plan
from kernelab.plan.load import load_plan
from kernelab.plan.space import Space
from kernelab.records.layout import Layout
from kernelab.records.search import SearchRecord, SearchRow, read_search
from kernelab.search.builds import BuildRequest, BuiltConfiguration
from kernelab.search.step import SearchStep, run_search
from kernelab.timing import held, supervise
from kernelab.timing.samples import read_samples

UUID = "GPU-00000000-1111-2222-3333-444444444444"
HERE = Path(__file__).parent
CARD = HERE / "pretend_card.py"


class NoNvml:
    """NVML that does not answer, as in a container without it."""

    available = False

    def __init__(self, uuid: str) -> None:
        self.uuid = uuid

    def __enter__(self) -> NoNvml:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def other_processes(self, ours: set[int]) -> None:
        return None


class Pool:
    """Builds at once; those of `broken` do not compile. Knows what it built."""

    def __init__(self, broken: Iterable[str] = (), fail_after: int | None = None) -> None:
        self.broken, self.fail_after = set(broken), fail_after
        self.asked: list[str] = []

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def run(self, requests: Iterable[BuildRequest]) -> Iterator[BuiltConfiguration]:
        for request in requests:
            build = request.configuration.build
            assert build is not None
            self.asked.append(request.configuration.name)
            if self.fail_after is not None and len(self.asked) > self.fail_after:
                raise UserError("the compiler is gone")
            ok = build.levels["N"] not in self.broken
            yield BuiltConfiguration(
                configuration=request.configuration,
                digest=request.digest,
                status="ok" if ok else "compile_error",
                note="" if ok else "error: thirteen",
                cubin=Path("/nowhere/k.cubin") if ok else None,
                registers=32 if ok else None,
                spill_bytes=0 if ok else None,
                shared_bytes=256 if ok else None,
                seconds=0.1,
                cached=False,
            )


@dataclass
class Lab:
    """A project with a search over N, on a card that is not there."""

    root: Path
    world: dict[str, Any]
    levels: list[int]
    search: dict[str, Any] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)

    def plan(self) -> Plan:
        project = ScaledProject(self.root, {"N": list(self.levels)})
        project.config["device"] = "auto"
        project.config["timing"] = {"busy": "warn", "sample_ms": 1.0}
        project.config["search"]["factors"] |= self.search  # type: ignore[index]
        assert project.plan
        device = Device(id="test-0", kind="gpu", name="NVIDIA Test", arch="sm_86", uuid=UUID)
        return load_plan(self.root, lambda _: device)

    def step(self) -> SearchStep:
        plan = self.plan()
        digests = Digests(plan, self.root)
        return SearchStep(plan, "factors", Space.of(plan, "factors"), digests, self.root, self.layout)

    @property
    def layout(self) -> Layout:
        return Layout(self.root / "results", "test-0")

    def command(self) -> list[str]:
        (self.root / "world.json").write_text(json.dumps(self.world))
        return [sys.executable, str(CARD), str(self.root / "world.json")]

    def run(self, pool: Pool | None = None) -> SearchRecord:
        self.said.clear()
        return run_search(
            self.step(),
            self.said.append,
            pool=pool or Pool(),
            code=lambda built: f"code of {built.configuration.name}",
            command=self.command(),
            monitor=NoNvml,  # type: ignore[arg-type]
        )

    @property
    def rows(self) -> dict[str, SearchRow]:
        return {row.configuration: row for row in read_search(self.layout.search("factors"))}

    def log(self) -> list[str]:
        path = Path(self.world["log"])
        return path.read_text().splitlines() if path.is_file() else []

    def count(self, line: str) -> int:
        return sum(one.startswith(line) for one in self.log())

    def clear_log(self) -> None:
        Path(self.world["log"]).unlink(missing_ok=True)

    def results(self) -> dict[str, bytes]:
        layout = self.layout
        paths = (layout.search("factors"), layout.search_samples("factors"), layout.search_record("factors"))
        return {path.name: path.read_bytes() for path in paths}


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setenv("KERNELAB_LOCK_DIR", str(tmp_path / "locks"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setattr(supervise, "GRACE_S", 0.3)
    root = tmp_path / "project"
    root.mkdir()
    levels = list(range(1, 21))
    times = {str(n): {"time_ms": 1.0 + 0.02 * abs(n - 7)} for n in levels}
    return Lab(root, {"log": str(tmp_path / "log"), "configurations": times}, levels)


def test_the_fastest_are_found_and_everything_is_recorded(lab: Lab) -> None:
    record = lab.run()
    rows = lab.rows
    assert len(rows) == 20
    best = rows["N=7"]
    assert (best.rank, best.status) == (1, "finalist")
    base = lab.world["configurations"]["3"]["time_ms"]
    assert best.ratio == pytest.approx(1.0 / base, rel=0.003)
    assert best.ratio_low is not None
    assert best.ratio_high is not None
    assert best.ratio_low < best.ratio < best.ratio_high  # type: ignore[operator]
    assert best.time_ms == pytest.approx(1.0, rel=0.01)
    assert best.rounds is not None
    assert best.rounds >= 16
    assert (best.sass_sha256, rows["N=20"].sass_sha256) == ("code of N=7", "")
    assert (best.registers, best.spill_bytes, best.shared_bytes) == (32, 0, 256)
    assert {row.configuration for row in rows.values() if row.status == "finalist"} <= {
        "N=7",
        "N=6",
        "N=8",
    }
    assert rows["N=20"].status == "dropped"
    assert sorted(row.rank for row in rows.values() if row.rank) == list(range(1, 21))
    assert record.counts.model_dump() == {
        "points": 20,
        "excluded": 0,
        "built": 20,
        "failed": 0,
        "raced": 20,
        "finalists": 3,
    }
    assert lab.count("start") == 1
    assert lab.count("check N=") + lab.count("check default") == 20
    samples = read_samples(lab.layout.search_samples("factors"))
    names = {sample.arm for sample in samples}
    assert {"#base", "#base#aa", "N=7", "default"} <= names
    mine = [sample for sample in samples if sample.arm == "N=7"]
    assert len(mine) >= 2 * (2 + 16)
    assert f"configuration 1 of {len(rows)}" in lab.said


def test_nothing_new_starts_no_worker_and_changes_no_byte(lab: Lab) -> None:
    lab.run()
    before = lab.results()
    lab.clear_log()
    begun = time.monotonic()
    lab.run()
    assert time.monotonic() - begun < 2
    assert lab.log() == []
    assert lab.results() == before


def test_a_larger_space_screens_only_what_is_new(lab: Lab) -> None:
    lab.levels = list(range(10, 21))
    lab.run()
    assert lab.rows["N=10"].rank == 1
    lab.clear_log()
    lab.levels = list(range(1, 21))
    lab.run()
    checked = {line.split()[1] for line in lab.log() if line.startswith("check")}
    assert checked == {"#base", "#base#aa", "default"} | {f"N={n}" for n in (1, 2, 4, 5, 6, 7, 8, 9)}
    assert lab.rows["N=7"].rank == 1
    assert len(lab.rows) == 20
    # And a smaller one nothing at all, but for the races of another field.
    lab.clear_log()
    lab.levels = list(range(5, 12))
    lab.run()
    assert not [line for line in lab.log() if line.startswith("check N=")]
    assert set(lab.rows) == {f"N={n}" for n in range(5, 12)}


def test_a_deleted_result_is_measured_anew(lab: Lab) -> None:
    lab.run()
    lab.layout.search("factors").unlink()
    lab.clear_log()
    lab.run()
    assert lab.count("check N=") == 19


MISDEEDS = {
    "4": ({"check": "fault"}, "memory_fault", "illegal address"),
    "5": ({"check": "segv"}, "launch_error", "SIGSEGV"),
    "8": ({"check": "hang"}, "timeout", "check: not done after 0.5 s"),
    "9": ({"sample": "timeout"}, "timeout", "still running"),
    "10": ({"wrong": "1 of 4096 elements of y are wrong"}, "wrong_result", "1 of 4096"),
    "11": ({"load": "launch_error"}, "launch_error", "too much"),
    "12": ({"sample": "segv"}, "launch_error", "SIGSEGV"),
    "14": ({"wrong_later": "2 elements"}, "wrong_result", "while it raced: 2 elements"),
}


def test_a_broken_configuration_gets_its_status_and_the_rest_goes_on(lab: Lab) -> None:
    lab.world["limit_s"] = 0.5
    for level, (how, _, _) in MISDEEDS.items():
        lab.world["configurations"][level] |= how
    record = lab.run(Pool(broken=["13"]))
    rows = lab.rows
    for level, (_, status, note) in MISDEEDS.items():
        row = rows[f"N={level}"]
        assert (row.status, row.rank) == (status, None), row
        assert note in row.note
    assert (rows["N=13"].status, rows["N=13"].note) == ("compile_error", "error: thirteen")
    sound = {name for name, row in rows.items() if row.rank}
    assert sound == {"default"} | {f"N={n}" for n in (1, 2, 6, 7, 15, 16, 17, 18, 19, 20)}
    assert rows["N=7"].rank == 1
    assert record.counts.failed == len(MISDEEDS) + 1
    sampled = {sample.arm for sample in read_samples(lab.layout.search_samples("factors"))}
    assert sampled == sound | {"#base", "#base#aa"}
    # Each killed one worker at most, and none of them was ever tried again.
    assert lab.count("start") == 1 + 5
    for level in ("4", "5", "8", "10"):
        assert lab.count(f"check N={level}") == 1
    lab.clear_log()
    lab.run(Pool(broken=["13"]))
    assert lab.log() == []
    assert {name for name, row in lab.rows.items() if row.rank} == sound


def test_what_writes_over_the_cards_memory_is_found_in_a_fresh_process(lab: Lab) -> None:
    lab.world["configurations"]["6"] |= {"check": "ruin"}
    lab.run()
    rows = lab.rows
    assert rows["N=6"].status == "memory_fault"
    assert "the base is wrong too" in rows["N=6"].note
    assert all(row.rank for name, row in rows.items() if name != "N=6")
    assert lab.count("check N=6") == 2


def test_a_base_that_fails_ends_the_search_in_one_line(lab: Lab) -> None:
    lab.world["configurations"]["3"] |= {"wrong": "all of it"}
    with pytest.raises(UserError, match=r"its base .* fails: wrong_result: all of it"):
        lab.run()
    lab.world["configurations"]["3"] = {}
    with pytest.raises(UserError, match="its base scaled/default does not build: error: thirteen"):
        lab.run(Pool(broken=["3"]))


@pytest.mark.parametrize("how", ["kill", "broken"])
def test_a_broken_machine_ends_the_run_and_the_next_goes_on(lab: Lab, how: str) -> None:
    lab.world["configurations"]["15"] |= {"sample": how}
    with pytest.raises(UserError, match="failed"):
        lab.run()
    checked = {line for line in lab.log() if line.startswith("check N=")}
    assert checked
    del lab.world["configurations"]["15"]["sample"]
    lab.clear_log()
    lab.run()
    assert lab.rows["N=7"].rank == 1
    assert lab.rows["N=15"].rank
    assert not checked & {line for line in lab.log() if line.startswith("check N=")}


def test_an_error_of_the_pool_is_the_runs_and_leaves_no_worker(lab: Lab) -> None:
    with pytest.raises(UserError, match="the compiler is gone"):
        lab.run(Pool(fail_after=12))
    (start,) = [line for line in lab.log() if line.startswith("start")]
    assert not _lives(int(start.split()[1]))


def test_far_slower_ones_are_not_raced(lab: Lab) -> None:
    lab.world["configurations"]["20"]["time_ms"] = 50.0
    lab.run()
    row = lab.rows["N=20"]
    assert (row.status, row.rank, row.rounds) == ("dropped", 20, 0)
    assert row.ratio == pytest.approx(50 / lab.world["configurations"]["3"]["time_ms"], rel=0.02)
    assert lab.count("judge N=20") == 0


def test_a_spent_budget_is_said(lab: Lab) -> None:
    lab.search["budget_s"] = 0.5
    lab.world["sleep_s"] = 0.01
    begun = time.monotonic()
    record = lab.run()
    assert time.monotonic() - begun < 8
    statuses = {row.status for row in lab.rows.values()}
    assert "not_measured" in statuses
    unscreened = next(row for row in lab.rows.values() if row.status == "not_measured")
    assert unscreened.note == "the budget of 0.5 s was spent before it was screened"
    # At most one heat beyond it: that is about 100 samples of 10 ms.
    assert record.seconds.check + record.seconds.race < 0.5 + 1.5
    lab.search["budget_s"] = 60.0
    lab.world["sleep_s"] = 0.0
    lab.run()
    assert lab.rows["N=7"].rank == 1


def test_a_search_that_is_killed_with_all_its_children_goes_on(lab: Lab, tmp_path: Path) -> None:
    lab.world["sleep_s"] = 0.003
    lab.step()
    command = lab.command()
    script = tmp_path / "search.py"
    script.write_text(
        "import sys\n"
        "from pathlib import Path\n"
        "import test_search_step as t\n"
        f"lab = t.Lab(Path({str(lab.root)!r}), {lab.world!r}, {lab.levels!r})\n"
        "lab.run()\n"
    )
    path = os.pathsep.join([str(HERE), str(HERE.parents[2] / "workflow")])
    process = subprocess.Popen(
        [sys.executable, str(script)], env=os.environ | {"PYTHONPATH": path}, start_new_session=True
    )
    journal = lab.layout.search_journal("factors")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if journal.is_file() and journal.read_text().count('"heat"') >= 1:
            break
        time.sleep(0.01)
    assert process.poll() is None, "it ended before it could be killed"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    (start,) = [line for line in lab.log() if line.startswith("start")]
    for _ in range(100):
        if not _lives(int(start.split()[1])):
            break
        time.sleep(0.05)
    assert not _lives(int(start.split()[1]))
    assert not lab.layout.search("factors").exists()
    screened = {
        digest for line in journal.read_text().splitlines() for digest in json.loads(line).get("digests", {})
    }
    assert len(screened) >= 8
    with journal.open("a") as stream:
        stream.write('{"conditions": "half a li')
    lab.clear_log()
    lab.world["sleep_s"] = 0.0
    lab.run()
    assert lab.rows["N=7"].rank == 1
    assert len(lab.rows) == 20
    first = next(line for line in lab.said if line.startswith("configuration"))
    assert int(first.split()[1]) == len(screened) + 1
    rechecked = {line.split()[1] for line in lab.log() if line.startswith("check")}
    assert not screened & rechecked
    assert command


def test_a_configuration_of_other_code_is_screened_again(lab: Lab) -> None:
    lab.run()
    source = lab.root / "kernels" / "scale" / "scaled.cu"
    lab.clear_log()
    project_source = source.read_text().replace("+ 1) % 64", "+ 2) % 64")
    import scaled_project

    before = scaled_project.SOURCE
    try:
        scaled_project.SOURCE = project_source
        lab.run()
    finally:
        scaled_project.SOURCE = before
    assert lab.count("check N=") == 19


def test_random_and_tpe_try_some_of_the_space(lab: Lab) -> None:
    lab.levels = list(range(1, 61))
    lab.world["configurations"] |= {str(n): {"time_ms": 1.0 + 0.02 * abs(n - 7)} for n in lab.levels}
    lab.search |= {"sampler": "random", "configurations": 9}
    lab.run()
    first = set(lab.rows)
    assert len(first) == 9
    lab.search["seed"] = 2
    lab.run()
    assert set(lab.rows) != first


def test_tpe_finds_what_is_good_with_half_of_the_trials(lab: Lab) -> None:
    pytest.importorskip("optuna")
    lab.levels = list(range(1, 61))
    lab.world["configurations"] |= {str(n): {"time_ms": 1.0 + 0.02 * abs(n - 7)} for n in lab.levels}
    lab.search |= {"sampler": "tpe", "configurations": 32}
    record = lab.run()
    assert record.counts.points == 32
    best = min(lab.rows.values(), key=lambda row: row.rank or 999)
    assert best.time_ms is not None
    assert best.time_ms < 1.05
    before = lab.results()
    lab.clear_log()
    lab.run()
    assert lab.log() == []
    assert lab.results() == before


def test_the_real_worker_without_a_gpu_says_so_in_one_line(lab: Lab) -> None:
    if os.path.exists("/dev/nvidia0"):
        pytest.skip("there is a GPU here")
    with pytest.raises(UserError, match=r"exit 4\): the GPU GPU-00000000.* is not here"):
        run_search(lab.step(), lab.said.append, pool=Pool(), monitor=NoNvml)  # type: ignore[arg-type]


def test_a_card_in_use_is_refused_before_anything_runs_on_it(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kernelab.device.nvml import Process

    class Busy(NoNvml):
        def other_processes(self, ours: set[int]) -> list[Process]:  # type: ignore[override]
            return [Process(pid=123, name="somebody")]

    monkeypatch.setattr(held, "SETTLE_S", 0.0)
    step = lab.step()
    refusing = step.plan.model_copy(update={"timing": step.plan.timing.model_copy(update={"busy": "refuse"})})
    with pytest.raises(UserError, match=r"in use by somebody \(123\)"):
        run_search(
            dataclasses.replace(step, plan=refusing),
            lab.said.append,
            pool=Pool(),
            command=lab.command(),
            monitor=Busy,  # type: ignore[arg-type]
        )
    assert lab.log() == []


def test_real_compilers_feed_the_card(lab: Lab) -> None:
    lab.levels = [2, 3, 4, 7, 13, 99]
    step = dataclasses.replace(lab.step(), workers=2)

    def search() -> SearchRecord:
        lab.said.clear()
        return run_search(step, lab.said.append, command=lab.command(), monitor=NoNvml)  # type: ignore[arg-type]

    record = search()
    rows = lab.rows
    assert {name: row.status for name, row in rows.items() if not row.rank} == {
        "N=13": "compile_error",
        "N=99": "excluded",
    }
    assert "thirteen is not a factor" in rows["N=13"].note
    assert rows["N=7"].rank == 1
    assert rows["N=7"].registers
    assert len({row.sass_sha256 for row in rows.values() if row.status == "finalist"}) == 3
    assert all(len(row.sass_sha256) == 64 for row in rows.values() if row.status == "finalist")
    assert record.counts.built == 4
    assert 0 < record.seconds.build <= record.seconds.total
    lab.clear_log()
    begun = time.monotonic()
    search()
    assert time.monotonic() - begun < 2
    assert lab.log() == []


def test_without_a_gpu_everything_is_built_and_nothing_is_measured(lab: Lab) -> None:
    project = ScaledProject(lab.root, {"N": [2, 3, 13, 99]})
    plan = project.plan
    step = SearchStep(
        plan, "factors", Space.of(plan, "factors"), Digests(plan, lab.root), lab.root, project.layout
    )
    record = run_search(step, lab.said.append, pool=Pool(broken=["13"]))
    rows = {row.configuration: row for row in read_search(project.layout.search("factors"))}
    assert {name: row.status for name, row in rows.items()} == {
        "N=2": "not_measured",
        "default": "not_measured",
        "N=13": "compile_error",
        "N=99": "excluded",
    }
    assert rows["N=99"].note == "N != 99: 99 is not a factor"
    assert rows["N=2"].registers == 32
    assert record.card is None
    assert read_samples(project.layout.search_samples("factors")) == []


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
