"""A search on a real card: the whole step, kernels that are wrong, hang or write where they must not, and what is resumed."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scaling import OPERATION, declaration

from kernelab.device.identify import identify, list_gpus
from kernelab.digests import Digests
from kernelab.operation.compare import POISON, compare
from kernelab.operation.launches import Buffer
from kernelab.plan.catalogue import Tolerance
from kernelab.plan.load import load_plan
from kernelab.plan.space import Space
from kernelab.records.layout import Layout
from kernelab.records.search import SearchRecord, SearchRow, read_search
from kernelab.search.contest import HEAT
from kernelab.search.step import SearchStep, run_search
from kernelab.timing.samples import read_samples

if TYPE_CHECKING:
    from kernelab.device.cuda import Session

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not list_gpus(), reason="CUDA shows no GPU here"),
]

# y = a x, after WORK dependent fused multiply-adds that change nothing. MODE makes it misbehave.
SOURCE = """\
#ifndef WORK
#define WORK 400
#endif
#ifndef MODE
#define MODE 0
#endif
extern "C" __global__ void work(int n, float a, float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float one = n > 0 ? 1.0f : a, zero = one - 1.0f, value = x[i % n];
    #pragma unroll 16
    for (int k = 0; k < WORK; k++) value = fmaf(value, one, zero);
#if MODE == 1
    if (i == 0 && a != 0.0f) { volatile const float *p = x; while (p[0] == p[0]) { } }
#elif MODE == 2
    if (i == 0) y = (float *)16;
#elif MODE == 3
    if (i == 12345) value += 1.0f;
#elif MODE == 4
    if (i == 77) y[n + 3] = 1.0f;
#elif MODE == 5
    if (i == 5) x[6] = 2.0f;
#elif MODE == 6
    if (i == 9) return;
#elif MODE == 7
    __syncthreads(); asm volatile("trap;");
#elif MODE == 8
    if (i == 40) value = value / zero;
#elif MODE == 9
#error nine
#endif
    if (i < n) y[i] = a * value;
}
"""
CATALOGUE = (
    declaration("work")
    + """\
kernels:
  work:
    source: work.cu
    idea: a chain of multiply-adds
    parameters:
      WORK: {type: int, default: 400, about: length of the chain}
      MODE: {type: int, default: 0, about: how it misbehaves}
      BLOCK: {type: int, default: 256, about: threads of a block, controls: [block, grid]}
    constraints: [{require: WORK != 999, reason: not that long}]
    launches: [{entry: work, grid: "ceil_div(n, BLOCK)", block: BLOCK}]
"""
)
CONFIG = """\
device: auto
timing: {launch_limit_s: 2.0, busy: warn}
problems: {big: {n: 4194304, a: 2.0}}
experiments: {one: {question: "?", base: work, vary: {WORK: [400, 800]}}}
search:
  length: {question: Which is shortest?, base: work, over: {WORK: WORKS, BLOCK: [128, 256]}, budget_s: 30, confirm: 2}
  misbehaving: {question: Are they caught?, base: work, over: {MODE: MODES, BLOCK: [256, 2048]}, confirm: 2}
"""
SHORT, LONGER = [400, 404, 440, 600, 800, 999, 40000], [200, 400, 404, 440, 600, 800, 999, 40000]


class Place:
    """A project whose search can be run again and again."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.said: list[str] = []
        folder = root / "kernels" / "work"
        folder.mkdir(parents=True)
        for name, text in (("work.cu", SOURCE), ("operation.py", OPERATION), ("kernels.yaml", CATALOGUE)):
            (folder / name).write_text(text)

    def step(self, name: str, works: list[int] = SHORT) -> SearchStep:
        (self.root / "config.yaml").write_text(
            CONFIG.replace("WORKS", str(works)).replace("MODES", str(list(range(10))))
        )
        plan = load_plan(self.root, identify)
        layout = Layout(self.root / "results", plan.device.id)
        return SearchStep(plan, name, Space.of(plan, name), Digests(plan, self.root), self.root, layout)

    def run(self, name: str, works: list[int] = SHORT) -> tuple[SearchRecord, dict[str, SearchRow]]:
        self.said.clear()
        step = self.step(name, works)
        record = run_search(step, self.said.append)
        return record, {row.configuration: row for row in read_search(step.layout.search(name))}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    from kernelab.device.cuda import Session

    made = Session(list_gpus()[0].uuid)
    yield made
    made.close()


@pytest.mark.parametrize("was_read", [False, True])
def test_the_card_judges_as_the_host_does(session: Session, was_read: bool) -> None:
    from kernelab.device.judge import Judge

    rng = np.random.default_rng(1)
    shape = (1000, 1237)
    x, before = rng.random((64,), np.float32), rng.random(shape, np.float32)
    inputs = {"x": x} | ({"y": before} if was_read else {})
    arrays = session.arrays({"x": Buffer((64,)), "y": Buffer(shape)}, ("y",), inputs)
    reference = rng.uniform(-30, 30, shape)
    tolerance = Tolerance(absolute=1e-3, relative=1e-2, frobenius=1e-5)
    judge = Judge(session, arrays, {"y": reference}, tolerance)

    def judged(out: np.ndarray) -> None:
        arrays.guarded["y"].set(np.ascontiguousarray(out))
        session.synchronize()
        found = judge.judge({}, list)
        host = compare("y", out, reference, tolerance, before if was_read else None)
        card = found.outputs["y"]
        assert (card.correct, card.note) == (host.correct, host.note)
        assert card.max_abs_error == host.max_abs_error
        assert (
            card.rel_error == pytest.approx(host.rel_error, rel=1e-9)
            if host.rel_error
            else not card.rel_error
        )
        assert (found.damaged, found.changed) == ([], [])

    right = reference.astype(np.float32)
    judged(right)
    for spoil in (np.nan, np.inf, 1e30):
        out = right.copy()
        out[700, 3] = spoil
        judged(out)
    judged((reference * 1.001).astype(np.float32))
    out = right.copy()
    out.view(np.uint32)[3:5] = POISON
    judged(out)
    out.view(np.uint32)[:] = POISON
    judged(out)
    judged(before)


def test_the_judge_sees_damage_and_changed_inputs(session: Session) -> None:
    from kernelab.device.judge import Judge

    x = np.arange(64, dtype=np.float32)
    arrays = session.arrays({"x": Buffer((64,)), "y": Buffer((5,))}, ("y",), {"x": x})
    reference = {"y": np.zeros(5)}
    judge = Judge(session, arrays, reference, Tolerance(absolute=1.0, relative=0.0, frobenius=1.0))
    session.fill(arrays["y"], 0)
    session.synchronize()
    assert judge.judge({}, list).damaged == []
    runtime = session.cupy.cuda.runtime
    runtime.memset(arrays["y"].data.ptr + 20 + (1 << 20) - 4, 0, 4)
    runtime.memset(arrays["x"].data.ptr + 8, 0xAB, 4)
    runtime.deviceSynchronize()
    found = judge.judge({}, lambda: ["its own"])
    assert found.changed == ["x: 1 elements"]
    assert len(found.damaged) == 2
    assert "1 of the 4-byte words past its end" in found.damaged[0]


def test_judging_is_quick(session: Session) -> None:
    from kernelab.device.judge import Judge

    shape = (4096, 4096)
    x = np.zeros(shape, np.float32)
    arrays = session.arrays({"x": Buffer(shape), "y": Buffer(shape)}, ("y",), {"x": x})
    judge = Judge(
        session, arrays, {"y": np.zeros(shape)}, Tolerance(absolute=1.0, relative=0.0, frobenius=1.0)
    )
    session.fill(arrays["y"], 0)
    judge.judge({}, list)
    begun = time.perf_counter()
    for _ in range(5):
        assert not judge.judge({}, list).wrong
    cost = (time.perf_counter() - begun) / 5
    print(f"judging 4096 x 4096: {1e3 * cost:.2f} ms")
    assert cost < 0.02


def test_the_shortest_is_found_and_a_larger_space_adds_only_what_is_new(place: Place) -> None:
    record, rows = place.run("length")
    print(record.seconds, record.counts)
    assert record.counts.excluded == 2
    assert record.counts.failed == 0
    assert record.card is not None
    assert record.card.driver
    best = min((row for row in rows.values() if row.rank), key=lambda row: row.rank or 0)
    assert best.levels["WORK"] in ("400", "404")
    assert best.status == "finalist"
    assert best.registers
    base = rows["default"]
    assert base.ratio == pytest.approx(1.0, abs=0.02)
    assert rows["WORK=800"].ratio == pytest.approx(2.0, abs=0.3)
    assert rows["WORK=40000"].rounds == 0
    samples = read_samples(place.step("length").layout.search_samples("length"))
    assert sum(sample.queued for sample in samples) > 0.9 * len(samples)
    begun = time.monotonic()
    place.run("length")
    assert time.monotonic() - begun < 2
    assert not [line for line in place.said if line.startswith("configuration")]
    _, grown = place.run("length", LONGER)
    assert len(grown) == len(rows) + 2
    best = min((row for row in grown.values() if row.rank), key=lambda row: row.rank or 0)
    assert best.levels["WORK"] == "200"
    # Two new ones are one heat; then come races.
    assert len([line for line in place.said if line.startswith("configuration")]) == 1


def test_whatever_misbehaves_is_caught_and_the_rest_goes_on(place: Place) -> None:
    record, rows = place.run("misbehaving")
    print(record.seconds)
    statuses = {row.levels["MODE"]: row.status for row in rows.values() if row.levels["BLOCK"] == "256"}
    notes = {row.levels["MODE"]: row.note for row in rows.values() if row.levels["BLOCK"] == "256"}
    assert statuses["0"] == "finalist", notes
    assert statuses["1"] == "timeout", notes
    assert statuses["2"] == "memory_fault", notes
    assert statuses["3"] == "wrong_result", notes
    assert "1 of 4194304 elements of y are wrong, the first at y[12345]" in notes["3"]
    assert statuses["4"] == "memory_fault", notes
    assert "past its end, the first at byte 12" in notes["4"]
    assert statuses["5"] == "wrong_result", notes
    assert "changed its input x: 1 elements" in notes["5"]
    assert statuses["6"] == "wrong_result", notes
    assert "1 of 4194304 elements of y were never written, the first at y[9]" in notes["6"]
    # A trap is an illegal instruction to some drivers, and an unspecified failure, most often of memory, to others.
    assert statuses["7"] in ("launch_error", "memory_fault"), notes
    assert "trap" in notes["7"]
    assert statuses["8"] == "wrong_result", notes
    assert "NaN or infinite, the first at y[40]" in notes["8"]
    assert statuses["9"] == "compile_error", notes
    wide = {row.status for row in rows.values() if row.levels["BLOCK"] == "2048"}
    assert wide == {"launch_error", "compile_error"}
    place.run("misbehaving")
    assert place.said == []


def test_a_search_that_is_killed_goes_on_where_it_was(place: Place, tmp_path: Path) -> None:
    works = list(range(400, 440, 2))
    step = place.step("length", works)
    script = tmp_path / "search.py"
    script.write_text(
        "from pathlib import Path\n"
        "from kernelab.device.identify import identify\n"
        "from kernelab.digests import Digests\n"
        "from kernelab.plan.load import load_plan\n"
        "from kernelab.plan.space import Space\n"
        "from kernelab.records.layout import Layout\n"
        "from kernelab.search.step import SearchStep, run_search\n"
        f"root = Path({str(place.root)!r})\n"
        "plan = load_plan(root, identify)\n"
        "layout = Layout(root / 'results', plan.device.id)\n"
        "run_search(SearchStep(plan, 'length', Space.of(plan, 'length'), Digests(plan, root), root, layout))\n"
    )
    paths = [str(Path(__file__).parents[2] / "workflow"), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    process = subprocess.Popen(
        [sys.executable, str(script)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
        start_new_session=True,
    )
    journal = step.layout.search_journal("length")
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if journal.is_file() and '"heat"' in journal.read_text():
            break
        time.sleep(0.005)
    killed = process.poll() is None
    if killed:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert killed, "it ended before it could be killed"
    _, rows = place.run("length", works)
    total = len([row for row in rows.values() if row.status != "excluded"])
    heats = [line for line in place.said if line.startswith("configuration")]
    # What it knows may come from the builds after what it does not: the number of heats tells, not the first's place.
    assert len(heats) <= math.ceil((total - HEAT) / HEAT)
    assert heats[0].endswith(f" of {total}")
    assert sorted(row.rank for row in rows.values() if row.rank) == list(range(1, total + 1))
