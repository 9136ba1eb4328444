"""A search and its confirmation on a real card: the verdict, its certificate, and that nothing is timed twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from scaling import OPERATION, declaration

from kernelab.cli.main import main
from kernelab.device.identify import identify, list_gpus
from kernelab.digests import Digests
from kernelab.plan.load import load_plan
from kernelab.plan.space import Space
from kernelab.records.compare import CompareRecord
from kernelab.records.layout import Layout
from kernelab.records.record import read_record
from kernelab.search.confirm import ConfirmStep, confirm_search
from kernelab.search.step import SearchStep, run_search
from kernelab.search.tabulate import searches_rows

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not list_gpus(), reason="CUDA shows no GPU here"),
]

FILES = {
    "kernels/work/work.cu": """\
#ifndef WORK
#define WORK 800
#endif
#ifndef BLOCK
#define BLOCK 256
#endif
extern "C" __global__ void work(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i >= n) return;
    float one = n > 0 ? 1.0f : a, zero = one - 1.0f, value = x[i];
    #pragma unroll 16
    for (int k = 0; k < WORK; k++) value = fmaf(value, one, zero);
    y[i] = a * value;
}
""",
    "kernels/work/operation.py": OPERATION,
    "kernels/work/kernels.yaml": declaration("work")
    + """\
kernels:
  work:
    source: work.cu
    idea: a chain of multiply-adds
    parameters:
      WORK: {type: int, default: 800, about: length of the chain}
      BLOCK: {type: int, default: 256, about: threads of a block, controls: [block, grid]}
    launches: [{entry: work, grid: "ceil_div(n, BLOCK)", block: BLOCK}]
""",
    "config.yaml": """\
device: auto
timing: {processes: 3, extend_to: 3, busy: warn}
problems: {big: {n: 4194304, a: 2.0}}
experiments: {one: {question: "?", base: work, vary: {WORK: [800, 1600]}}}
search:
  length: {question: Which is shortest?, base: work, over: {WORK: [400, 800, 1600], BLOCK: [128, 256]}, budget_s: 20, confirm: 2}
""",
}


def test_the_best_of_a_search_are_confirmed_once(tmp_path: Path) -> None:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    plan = load_plan(tmp_path, identify)
    layout, digests = Layout(tmp_path / "results", plan.device.id), Digests(plan, tmp_path)
    run_search(SearchStep(plan, "length", Space.of(plan, "length"), digests, tmp_path, layout))
    step = ConfirmStep(
        plan=plan,
        name="length",
        load=lambda over: load_plan(tmp_path, identify, over),
        layout=layout,
        digests=digests,
        root=tmp_path,
    )
    said: list[str] = []
    record = confirm_search(step, say=said.append)

    assert len(record.winners) == 2
    for winner in record.winners:
        assert winner.settings["WORK"] == "400"
        assert winner.verdict == "faster"
        assert winner.ratio == pytest.approx(winner.search_ratio, rel=0.05)
    compared = read_record(step.own.compare("search_length"), CompareRecord)
    for pair in compared.comparisons:
        assert not pair.confounds
        assert main(["verify", pair.certificate, str(step.own.results)]) == 0
    assert [row.verdict for row in searches_rows(plan, layout, digests)] == ["faster", "faster"]

    said.clear()
    assert confirm_search(step, say=said.append) == record
    assert "nothing has changed since it was timed" in said
