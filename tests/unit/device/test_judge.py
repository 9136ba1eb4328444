"""The judging kernels on the emulated device against the rule on the host."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from kernelab.device.emulated import GlobalMemory, Launch, emulate, parse_ptx
from kernelab.device.judge import PTX, WORDS, tally_of
from kernelab.operation.compare import POISON, Agreement, agreement, compare
from kernelab.plan.catalogue import Tolerance

MODULE = parse_ptx(PTX.rstrip(b"\0").decode())
GRID, BLOCK = (3, 1, 1), (64, 1, 1)
TOLERANCES = st.sampled_from(
    [
        Tolerance(absolute=1e-3, relative=1e-2, frobenius=1e-5),
        Tolerance(absolute=0.5, relative=0.0, frobenius=1.0),
    ]
)
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 3e38, 1e-45], np.float32)


def on_the_card(
    out: np.ndarray, reference: np.ndarray, tolerance: Tolerance, before: np.ndarray | None
) -> Agreement:
    memory = GlobalMemory()
    arguments = [memory.allocate("out", out), memory.allocate("reference", reference)]
    arguments.append(0 if before is None else memory.allocate("before", before))
    arguments += [memory.allocate("tally", np.zeros(WORDS, np.uint64)), out.size]
    arguments += [tolerance.absolute, tolerance.relative]
    result = emulate(MODULE, Launch("judge", GRID, BLOCK, arguments), memory)
    assert result.hazards == []
    tally = tally_of(np.ascontiguousarray(memory.read("tally")).view(np.uint64))
    return agreement(
        "y",
        tally,
        out.shape,
        lambda index: (float(out.reshape(-1)[index]), float(reference.reshape(-1)[index])),
        tolerance,
        was_read=before is not None,
    )


def same(a: float | None, b: float | None) -> bool:
    return a == b if a is None or b is None else math.isclose(a, b, rel_tol=1e-12)


@st.composite
def outputs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """A reference, an output near it with some elements spoilt, and what was there before or None."""
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=2, min_side=1, max_side=23))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    reference = rng.uniform(-2, 2, shape) * draw(st.sampled_from([0.0, 1.0, 1e4]))
    out = (reference * (1 + draw(st.sampled_from([0.0, 1e-7, 1e-4, 0.02])))).astype(np.float32)
    flat = out.reshape(-1)
    for index in draw(st.lists(st.integers(0, flat.size - 1), max_size=4)):
        flat[index] = draw(st.sampled_from(list(SPECIAL)))
    for index in draw(st.lists(st.integers(0, flat.size - 1), max_size=4)):
        flat.view(np.uint32)[index] = POISON
    if draw(st.booleans()):
        flat.view(np.uint32)[:] = POISON
    before = None
    if draw(st.booleans()):
        before = rng.uniform(-1, 1, shape).astype(np.float32)
        kept = rng.random(shape) < draw(st.sampled_from([0.0, 0.3, 1.0]))
        out[kept] = before[kept]
    return out, reference, before


@settings(max_examples=60)
@given(outputs(), TOLERANCES)
def test_the_card_says_what_the_host_says(
    case: tuple[np.ndarray, np.ndarray, np.ndarray | None], tolerance: Tolerance
) -> None:
    out, reference, before = case
    host = compare("y", out, reference, tolerance, before)
    card = on_the_card(out, reference, tolerance, before)
    assert (card.correct, card.note) == (host.correct, host.note)
    assert same(card.max_abs_error, host.max_abs_error)
    assert same(card.rel_error, host.rel_error)


@settings(max_examples=40)
@given(st.floats(-1e3, 1e3), st.integers(-2, 2))
@example(0.1, 0)
def test_at_the_very_bound_both_round_alike(wanted: float, ulps: int) -> None:
    tolerance = Tolerance(absolute=1e-3, relative=1e-2, frobenius=1e30)
    reference = np.full(70, wanted)
    edge = np.float32(wanted + (tolerance.absolute + tolerance.relative * abs(wanted)))
    for _ in range(abs(ulps)):
        edge = np.nextafter(edge, np.float32(np.inf if ulps > 0 else -np.inf))
    out = np.full(70, edge, np.float32)
    host, card = compare("y", out, reference, tolerance), on_the_card(out, reference, tolerance, None)
    assert (card.correct, card.note) == (host.correct, host.note)


def test_an_error_of_exactly_the_bound_is_right() -> None:
    tolerance = Tolerance(absolute=0.5, relative=0.25, frobenius=10.0)
    card = on_the_card(np.full(70, 3, np.float32), np.full(70, 2.0), tolerance, None)
    assert card.correct
    assert card.max_abs_error == 1.0


def test_the_bound_is_rounded_twice_as_the_host_rounds_it() -> None:
    """Of an output of zeros the error is the reference itself: near absolute / (1 - relative) the last bit decides."""
    tolerance = Tolerance(absolute=1e-2, relative=0.99, frobenius=10.0)
    absolute, relative = Fraction(tolerance.absolute), Fraction(tolerance.relative)
    wanted, found = tolerance.absolute / (1 - tolerance.relative), []
    for _ in range(200):
        wanted = math.nextafter(wanted, 0.0)
    for _ in range(400):
        wanted = math.nextafter(wanted, 9.0)
        twice = tolerance.absolute + tolerance.relative * wanted
        if (wanted > twice) != (wanted > float(absolute + relative * Fraction(wanted))):
            found.append(wanted)
    assert found, "no reference here tells one rounding from two"
    for wanted in found:
        out, reference = np.zeros(8, np.float32), np.full(8, wanted)
        host, card = compare("y", out, reference, tolerance), on_the_card(out, reference, tolerance, None)
        assert (card.correct, card.note) == (host.correct, host.note)


@settings(max_examples=25)
@given(hnp.arrays(np.uint32, st.integers(1, 700), elements=st.integers(0, 3)), st.integers(0, 2**32 - 1))
def test_differing_words_are_counted(a: np.ndarray, seed: int) -> None:
    b = a.copy()
    rng = np.random.default_rng(seed)
    spoilt = rng.random(a.shape) < rng.choice([0.0, 0.01, 0.5])
    b[spoilt] ^= 0x80
    memory = GlobalMemory()
    arguments = [memory.allocate("a", a), memory.allocate("b", b)]
    arguments += [memory.allocate("tally", np.zeros(WORDS, np.uint64)), a.size]
    assert emulate(MODULE, Launch("differing", GRID, BLOCK, arguments), memory).hazards == []
    count, inverse = (int(word) for word in np.ascontiguousarray(memory.read("tally")).view(np.uint64)[:2])
    assert count == np.count_nonzero(a != b)
    if count:
        assert 2**64 - 1 - inverse == np.flatnonzero(a != b)[0]
