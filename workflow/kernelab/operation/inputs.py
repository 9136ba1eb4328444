"""Inputs and reference of a problem: seeded, the same bytes for every arm, and a float64 result to compare with."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelab.errors import UserError
from kernelab.operation.launches import LaunchRefused, array_buffers, is_read
from kernelab.operation.loader import LoadedOperation, blame
from kernelab.plan.expression import Number

LARGEST_INTEGER = 3  # |a b| <= 9: a dot product is exact in float32 up to 2**24 / 9 = 1.8 million terms


def make_inputs(
    loaded: LoadedOperation, problem: Mapping[str, Number], data: str, seed: int
) -> dict[str, NDArray[np.float32]]:
    """Every array that the operation reads at a problem, float32, C order, read-only.

    An output that is not read is absent. Each array has a random stream of its own, from the seed and its
    name, so that the same arguments give the same bytes whatever else changes.

    Args:
        loaded: the operation.
        problem: the values of its variables.
        data: `uniform` in [-1, 1) (or operation.py's own inputs), `normal` (mean 0, variance 1), or `integers`
            from -3 to 3, with which a sum of products is exact.
        seed: of the random streams.

    Raises:
        UserError: operation.py's inputs raise, or have the wrong names or shapes, or only come as `uniform`.
    """
    operation = loaded.operation
    try:
        buffers = array_buffers(operation, problem)
    except LaunchRefused as error:
        raise UserError(f"{loaded.file}: {error}") from None
    read = [name for name in buffers if is_read(operation, name, problem)]
    if loaded.make_inputs is None:
        made: Mapping[str, Any] = {
            name: _draw(data, _generator(seed, name), buffers[name].shape) for name in read
        }
    elif data != "uniform":
        raise UserError(
            f"{loaded.file}: makes its own inputs, so data: {data} cannot be had; drop the variable data or `inputs`"
        )
    else:
        made = _own_inputs(loaded, problem, seed)
    arrays = {}
    for name in read:
        if name not in made:
            raise UserError(
                f"{loaded.file}: inputs made no {name}, which the operation reads at this problem"
            )
        array = np.ascontiguousarray(made[name], np.float32)
        if array.shape != buffers[name].shape:
            raise UserError(
                f"{loaded.file}: inputs made {name} of shape {array.shape}; the catalogue says {buffers[name].shape}"
            )
        array.flags.writeable = False
        arrays[name] = array
    return arrays


def make_reference(
    loaded: LoadedOperation, problem: Mapping[str, Number], inputs: Mapping[str, NDArray[np.float32]]
) -> dict[str, NDArray[np.float64]]:
    """The float64 result of operation.py, by output.

    Raises:
        UserError: it raises, lacks an output, has the wrong shape or less than float64, or holds NaN or infinity:
            nothing could be judged by it.
    """
    operation = loaded.operation
    try:
        result = dict(loaded.reference(dict(problem), dict(inputs)))
    except MemoryError:
        raise
    except Exception as error:
        absent = sorted(set(operation.arrays) - set(inputs))
        hint = (
            f" ({', '.join(absent)} is absent where it is not read)"
            if isinstance(error, KeyError) and absent
            else ""
        )
        raise UserError(f"{loaded.file}: reference raised at {blame(error, loaded.file)}{hint}") from None
    outputs = {}
    for name, buffer in array_buffers(operation, problem).items():
        if operation.arrays[name].role != "output":
            continue
        if name not in result:
            raise UserError(f"{loaded.file}: reference returned no {name}")
        array = np.asarray(result[name])
        if array.shape != buffer.shape:
            raise UserError(
                f"{loaded.file}: reference returned {name} of shape {array.shape}; the catalogue says {buffer.shape}"
            )
        if array.dtype != np.float64:
            raise UserError(
                f"{loaded.file}: reference returned {name} as {array.dtype}; it must compute in float64"
            )
        if not np.isfinite(array).all():
            bad = int(array.size - np.count_nonzero(np.isfinite(array)))
            raise UserError(
                f"{loaded.file}: reference returned {name} with {bad} NaN or infinite elements; nothing can be judged by it"
            )
        outputs[name] = array
    return outputs


def _own_inputs(loaded: LoadedOperation, problem: Mapping[str, Number], seed: int) -> Mapping[str, Any]:
    assert loaded.make_inputs is not None
    try:
        return dict(loaded.make_inputs(dict(problem), _generator(seed, "inputs")))
    except MemoryError:
        raise
    except Exception as error:
        raise UserError(f"{loaded.file}: inputs raised at {blame(error, loaded.file)}") from None


def _generator(seed: int, name: str) -> np.random.Generator:
    digest = hashlib.sha256(name.encode()).digest()
    return np.random.default_rng(np.random.SeedSequence([seed, int.from_bytes(digest[:8], "little")]))


def _draw(data: str, rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
    if data == "uniform":
        drawn = rng.random(shape, dtype=np.float32)
        # In place, and exact: multiples of 2**-24 become multiples of 2**-23 in [-1, 1).
        drawn *= 2
        drawn -= 1
        return drawn
    if data == "normal":
        return rng.standard_normal(shape, dtype=np.float32)
    if data == "integers":
        return rng.integers(-LARGEST_INTEGER, LARGEST_INTEGER, shape, dtype=np.int8, endpoint=True).astype(
            np.float32
        )
    raise UserError(f"data: {data} is not a distribution (known: uniform, normal, integers)")
