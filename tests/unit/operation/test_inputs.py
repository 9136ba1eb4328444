"""operation.py loaded by path, inputs and references."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pytest
from axpby import REFERENCE, Folder

from kernelab.errors import UserError
from kernelab.operation.inputs import LARGEST_INTEGER, make_inputs, make_reference

PROBLEM = {"n": 1000, "alpha": 2.0, "beta": 0.0}
READ = {**PROBLEM, "beta": 1.0}


def failing(folder: Folder, problem: dict[str, float] = PROBLEM, data: str = "uniform") -> str:
    def judge() -> None:
        loaded = folder.load()
        make_reference(loaded, problem, make_inputs(loaded, problem, data, 1))

    message = _message(judge)
    assert message.startswith("kernels/axpby/operation.py: ")
    assert "\n" not in message
    return message


def test_same_arguments_give_the_same_bytes(folder: Folder) -> None:
    loaded = folder.load()
    first, second = (make_inputs(loaded, READ, "uniform", 7) for _ in range(2))
    assert {name: array.tobytes() for name, array in first.items()} == {
        n: a.tobytes() for n, a in second.items()
    }
    other = make_inputs(loaded, READ, "uniform", 8)
    assert (first["x"] != other["x"]).mean() > 0.99
    assert (first["x"] != first["y"]).mean() > 0.99


def test_an_array_does_not_depend_on_what_else_is_read(folder: Folder) -> None:
    loaded = folder.load()
    without = make_inputs(loaded, PROBLEM, "uniform", 7)
    assert set(without) == {"x"}
    assert without["x"].tobytes() == make_inputs(loaded, READ, "uniform", 7)["x"].tobytes()


def test_distributions(folder: Folder) -> None:
    loaded = folder.load()
    problem = {**PROBLEM, "n": 100_000}
    uniform, normal, integers = (
        make_inputs(loaded, problem, data, 3)["x"] for data in ("uniform", "normal", "integers")
    )
    assert uniform.min() >= -1
    assert uniform.max() < 1
    assert abs(uniform.mean()) < 0.01
    assert abs(uniform.var() - 1 / 3) < 0.01
    assert abs(normal.mean()) < 0.02
    assert abs(normal.var() - 1) < 0.02
    assert set(np.unique(integers)) == set(range(-LARGEST_INTEGER, LARGEST_INTEGER + 1))
    for array in (uniform, normal, integers):
        assert array.dtype == np.float32
        assert array.flags.c_contiguous
        assert not array.flags.writeable
    assert "wibble is not a distribution" in _message(lambda: make_inputs(loaded, problem, "wibble", 3))


def test_own_inputs_are_seeded_and_checked(folder: Folder) -> None:
    folder.write(REFERENCE + "def inputs(problem, rng):\n    return {'x': rng.random(problem['n']) + 5}\n")
    first, second = (make_inputs(folder.load(), PROBLEM, "uniform", 4)["x"] for _ in range(2))
    assert first.min() >= 5
    assert first.dtype == np.float32
    assert first.tobytes() == second.tobytes()
    assert "makes its own inputs" in failing(folder, data="normal")
    folder.write(REFERENCE + "def inputs(problem, rng):\n    return {'x': rng.random(3)}\n")
    assert "inputs made x of shape (3,); the catalogue says (1000,)" in failing(folder)
    folder.write(REFERENCE + "def inputs(problem, rng):\n    return {}\n")
    assert "inputs made no x" in failing(folder)
    folder.write(REFERENCE + "def inputs(problem, rng):\n    return 1 / 0\n")
    assert "inputs raised at line 9: ZeroDivisionError" in failing(folder)


def test_reference_is_float64_of_every_output(folder: Folder) -> None:
    loaded = folder.load()
    inputs = make_inputs(loaded, READ, "uniform", 5)
    reference = make_reference(loaded, READ, inputs)["y"]
    assert reference.dtype == np.float64
    np.testing.assert_array_equal(reference, 2.0 * inputs["x"].astype(np.float64) + inputs["y"])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x = 1\n", "has no function reference"),
        ("reference = 3\n", "has no function reference"),
        ("def reference(\n", "line 1: SyntaxError"),
        (
            "import no_such_module_here\n",
            "line 1: ModuleNotFoundError: No module named 'no_such_module_here'",
        ),
        ("def f():\n    raise OSError('a\\nb')\n\nf()\n", "line 2: OSError: a b"),
        ("inputs = 1\ndef reference(p, a):\n    return {}\n", "inputs must be a function"),
        ("def reference(p, a):\n    return {}\n", "reference returned no y"),
        ("def reference(p, a):\n    return {'y': a['x']}\n", "it must compute in float64"),
        ("def reference(p, a):\n    return {'y': a['x'][:2].astype(float)}\n", "of shape (2,)"),
        (
            "def reference(p, a):\n    return {'y': a['x'].astype(float) * float('nan')}\n",
            "1000 NaN or infinite",
        ),
        (
            "def reference(p, a):\n    y = a['x'].astype(float)\n    y[3] = float('inf')\n    return {'y': y}\n",
            "1 NaN or",
        ),
        (
            "def reference(p, a):\n    return {'y': a['y']}\n",
            "KeyError: 'y' (y is absent where it is not read)",
        ),
        ("def reference(p, a):\n    a['x'][0] = 1\n", "read-only"),
        ("def reference(p, a):\n    return 3\n", "reference raised at"),
    ],
)
def test_a_broken_operation_is_one_line_with_the_reason(folder: Folder, text: str, reason: str) -> None:
    folder.write(text)
    assert reason in failing(folder)


def test_missing_operation_file(folder: Folder) -> None:
    (folder.path / "operation.py").unlink()
    assert "does not exist" in failing(folder)


def test_loading_leaves_nothing_beside_the_file(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    folder.load()
    assert [path.name for path in folder.path.iterdir()] == ["operation.py"]
    assert not sys.dont_write_bytecode


def test_library_function_must_exist(folder: Folder) -> None:
    loaded = folder.load()
    assert "has no function cublas" in _message(lambda: loaded.library("cublas"))


def _message(act: Callable[[], object]) -> str:
    with pytest.raises(UserError) as error:
        act()
    return str(error.value)
