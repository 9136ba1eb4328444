"""The rule that says whether an output is right, and what is wrong with it when it is not.

Right means |out - ref| <= absolute + relative * |ref| everywhere (the test of the worklog that the ladder starts from), and a
relative Frobenius error ||out - ref|| / ||ref|| below `frobenius`, with ref in float64. The first rule alone would pass a
result of three digits; the second alone would pass one wrong element among millions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelab.plan.catalogue import Tolerance

POISON_BYTE = 0xFF
POISON = np.uint32(0xFFFFFFFF)  # a quiet NaN that no arithmetic makes: the GPU's own NaN is 0x7FFFFFFF
CHUNK = 1 << 20  # elements judged at a time, so that float64 temporaries stay small


@dataclass(frozen=True)
class Agreement:
    """How an output agrees with its reference.

    `max_abs_error` is over the elements that are numbers, `rel_error` the relative Frobenius error; either is None where
    it is not a finite number. `note` is one line when it is wrong, and empty when it is right.
    """

    correct: bool
    max_abs_error: float | None
    rel_error: float | None
    note: str = ""


@dataclass
class Tally:
    """What is counted over the elements of one output, by whoever counts: here, or a kernel on the card.

    unwritten, unchanged   elements that still hold the poison, or (where it is read) what was there before the launch
    not_finite, outside    NaN or infinity; outside the bound (every one that is not finite is)
    first_...              the lowest index of its kind, -1 where there is none; of `not_finite`, unwritten ones apart
    largest                absolute error of the finite elements
    squares                sum of the squared errors of the finite elements
    reference_squares      sum of the squared reference
    """

    unwritten: int = 0
    unchanged: int = 0
    not_finite: int = 0
    outside: int = 0
    first_unwritten: int = -1
    first_not_finite: int = -1
    first_outside: int = -1
    largest: float = 0.0
    squares: float = 0.0
    reference_squares: float = 0.0


def compare(
    name: str,
    out: NDArray[np.float32],
    reference: NDArray[np.float64],
    tolerance: Tolerance,
    before: NDArray[np.float32] | None = None,
) -> Agreement:
    """Judge one output.

    Args:
        name: of the output, for the note.
        out: what the kernel left, float32.
        reference: the float64 result, of the same shape, finite.
        tolerance: the operation's.
        before: what the output held before the launch; None means that every byte was poison (0xFF).
    """
    flat, expected = out.reshape(-1), reference.reshape(-1)
    start = None if before is None else before.reshape(-1)
    tally = Tally()
    for low in range(0, flat.size, CHUNK):
        part = slice(low, low + CHUNK)
        _count(tally, low, flat[part], expected[part], tolerance, None if start is None else start[part])

    def values(index: int) -> tuple[float, float]:
        return float(flat[index]), float(expected[index])

    return agreement(name, tally, out.shape, values, tolerance, was_read=before is not None)


def agreement(
    name: str,
    tally: Tally,
    shape: Sequence[int],
    values: Callable[[int], tuple[float, float]],
    tolerance: Tolerance,
    *,
    was_read: bool,
) -> Agreement:
    """The rule, applied to what was counted.

    Args:
        name: of the output, for the note.
        tally: over all of its elements.
        shape: of the output.
        values: what an element (by its index in C order) is, and what it should be; asked only where it is wrong.
        tolerance: the operation's.
        was_read: the output held initial values before the launch, not poison.
    """
    rel_error = _relative(tally, math.prod(shape))
    complaint = _complaint(name, tally, shape, values, was_read, rel_error, tolerance)
    return Agreement(
        correct=not complaint,
        max_abs_error=tally.largest if math.isfinite(tally.largest) else None,
        rel_error=rel_error if math.isfinite(rel_error) and not tally.not_finite else None,
        note=complaint,
    )


def largest_difference(a: NDArray[np.float32], b: NDArray[np.float32]) -> float | None:
    """The largest |a - b| of two float32 arrays; None where either holds NaN or infinity."""
    largest = 0.0
    for low in range(0, a.size, CHUNK):
        part = slice(low, low + CHUNK)
        difference = np.abs(a.reshape(-1)[part].astype(np.float64) - b.reshape(-1)[part])
        largest = max(largest, float(difference.max(initial=0.0)))
        if not math.isfinite(largest) or np.isnan(difference).any():
            return None
    return largest


def differing_bits(a: NDArray[Any], b: NDArray[Any]) -> int:
    """How many elements of two arrays of the same shape and dtype differ in any bit."""
    word = np.dtype(f"u{a.dtype.itemsize}")
    return int(np.count_nonzero(a.reshape(-1).view(word) != b.reshape(-1).view(word)))


def _count(
    tally: Tally,
    low: int,
    out: NDArray[np.float32],
    reference: NDArray[np.float64],
    tolerance: Tolerance,
    before: NDArray[np.float32] | None,
) -> None:
    bits = out.view(np.uint32)
    unwritten = bits == POISON
    if unwritten.any():
        tally.unwritten += int(np.count_nonzero(unwritten))
        tally.first_unwritten = _first(tally.first_unwritten, low, unwritten)
    if before is not None:
        tally.unchanged += int(np.count_nonzero(bits == before.view(np.uint32)))
    finite = np.isfinite(out)
    whole = bool(finite.all())
    if not whole:
        tally.not_finite += int(np.count_nonzero(~finite))
        tally.first_not_finite = _first(tally.first_not_finite, low, ~finite & ~unwritten)
    error = np.abs(np.where(finite, out, 0).astype(np.float64) - reference)
    if not whole:
        error = error[finite]
    magnitude = np.abs(reference)
    bound = tolerance.absolute + tolerance.relative * magnitude
    outside = ~finite
    outside[finite] = error > (bound if whole else bound[finite])
    if outside.any():
        tally.outside += int(np.count_nonzero(outside))
        tally.first_outside = _first(tally.first_outside, low, outside)
    tally.largest = max(tally.largest, float(error.max(initial=0.0)))
    tally.squares += float(np.dot(error, error))
    tally.reference_squares += float(np.dot(magnitude, magnitude))


def _first(known: int, low: int, mask: NDArray[np.bool_]) -> int:
    if known >= 0 or not mask.any():
        return known
    return low + int(np.argmax(mask))


def _relative(tally: Tally, size: int) -> float:
    """The relative Frobenius error; against a reference of zeros, the root mean square error itself."""
    if tally.reference_squares == 0.0:
        return math.sqrt(tally.squares / size) if size else 0.0
    return math.sqrt(tally.squares / tally.reference_squares)


def _complaint(
    name: str,
    tally: Tally,
    shape: Sequence[int],
    values: Callable[[int], tuple[float, float]],
    was_read: bool,
    rel_error: float,
    tolerance: Tolerance,
) -> str:
    size = math.prod(shape)
    if tally.unwritten == size or (was_read and tally.unchanged == size and tally.outside):
        return f"the kernel wrote nothing to {name}"
    if tally.unwritten:
        where = _at(name, tally.first_unwritten, shape)
        return f"{tally.unwritten} of {size} elements of {name} were never written, the first at {where}"
    if tally.not_finite:
        where = _at(name, tally.first_not_finite, shape)
        value, _ = values(tally.first_not_finite)
        return f"{tally.not_finite} of {size} elements of {name} are NaN or infinite, the first at {where} ({value:g})"
    if tally.outside:
        got, wanted = values(tally.first_outside)
        return (
            f"{tally.outside} of {size} elements of {name} are wrong, the first at "
            f"{_at(name, tally.first_outside, shape)}: {got:.9g} in place of {wanted:.9g}"
        )
    if not rel_error < tolerance.frobenius:
        return f"the relative Frobenius error of {name} is {rel_error:.3g}; the operation allows {tolerance.frobenius:g}"
    return ""


def _at(name: str, index: int, shape: Sequence[int]) -> str:
    return f"{name}[{', '.join(str(int(i)) for i in np.unravel_index(index, tuple(shape)))}]"
