"""Launch configurations, buffers and programs from a catalogue."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from axpby import OPERATION, make_kernel
from hypothesis import given
from hypothesis import strategies as st

from kernelab.errors import UserError
from kernelab.operation.launches import (
    MAX_GRID,
    Buffer,
    LaunchConfig,
    LaunchRefused,
    array_buffers,
    is_read,
    plan_launches,
    workspace_buffers,
)
from kernelab.operation.program import make_program
from kernelab.plan.catalogue import Operation

LEVELS = {"BLOCK": "64"}
PROBLEM = {"n": 256, "alpha": 1.5, "beta": 0.0}


def test_launch_whose_when_holds(operation: Operation) -> None:
    (launch,) = plan_launches(operation, make_kernel(), LEVELS, PROBLEM)
    assert launch == LaunchConfig("whole", (2, 1, 1), (64, 1, 1), 0, ("n", "alpha", "x", "beta", "y"))


def test_other_launch_fills_missing_dimensions_with_one(operation: Operation) -> None:
    (launch,) = plan_launches(operation, make_kernel(), LEVELS, {**PROBLEM, "n": 257})
    assert (launch.entry, launch.grid, launch.block) == ("ragged", (3, 2, 1), (64, 2, 1))


def test_every_launch_that_holds_in_order(operation: Operation) -> None:
    launches = [{"entry": entry, "grid": 1, "block": 32} for entry in ("first", "second", "third")]
    launches[1]["when"] = "beta != 0"
    kernel = make_kernel(launches=launches)
    assert [c.entry for c in plan_launches(operation, kernel, LEVELS, PROBLEM)] == ["first", "third"]
    with_beta = {**PROBLEM, "beta": 2.0}
    assert [c.entry for c in plan_launches(operation, kernel, LEVELS, with_beta)] == [
        "first",
        "second",
        "third",
    ]


def test_own_arguments_and_none_at_all(operation: Operation) -> None:
    launches = [
        {"entry": "a", "grid": 1, "block": 32, "arguments": ["n", "W", "epoch"], "dynamic_shared": "4*n"},
        {"entry": "b", "grid": 1, "block": 32, "arguments": []},
    ]
    kernel = make_kernel(
        launches=launches, workspaces={"W": {"shape": ["n", "SPAN"], "dtype": "uint32", "fill": "zero"}}
    )
    first, second = plan_launches(operation, kernel, LEVELS, PROBLEM)
    assert (first.arguments, first.dynamic_shared, second.arguments) == (("n", "W", "epoch"), 1024, ())
    assert workspace_buffers(kernel, {**PROBLEM, "SPAN": 128}) == {"W": Buffer((256, 128), "uint32", True)}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"when": "n < 0"}, "no launch applies to n=256, alpha=1.5, beta=0.0"),
        ({"grid": "n - 256"}, "grid.x is 0"),
        ({"grid": [1, "n*257"]}, "grid.y is 65792"),
        ({"grid": "2**31"}, "grid.x is 2147483648"),
        ({"grid": "n / 3"}, "not a whole number"),
        ({"grid": "n // (n - 256)"}, "cannot be evaluated"),
        ({"block": "1025"}, "block.x is 1025"),
        ({"block": ["32", "64"]}, "a block of 2048 threads"),
        ({"block": [1, 1, 65]}, "block.z is 65"),
        ({"dynamic_shared": "-4"}, "dynamic_shared is -4"),
    ],
)
def test_what_cuda_would_refuse_is_refused_with_the_reason(
    operation: Operation, change: dict[str, object], reason: str
) -> None:
    kernel = make_kernel(launches=[{"entry": "e", "grid": 1, "block": 32, **change}])
    with pytest.raises(LaunchRefused) as refused:
        plan_launches(operation, kernel, LEVELS, PROBLEM)
    assert reason in str(refused.value)


@given(n=st.integers(1, 2**31 - 1), block=st.integers(1, 512))
def test_grids_cover_the_problem_and_stay_within_limits(n: int, block: int) -> None:
    operation = Operation.model_validate(OPERATION)
    (launch,) = plan_launches(operation, make_kernel(), {"BLOCK": str(block)}, {**PROBLEM, "n": n})
    span = 2 * block
    assert 0 <= launch.grid[0] * span - n < span
    assert all(1 <= size <= limit for size, limit in zip(launch.grid, MAX_GRID, strict=True))


def test_arrays_and_what_is_read(operation: Operation) -> None:
    assert array_buffers(operation, PROBLEM) == {"x": Buffer((256,)), "y": Buffer((256,))}
    assert is_read(operation, "x", PROBLEM)
    assert not is_read(operation, "y", PROBLEM)
    assert is_read(operation, "y", {**PROBLEM, "beta": -0.5})


def test_program_types_its_scalars_and_finds_its_hook(operation: Operation, tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(
        "def prepare_it(values, arrays, workspaces, device):\n    return {'D': values['SPAN']}\n"
    )
    kernel = make_kernel(prepare="prepare_it")
    program = make_program(operation, kernel, LEVELS, PROBLEM, tmp_path)
    assert program.scalars == {"n": np.int32(256), "alpha": np.float32(1.5), "beta": np.float32(0)}
    assert [type(value) for value in program.scalars.values()] == [np.int32, np.float32, np.float32]
    assert program.values == {**PROBLEM, "BLOCK": 64, "SPAN": 128}
    assert program.prepare is not None
    assert program.prepare(program.values, {}, {}, None) == {"D": 128}


def test_missing_hook_names_file_and_function(operation: Operation, tmp_path: Path) -> None:
    kernel = make_kernel(prepare="prepare_it")
    with pytest.raises(UserError, match=r"k\.py: does not exist"):
        make_program(operation, kernel, LEVELS, PROBLEM, tmp_path)
    (tmp_path / "k.py").write_text("")
    with pytest.raises(UserError, match=r"k\.py: has no function prepare_it"):
        make_program(operation, kernel, LEVELS, PROBLEM, tmp_path)
