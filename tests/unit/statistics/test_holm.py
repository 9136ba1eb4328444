from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelab.statistics.holm import holm

p_values = st.lists(st.floats(0.0, 1.0), max_size=8)


def rejected_step_by_step(values: list[float], alpha: float) -> set[int]:
    """Holm's procedure as published: test the smallest at alpha / m, the next at alpha / (m - 1), ..."""
    rejected: set[int] = set()
    while len(rejected) < len(values):
        rest = {i: p for i, p in enumerate(values) if i not in rejected}
        smallest = min(rest, key=rest.__getitem__)
        if not len(rest) * rest[smallest] < alpha:
            break
        rejected.add(smallest)
    return rejected


@given(p_values, st.sampled_from([0.01, 0.05, 0.1, 0.3]))
def test_rejections_are_those_of_the_published_procedure(values, alpha):
    adjusted = holm(values)
    assert {i for i, p in enumerate(adjusted) if p < alpha} == rejected_step_by_step(values, alpha)


@given(p_values, st.data())
def test_order_does_not_matter(values, data):
    order = data.draw(st.permutations(range(len(values))))
    adjusted = holm(values)
    assert holm([values[i] for i in order]) == [adjusted[i] for i in order]


@given(p_values)
def test_adjusting_only_raises_and_keeps_the_ranking(values):
    adjusted = holm(values)
    assert all(p <= q <= 1.0 for p, q in zip(values, adjusted, strict=True))
    for p, q in zip(values, adjusted, strict=True):
        assert all(other >= q for value, other in zip(values, adjusted, strict=True) if value > p)


def test_known_values():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.02]) == [0.02]
    assert holm([]) == []


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan])
def test_what_is_no_p_value_is_refused(bad):
    with pytest.raises(ValueError, match="outside"):
        holm([0.5, bad])
