from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from scaled_project import ScaledProject

from kernelab.build import kernel as build_room
from kernelab.build import runner
from kernelab.build.cache import CompilationCache
from kernelab.build.kernel import FILES
from kernelab.build.step import build_planned
from kernelab.build.toolchain import find_toolchain
from kernelab.device.identify import EMULATED
from kernelab.digests import Digests
from kernelab.errors import UserError
from kernelab.plan.load import load_plan
from kernelab.plan.space import Space
from kernelab.records.layout import Layout
from kernelab.search.builds import BuildPool, BuildRequest
from kernelab.search.code import code_sha256

REPOSITORY = Path(__file__).parents[3]

# A worker that notes its start and each compile of N = 2, and then does as it is told.
WORKER = """\
import importlib.util, os, sys, time
spec = importlib.util.spec_from_file_location("nvrtc_worker", {real!r})
real = importlib.util.module_from_spec(spec)
spec.loader.exec_module(real)

def note(name):
    with open({notes!r} + "/" + name, "a") as file:
        file.write("x")
    return os.path.getsize({notes!r} + "/" + name)

def compile(nvrtc, known, source, arch, options, really=real._compile):
    if b"-DN=2" in options:
        attempt = note("attempts")
        {action}
    return really(nvrtc, known, source, arch, options)

real._compile = compile
if __name__ == "__main__":
    real.settle_addresses()
    note("starts")
    real.serve(sys.argv[1])
"""


class Worker:
    """What a planted worker noted."""

    def __init__(self, notes: Path) -> None:
        self._notes = notes

    def count(self, name: str) -> int:
        path = self._notes / name
        return path.stat().st_size if path.exists() else 0


@pytest.fixture
def plant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """Puts a worker in the place of NVRTC's that takes an action, a line of Python, whenever N = 2 is compiled."""

    def planted(action: str) -> Worker:
        notes = tmp_path / "notes"
        notes.mkdir()
        script = notes / "worker.py"
        script.write_text(WORKER.format(real=str(runner.WORKER), notes=str(notes), action=action))
        monkeypatch.setattr(runner, "WORKER", script)
        return Worker(notes)

    return planted


def test_the_pool_makes_what_the_step_build_makes_to_the_byte(tmp_path: Path) -> None:
    # For sm_86, NVRTC's code of 13_final depends on the addresses that its memory gets.
    (tmp_path / "kernels").symlink_to(REPOSITORY / "kernels")
    (tmp_path / "config.yaml").write_text(
        "device: emulated\narch: sm_86\nproblems: {small: {m: 256, n: 256, k: 256, alpha: 1.0, beta: 0.0}}\n"
        "experiments: {pads: {question: '?', base: 13_final, vary: {A_PAD: [0, 2]}}}\n"
        "search: {pads: {question: '?', base: 13_final, over: {A_PAD: [0, 2]}}}\n"
    )
    plan = load_plan(tmp_path, lambda _: EMULATED)
    digests, layout = Digests(plan, tmp_path), Layout(tmp_path / "results", EMULATED.id)
    requests = [
        BuildRequest(c, digests.of_build(c.build)) for c in Space.of(plan, "pads").points() if c.build
    ]
    with BuildPool(find_toolchain("nvrtc"), plan, layout, tmp_path, workers=1) as pool:
        built = list(pool.run(requests))
    assert [one.status for one in built] == ["ok", "ok"]
    cache = CompilationCache(layout)
    elsewhere = Layout(tmp_path / "elsewhere", EMULATED.id)
    for one in built:
        assert one.configuration.build is not None
        key = one.configuration.build.key
        record = build_planned(plan, key, elsewhere, digests, tmp_path)
        cubin, ptx = (elsewhere.build(key) / name for name in FILES[:2])
        compiled = cache.load(one.digest)
        assert compiled is not None
        assert one.cubin is not None
        assert one.cubin.read_bytes() == compiled.cubin == cubin.read_bytes()
        assert compiled.ptx.encode() == ptx.read_bytes()
        assert (compiled.log, compiled.command) == (record.log, record.command)
        entry = record.entries["sgemm_beta0"]
        assert code_sha256(one, find_toolchain("nvrtc"), plan, layout) == entry.sass_sha256
        assert code_sha256(replace(one, digest="0" * 64), find_toolchain("nvrtc"), plan, elsewhere) == ""
        assert one.registers == entry.registers
        assert one.shared_bytes == entry.static_shared_bytes > 0


@pytest.mark.parametrize("name", ["nvrtc", "nvcc"])
def test_what_compiles_and_what_does_not(tmp_path: Path, name: str) -> None:
    try:
        toolchain = find_toolchain(name)
    except UserError as missing:
        pytest.skip(str(missing))
    project = ScaledProject(tmp_path, {"N": [2, 13]}, toolchain=name)
    built = project.build(toolchain=toolchain)
    good, bad = built["N=2"], built["N=13"]
    assert good.cubin is not None
    assert good.cubin.is_absolute()
    assert good.cubin.read_bytes().startswith(b"\x7fELF")
    assert (good.status, good.note, good.cached, good.lasting) == ("ok", "", False, True)
    assert good.seconds > 0
    assert good.shared_bytes == 64 * 4 + 512  # the launch's dynamic part counts, as in table.csv
    assert good.spill_bytes == 0
    assert (bad.status, bad.cubin, bad.registers, bad.cached) == ("compile_error", None, None, False)
    assert "thirteen is not a factor" in bad.note
    assert "\n" not in bad.note
    again = project.build(toolchain=toolchain)
    assert all(one.cached for one in again.values())
    for key, one in again.items():
        assert one.note == built[key].note
        assert (one.cubin, one.registers, one.shared_bytes) == (
            built[key].cubin,
            built[key].registers,
            built[key].shared_bytes,
        )


def test_figures_are_of_the_launches_that_the_problem_takes(tmp_path: Path) -> None:
    project = ScaledProject(tmp_path)
    project.config["search"]["factors"]["at"] = "ragged"  # type: ignore[index]
    assert {one.shared_bytes for one in project.build().values()} == {0}  # `guarded` has no tile


@pytest.mark.parametrize(
    ("action", "note"),
    [
        ("os.kill(os.getpid(), 11)", "error: the compiler died of SIGSEGV"),
        ("os.abort()", "error: the compiler died of SIGABRT"),
        ("os.kill(os.getpid(), 9)", "the compiler was killed, twice: is the machine out of memory?"),
        ("os.kill(os.getppid(), 9); time.sleep(60)", "the compiler was killed, twice"),  # the whole worker
    ],
)
def test_a_compiler_that_is_killed_costs_one_configuration(
    tmp_path: Path, plant: object, action: str, note: str
) -> None:
    worker: Worker = plant(action)  # type: ignore[operator]
    project = ScaledProject(tmp_path)
    built = project.build()
    assert {name: one.status for name, one in built.items()} == {
        "N=2": "compile_error",
        "default": "ok",
        "N=4": "ok",
        "N=5": "ok",
    }
    assert note in built["N=2"].note
    assert built["N=2"].lasting is False
    assert worker.count("attempts") == 2
    with pytest.MonkeyPatch.context() as patch:  # nothing is remembered of it
        patch.setattr(runner, "WORKER", Path(runner.__file__).with_name("nvrtc_worker.py"))
        again = project.build()
    assert again["N=2"].status == "ok"
    assert [name for name, one in again.items() if not one.cached] == ["N=2"]


def test_a_compiler_that_is_killed_once_is_asked_again(tmp_path: Path, plant: object) -> None:
    worker: Worker = plant("if attempt == 1: os.kill(os.getpid(), 9)")  # type: ignore[operator]
    built = ScaledProject(tmp_path).build()
    assert {one.status for one in built.values()} == {"ok"}
    assert worker.count("attempts") == 2
    assert worker.count("starts") <= 2  # a fork died, and the worker did not


def test_a_compiler_that_hangs_is_given_up_after_one_attempt(tmp_path: Path, plant: object) -> None:
    worker: Worker = plant("time.sleep(600)")  # type: ignore[operator]
    built = ScaledProject(tmp_path).build(timeout_s=2.0)
    assert built["N=2"].note == "error: the compiler was stopped after 2 s"
    assert built["N=2"].lasting is False
    assert {one.status for name, one in built.items() if name != "N=2"} == {"ok"}
    assert worker.count("attempts") == 1


def test_workers_start_once_and_no_more_than_there_are_requests(tmp_path: Path, plant: object) -> None:
    worker: Worker = plant("pass")  # type: ignore[operator]
    project = ScaledProject(tmp_path)
    requests = project.requests()
    with project.pool(workers=6) as pool:
        assert len(list(pool.run(requests[:1]))) == 1
        assert worker.count("starts") == 1
        assert len(list(pool.run(requests))) == 4
        assert worker.count("starts") <= 4
        started = worker.count("starts")
        assert all(one.cached for one in pool.run(requests))
    assert worker.count("starts") == started


def test_a_search_takes_what_the_step_build_made(tmp_path: Path) -> None:
    project = ScaledProject(tmp_path)
    record = build_planned(project.plan, "scaled/N=4", project.layout, project.digests(), tmp_path)
    built = project.build()
    cubin = project.layout.build("scaled/N=4") / "kernel.cubin"
    assert [name for name, one in built.items() if one.cached] == ["N=4"]
    assert built["N=4"].cubin == cubin.absolute()
    entry = record.entries["scaled"]
    assert built["N=4"].registers == entry.registers
    assert (
        code_sha256(built["N=4"], find_toolchain("nvrtc"), project.plan, project.layout) == entry.sass_sha256
    )
    assert built["N=4"].shared_bytes == built["N=5"].shared_bytes
    cubin.write_bytes(cubin.read_bytes()[:1000])
    again = project.build()
    assert [name for name, one in again.items() if not one.cached] == ["N=4"]
    assert again["N=4"].cubin != cubin.absolute()


def test_the_step_build_takes_what_a_search_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = ScaledProject(tmp_path)
    compiled = project.build()
    calls = []
    really = build_room.compile_source

    def compile_source(*arguments: object, **options: object) -> object:
        calls.append(arguments)
        return really(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(build_room, "compile_source", compile_source)
    record = build_planned(project.plan, "scaled/N=4", project.layout, project.digests(), tmp_path)
    assert calls == []
    assert record.status == "ok"
    assert record.entries["scaled"].registers == compiled["N=4"].registers
    ptx = (project.layout.build("scaled/N=4") / "kernel.ptx").read_text()
    # An edited comment moves lines: the same digest, and yet nothing of that build's PTX would be right.
    source = project.folder / "scaled.cu"
    source.write_text("// one more line\n" + source.read_text())
    build_planned(project.plan, "scaled/N=4", project.layout, project.digests(), tmp_path)
    assert len(calls) == 1
    assert (project.layout.build("scaled/N=4") / "kernel.ptx").read_text() != ptx
    assert all(one.cached for one in project.build().values())  # a search looks at no line


def test_a_source_that_changes_under_a_search_is_not_kept_as_the_old_one(tmp_path: Path) -> None:
    project = ScaledProject(tmp_path)
    requests = project.requests()

    def edited() -> Iterator[BuildRequest]:
        yield requests[0]
        header = project.folder / "factor.cuh"
        header.write_text(header.read_text() + "#define MORE 1\n")
        yield requests[1]

    with project.pool(workers=1) as pool, pytest.raises(UserError, match=r"scaled\.cu: was changed while"):
        list(pool.run(edited()))
    assert CompilationCache(project.layout).load(requests[1].digest) is None


def test_an_architecture_that_the_compiler_does_not_know_ends_the_run(tmp_path: Path) -> None:
    project = ScaledProject(tmp_path)
    requests = [
        BuildRequest(
            r.configuration.model_copy(
                update={"build": r.configuration.build.model_copy(update={"arch": "sm_30"})}  # type: ignore[union-attr]
            ),
            "0" * 64,
        )
        for r in project.requests()
    ]
    with project.pool() as pool, pytest.raises(UserError, match=r"arch sm_30: .* compiles for"):
        list(pool.run(requests))


def test_a_fault_of_whoever_draws_the_configurations_comes_through(tmp_path: Path) -> None:
    project = ScaledProject(tmp_path)

    def faulty() -> Iterator[BuildRequest]:
        yield from project.requests()[:1]
        raise UserError("no more")

    with project.pool() as pool, pytest.raises(UserError, match="no more"):
        list(pool.run(faulty()))


def test_two_searches_may_share_a_cache(tmp_path: Path) -> None:
    project = ScaledProject(tmp_path)
    requests, pools = project.requests(), [project.pool(workers=1) for _ in range(2)]
    made: list[list[str]] = []

    def search(pool: BuildPool) -> None:
        with pool:
            made.append([one.status for one in pool.run(requests)])

    threads = [threading.Thread(target=search, args=(pool,)) for pool in pools]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [["ok"] * 4] * 2
    cache = CompilationCache(project.layout)
    assert all(cache.load(request.digest) for request in requests)


def test_a_run_that_is_left_early_kills_its_compilers_and_the_pool_can_go_on(
    tmp_path: Path, plant: object
) -> None:
    plant("time.sleep(600)")  # type: ignore[operator]
    project = ScaledProject(tmp_path)
    with project.pool() as pool:
        begun = time.monotonic()
        results = pool.run(project.requests())
        assert next(results).status == "ok"
        groups = _groups(pool)
        assert any(_alive(group) for group in groups)
        results.close()  # type: ignore[attr-defined]
        assert time.monotonic() - begun < 60
        assert _gone(groups)
        rest = [r for r in project.requests() if r.configuration.name != "N=2"]
        assert {one.status for one in pool.run(rest)} == {"ok"}


def test_a_pool_can_be_stopped_from_another_thread(tmp_path: Path, plant: object) -> None:
    plant("time.sleep(600)")  # type: ignore[operator]
    project = ScaledProject(tmp_path)
    built: list[str] = []
    with project.pool() as pool:
        thread = threading.Thread(
            target=lambda: built.extend(one.configuration.name for one in pool.run(project.requests()))
        )
        thread.start()
        while len(built) < 1:
            time.sleep(0.01)
        groups = _groups(pool)
        pool.stop()
        thread.join(timeout=30)
        assert not thread.is_alive()
        assert "N=2" not in built
        assert list(pool.run(project.requests())) == []
    assert _gone(groups)


SCRIPT = """\
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background is started with it ignored
sys.path.insert(0, {tests!r})
from pathlib import Path
from scaled_project import ScaledProject
from kernelab.build import runner
runner.WORKER = Path({worker!r})
project = ScaledProject(Path({root!r}), {{"N": [2, 4]}})
with project.pool() as pool:
    for one in pool.run(project.requests()):
        print(*(c._process.pid for c in pool._compilers if c._process), flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_running(tmp_path: Path, plant: object, number: signal.Signals) -> None:
    plant("time.sleep(600)")  # type: ignore[operator]
    script = SCRIPT.format(
        tests=str(Path(__file__).parent), worker=str(runner.WORKER), root=str(tmp_path / "p")
    )
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "workflow")}
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stdout is not None
    groups = [int(word) for word in process.stdout.readline().split()]
    assert groups
    assert any(_alive(group) for group in groups)
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode != 0
    assert _gone(groups)


def _groups(pool: BuildPool) -> list[int]:
    return [compiler._process.pid for compiler in pool._compilers if compiler._process]


def _gone(groups: list[int]) -> bool:
    """Whether the processes of these groups end within the time that a killed one needs."""
    deadline = time.monotonic() + 10
    while any(_alive(group) for group in groups):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _alive(group: int) -> bool:
    """Whether a process of a group runs: one that nobody reaped does not."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, process_group = path.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(process_group) == group and state != "Z":
            return True
    return False
