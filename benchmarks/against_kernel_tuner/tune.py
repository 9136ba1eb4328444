"""kernel_tuner on one search, in a process of its own: brute force over its CuPy backend, every result checked.

    python -m against_kernel_tuner.tune SEARCH OUT.json

Run in a project's folder. OUT.json gets the wall time of `tune_kernel`, its own account of the phases, and every configuration.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from against_kernel_tuner.space import BLOCK, TunedKernel, tuned_kernel
from kernelab.device.identify import identify, list_gpus
from kernelab.errors import UserError
from kernelab.operation.inputs import make_inputs, make_reference
from kernelab.operation.loader import load_operation
from kernelab.plan.arms import Plan
from kernelab.plan.load import load_plan

PHASES = {
    "compile": "total_compile_time",
    "verify": "total_verification_time",
    "benchmark": "total_benchmark_time",
    "framework": "total_framework_time",
    "start": "overhead_time",  # the device, the space, and the first configuration once more, as a warm-up
}


def arguments_of(plan: Plan, name: str) -> tuple[list[Any], list[Any]]:
    """The arguments of a launch, and what they must hold after it: None for all but the outputs.

    An output starts as zeros: one that is read whatever beta is must be finite.
    """
    planned = plan.searches[name]
    operation = plan.operations[planned.operation]
    loaded = load_operation(Path(operation.folder), operation.operation)
    values = plan.problems[planned.problem].values
    inputs = make_inputs(loaded, values, "uniform", plan.check.seed)
    reference = make_reference(loaded, values, inputs)
    types: dict[str, Any] = {"int": np.int32, "float": np.float32}
    arguments: list[Any] = []
    answer: list[Any] = []
    for argument in operation.operation.arguments:
        expected = reference.get(argument)
        if argument in operation.operation.arrays:
            array = inputs.get(argument)
            arguments.append(
                np.array(array) if array is not None else np.zeros(reference[argument].shape, np.float32)
            )
            answer.append(None if expected is None else expected.astype(np.float32))
        else:
            arguments.append(types[operation.operation.problem[argument]](values[argument]))
            answer.append(None)
    return arguments, answer


def tune(plan: Plan, name: str) -> dict[str, Any]:
    """Run kernel_tuner; its result as JSON. Inputs and reference are made before the clock starts."""
    tuner = importlib.import_module("kernel_tuner")
    kernel = tuned_kernel(plan, name)
    operation = plan.operations[plan.searches[name].operation]
    arguments, answer = arguments_of(plan, name)
    folder = Path(operation.folder).resolve()
    start = time.perf_counter()
    results, environment = tuner.tune_kernel(
        kernel.entry,
        (folder / kernel.source).read_text(encoding="utf-8"),
        kernel.problem_size,
        arguments,
        dict(kernel.parameters),
        restrictions=list(kernel.restrictions),
        answer=answer,
        atol=operation.operation.tolerance.absolute,
        lang="CUPY",
        device=cuda_index(plan),
        compiler_options=["-std=c++17", f"-I{folder}", *kernel.options],
        block_size_names=[BLOCK],
        **{f"grid_div_{axis}": [text] for axis, text in zip("xyz", kernel.divisors, strict=False)},
    )
    wall = time.perf_counter() - start
    return {
        "version": tuner.__version__,
        "wall_s": wall,
        "phases_s": {phase: environment.get(key, 0.0) / 1e3 for phase, key in PHASES.items()},
        "configurations": [_configuration(kernel, result) for result in results],
    }


def cuda_index(plan: Plan) -> int:
    """The plan's card by the index that CUDA gives it.

    Raises:
        UserError: CUDA does not see it.
    """
    for gpu in list_gpus():
        if gpu.uuid == plan.device.uuid:
            return gpu.index
    raise UserError(f"{plan.device.name}: is not visible to CUDA; this times kernels on a GPU")


def _configuration(kernel: TunedKernel, result: dict[str, Any]) -> dict[str, Any]:
    failed = "__error__" in result
    return {
        "levels": kernel.levels(result),
        "time_ms": None if failed else float(result["time"]),
        "compile_s": result["compile_time"] / 1e3,
        "error": type(result["__error__"]).__name__ if failed else "",
    }


def main() -> int:
    """The command."""
    name, out = sys.argv[1], Path(sys.argv[2])
    try:
        found = tune(load_plan(Path(), identify), name)
    except ImportError as error:
        print(f"{error}: the comparison needs pip install kernel_tuner==1.5.0", file=sys.stderr)
        return 1
    except UserError as error:
        print(error, file=sys.stderr)
        return 1
    out.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
