"""A search in kernel_tuner's words: the same configurations, launched alike, from the same source."""

from __future__ import annotations

import itertools
import math
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from against_kernel_tuner.space import BLOCK, TunedKernel, tuned_kernel

from kernelab.build.kernel import build_kernel
from kernelab.build.toolchain import find_toolchain
from kernelab.device.identify import identify
from kernelab.errors import UserError
from kernelab.operation.launches import plan_launches
from kernelab.plan.arms import Plan
from kernelab.plan.load import load_plan
from kernelab.plan.space import Space

ROOT = Path(__file__).parents[3]
NAME = "seed_a_space"
EMULATED = {"device": "emulated"}


@pytest.fixture(scope="module")
def plan() -> Plan:
    return load_plan(ROOT, identify, EMULATED)


@pytest.fixture(scope="module")
def kernel(plan: Plan) -> TunedKernel:
    return tuned_kernel(plan, NAME)


def valid(kernel: TunedKernel) -> Iterator[dict[str, int]]:
    """The configurations that the restrictions let through, as Python evaluates them one after the other."""
    restrictions = [compile(text, "restriction", "eval") for text in kernel.restrictions]
    for values in itertools.product(*kernel.parameters.values()):
        chosen = dict(zip(kernel.parameters, values, strict=True))
        if all(eval(one, {"__builtins__": {}}, dict(chosen)) for one in restrictions):
            yield chosen


def texts(levels: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(levels.items()))


def test_the_restrictions_let_through_the_configurations_of_the_search(
    plan: Plan, kernel: TunedKernel
) -> None:
    points = list(Space.of(plan, NAME).points())
    wanted = {texts(point.levels) for point in points if not point.excluded}
    found = [texts(kernel.levels(values)) for values in valid(kernel)]
    assert 100 < len(wanted) < len(points)
    assert len(found) == len(wanted)
    assert set(found) == wanted


def test_each_is_launched_as_the_catalogue_says(plan: Plan, kernel: TunedKernel) -> None:
    space = Space.of(plan, NAME)
    operation = plan.operations[space.planned.operation]
    problem = plan.problems[space.planned.problem].values
    for values in valid(kernel):
        build = space.point(kernel.levels(values)).build
        assert build is not None
        (launch,) = plan_launches(
            operation.operation, operation.kernels[space.planned.kernel], build.levels, problem
        )
        divisors = [eval(text, {"__builtins__": {}}, dict(values)) for text in kernel.divisors]
        grid = [math.ceil(size / by) for size, by in zip(kernel.problem_size, divisors, strict=True)]
        assert launch.entry == kernel.entry
        assert launch.block == (values[BLOCK], 1, 1)
        assert launch.grid == (*grid, 1)
        assert launch.dynamic_shared == 0


def test_the_code_is_ours(plan: Plan, kernel: TunedKernel, tmp_path: Path) -> None:
    """kernel_tuner sets its parameters by #define before the source; the machine code is that of our own build."""
    space = Space.of(plan, NAME)
    folder = ROOT / plan.operations[space.planned.operation].folder
    values = list(valid(kernel))[-1]
    build = space.point(kernel.levels(values)).build
    assert build is not None
    toolchain = find_toolchain("nvrtc")
    ours = build_kernel(
        folder / build.source,
        arch="sm_86",
        toolchain=toolchain,
        defines={name: str(value) for name, value in build.defines.items()},
    )
    shutil.copytree(folder / "common", tmp_path / "common")
    defined = values | {"grid_size_x": 1, "grid_size_y": 1, "grid_size_z": 1, "kernel_tuner": 1}
    prefix = "".join(f"#define {name} {value}\n" for name, value in defined.items())
    source = tmp_path / "theirs.cu"
    source.write_text(f"{prefix}#line 1\n{(folder / kernel.source).read_text()}")
    theirs = build_kernel(source, arch="sm_86", toolchain=toolchain, options=kernel.options)
    assert ours.status == theirs.status == "ok"
    assert theirs.entries[kernel.entry].sass_sha256 == ours.entries[kernel.entry].sass_sha256


@pytest.mark.parametrize(
    ("search", "reason"),
    [
        ({"base": "12_double_buffered", "over": {"tile": ["narrow", "wide"]}}, r"over\.tile is a composite"),
        ({"base": "13_final", "over": {"MIN_BLOCKS": ["none", 1]}}, r"over\.MIN_BLOCKS has named levels"),
        ({"base": "12_double_buffered", "over": {"BK": [16, 32], "BN": [64, 128]}}, r"dynamic shared memory"),
    ],
)
def test_what_kernel_tuner_cannot_search_is_said(search: dict[str, object], reason: str) -> None:
    overrides = EMULATED | {"search": {"odd": {"question": "?", "at": "square_4096"} | search}}
    with pytest.raises(UserError, match=reason):
        tuned_kernel(load_plan(ROOT, identify, overrides), "odd")


def test_kernel_tuner_itself_finds_the_same_space(plan: Plan, kernel: TunedKernel) -> None:
    searchspace = pytest.importorskip("kernel_tuner.searchspace")
    util = pytest.importorskip("kernel_tuner.util")
    found = searchspace.Searchspace(dict(kernel.parameters), list(kernel.restrictions), 1024)
    listed = [dict(zip(kernel.parameters, values, strict=True)) for values in found.list]
    assert {tuple(sorted(values.items())) for values in listed} == {
        tuple(sorted(values.items())) for values in valid(kernel)
    }
    divisors = [[text] for text in kernel.divisors]
    names = [BLOCK, "block_size_y", "block_size_z"]
    for values in listed:
        block, grid = util.setup_block_and_grid(kernel.problem_size, (*divisors, None), values, names)
        assert block[0] == values[BLOCK]
        assert list(grid[:2]) == [
            math.ceil(size / eval(text, {"__builtins__": {}}, dict(values)))
            for size, text in zip(kernel.problem_size, kernel.divisors, strict=True)
        ]
