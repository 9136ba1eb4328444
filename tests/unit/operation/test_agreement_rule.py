"""The rule that says whether an output is right."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from kernelab.operation import compare as rule
from kernelab.operation.compare import POISON, compare, differing_bits, largest_difference
from kernelab.plan.catalogue import Tolerance

TOLERANCE = Tolerance(absolute=1e-3, relative=1e-2, frobenius=1e-5)


def product(m: int = 30, n: int = 20, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (m, 64)) @ rng.uniform(-1, 1, (64, n))


def poisoned(*shape: int) -> np.ndarray:
    return np.full(shape, POISON, np.uint32).view(np.float32)


def test_rounded_reference_is_right() -> None:
    reference = product()
    agreement = compare("C", reference.astype(np.float32), reference, TOLERANCE)
    assert agreement.correct
    assert agreement.note == ""
    assert agreement.rel_error is not None
    assert 0 < agreement.rel_error < 1e-7
    assert agreement.max_abs_error == np.abs(reference.astype(np.float32) - reference).max()


def test_one_wrong_element_is_named() -> None:
    reference = product()
    out = reference.astype(np.float32)
    out[7, 3] += 1
    agreement = compare("C", out, reference, TOLERANCE)
    assert not agreement.correct
    assert agreement.note.startswith("1 of 600 elements of C are wrong, the first at C[7, 3]: ")
    assert agreement.max_abs_error == pytest.approx(1, abs=1e-6)


def test_each_half_of_the_rule_is_needed() -> None:
    reference = product()
    # Three digits everywhere: inside the elementwise rule, outside Frobenius.
    agreement = compare("C", (reference * 1.001).astype(np.float32), reference, TOLERANCE)
    assert not agreement.correct
    assert "relative Frobenius error of C is 0.001" in agreement.note
    # One element off in a million: inside Frobenius, outside the elementwise rule.
    large = np.full(1_000_000, 100.0)
    out = large.astype(np.float32)
    out[999_999] += 1.1
    only_one = compare("C", out, large, Tolerance(absolute=1e-3, relative=1e-2, frobenius=1e-4))
    assert only_one.rel_error is not None
    assert only_one.rel_error < 1e-4
    assert "1 of 1000000 elements of C are wrong, the first at C[999999]" in only_one.note


def test_a_kernel_that_writes_nothing_is_wrong() -> None:
    reference = product()
    assert compare("C", poisoned(30, 20), reference, TOLERANCE).note == "the kernel wrote nothing to C"
    before = np.ones((30, 20), np.float32)
    assert compare("C", before.copy(), reference, TOLERANCE, before).note == "the kernel wrote nothing to C"


def test_an_unchanged_output_that_is_right_is_right() -> None:
    # alpha = 0, beta = 1: C stays what it was.
    before = product().astype(np.float32)
    assert compare("C", before.copy(), before.astype(np.float64), TOLERANCE, before).correct


def test_half_written_output_says_how_much_and_where() -> None:
    reference = product()
    out = poisoned(30, 20)
    out[:, :10] = reference[:, :10]
    agreement = compare("C", out, reference, TOLERANCE)
    assert agreement.note == "300 of 600 elements of C were never written, the first at C[0, 10]"
    assert agreement.rel_error is None


def test_nan_and_infinity_are_wrong_and_are_not_called_unwritten() -> None:
    reference = product()
    out = reference.astype(np.float32)
    out[2, 5], out[4, 0] = np.nan, np.inf
    agreement = compare("C", out, reference, TOLERANCE)
    assert agreement.note == "2 of 600 elements of C are NaN or infinite, the first at C[2, 5] (nan)"
    assert agreement.max_abs_error is not None


def test_zero_reference_is_held_to_the_root_mean_square() -> None:
    reference = np.zeros((8, 8))
    assert compare("C", np.zeros((8, 8), np.float32), reference, TOLERANCE).correct
    assert compare("C", np.full((8, 8), 9e-6, np.float32), reference, TOLERANCE).correct
    slightly = compare("C", np.full((8, 8), 1e-4, np.float32), reference, TOLERANCE)
    assert not slightly.correct
    assert slightly.rel_error == pytest.approx(1e-4)


def test_chunks_do_not_change_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    reference = product()
    out = (reference * (1 + 1e-6)).astype(np.float32)
    out[29, 19] = np.nan
    whole = compare("C", out, reference, TOLERANCE)
    monkeypatch.setattr(rule, "CHUNK", 7)
    parts = compare("C", out, reference, TOLERANCE)
    assert (
        parts.note == whole.note == "1 of 600 elements of C are NaN or infinite, the first at C[29, 19] (nan)"
    )
    assert parts.max_abs_error == whole.max_abs_error


@settings(max_examples=200)
@given(
    out=hnp.arrays(np.float32, st.integers(1, 40), elements=st.floats(-4, 4, width=32)),
    seed=st.integers(0, 2**32 - 1),
)
def test_agrees_with_the_rule_as_it_is_written_down(out: np.ndarray, seed: int) -> None:
    rng = np.random.default_rng(seed)
    reference = out.astype(np.float64) + rng.choice([0.0, 1e-7, 1e-3, 0.02], out.size) * rng.standard_normal(
        out.size
    )
    difference = np.abs(out - reference)
    norm = np.linalg.norm(reference)
    expected = bool((difference <= 1e-3 + 1e-2 * np.abs(reference)).all()) and (
        np.linalg.norm(difference) / norm < 1e-5 if norm else np.sqrt(np.mean(difference**2)) < 1e-5
    )
    assert compare("C", out, reference, TOLERANCE).correct == expected


def test_differences_between_two_outputs() -> None:
    a = np.array([1.0, -0.0, np.nan], np.float32)
    b = np.array([1.0, 0.0, np.nan], np.float32)
    assert differing_bits(a, b) == 1
    assert largest_difference(a, b) is None
    assert largest_difference(a[:2], np.array([1.5, 0], np.float32)) == 0.5
