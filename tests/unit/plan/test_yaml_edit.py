"""An entry is added to YAML text: the data gain just it, the text loses nothing."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelab.errors import UserError
from kernelab.plan.strict_yaml import parse, read
from kernelab.plan.yaml_edit import inserted

ROOT = Path(__file__).parents[3]
CATALOGUE = ROOT / "kernels" / "sgemm" / "kernels.yaml"
CASES = {
    "block": ("a:\n  b: 1\nc: 2\n", "a:\n  b: 1\n  new: 3\nc: 2\n"),
    "comment behind": (
        "a:\n  b: 1  # why\n  # of c\nc: 2\n",
        "a:\n  b: 1  # why\n  new: 3\n  # of c\nc: 2\n",
    ),
    "end of file": ("a:\n  b: 1", "a:\n  b: 1\n  new: 3"),
    "nested last": ("a:\n  b:\n    c: [1,\n      2]\n", "a:\n  b:\n    c: [1,\n      2]\n  new: 3\n"),
    "block scalar": ("a:\n  b: |\n    text\n\nc: 2\n", "a:\n  b: |\n    text\n  new: 3\n\nc: 2\n"),
    "empty last value": ("a:\n  b:\nc: 2\n", "a:\n  b:\n  new: 3\nc: 2\n"),
    "alias last": ("x: &x {y: 1}\na:\n  b: *x\nc: 2\n", "x: &x {y: 1}\na:\n  b: *x\n  new: 3\nc: 2\n"),
    "flow": ("a: {b: 1}\nc: 2\n", "a: {b: 1, new: 3}\nc: 2\n"),
    "flow empty": ("a: {}\n", "a: {new: 3}\n"),
    "flow comma": ("a: {b: 1,}\n", "a: {b: 1, new: 3}\n"),
    "flow alias": ("x: &x 1\na: { b: *x }  # y\n", "x: &x 1\na: { b: *x, new: 3 }  # y\n"),
    "flow comment": ("a: {b: 1 # one\n  }\n", "a: {b: 1, new: 3 # one\n  }\n"),
    "quoted braces": ("a: {b: '}', c: \"{\"}\n", "a: {b: '}', c: \"{\", new: 3}\n"),
    "wide characters": ("é: 'ü𝄞'\na: {b: 𝄞}\n", "é: 'ü𝄞'\na: {b: 𝄞, new: 3}\n"),
}


@pytest.mark.parametrize("case", CASES)
def test_where_it_goes(case: str) -> None:
    before, after = CASES[case]
    assert inserted(before, "f", ("a",), "new", "3") == after


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("none", "none"),
        ("true", "true"),
        ("-1", '"-1"'),
        ("010", '"010"'),
        ("null", '"null"'),
        ("a: b", '"a: b"'),
        ("1.0", "1.0"),
    ],
)
def test_a_level_is_read_back_as_it_was_spelt(value: str, written: str) -> None:
    assert inserted("a: {}\n", "f", ("a",), "k", value) == f"a: {{k: {written}}}\n"


def test_a_nested_value_gets_its_own_lines() -> None:
    text = inserted("a:\n  b: 1\n", "f", ("a",), "k", {"about": "x y", "levels": {"one": {"P": "1"}}})
    assert text == 'a:\n  b: 1\n  k:\n    about: "x y"\n    levels:\n      one: {P: 1}\n'


@pytest.mark.parametrize("text", ["x: &x {b: 1}\na: *x\n", "a: &x {b: 1}\nc: *x\n"])
def test_what_stands_in_two_places_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"write (a|it) out first"):
        inserted(text, "f", ("a",), "new", "3")


keys = st.text("abcdefg", min_size=1, max_size=3)
values = st.recursive(
    st.sampled_from(["1", "word", "true", "two words", ""]),
    lambda inner: st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150)
@given(first=st.dictionaries(keys, values, max_size=3), second=values, third=values)
def test_what_it_wrote_it_can_edit_again(first: dict[str, object], second: object, third: object) -> None:
    text = inserted("# head\ntop:\n  - x # item\nend: {}\n", "f", ("end",), "first", first)  # type: ignore[arg-type]
    text = inserted(text, "f", (), "second", second)  # type: ignore[arg-type]
    text = inserted(text, "f", ("end", "first"), "third", third)  # type: ignore[arg-type]
    data = parse(text, "f").data
    assert list(data["end"]["first"]) == [*(key for key in first if key != "third"), "third"]
    assert text.startswith("# head\ntop:\n  - x # item\nend: {")


@pytest.mark.parametrize("kernel", sorted(read(CATALOGUE).data["kernels"]))
def test_a_composite_for_every_kernel_of_the_catalogue(kernel: str) -> None:
    text = CATALOGUE.read_text(encoding="utf-8")
    has_composites = "composites" in parse(text, "f").data["kernels"][kernel]
    composite = {"about": "found", "levels": {"default": {"BM": "128"}, "best": {"BM": "64"}}}
    where = ("kernels", kernel, "composites") if has_composites else ("kernels", kernel)
    key, value = (
        ("kept_by_the_test", composite) if has_composites else ("composites", {"kept_by_the_test": composite})
    )
    edited = inserted(text, "f", where, key, value)
    # The text is all there, before and behind the new lines.
    start = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(text, edited, strict=False)))
    behind = text[start:]
    assert edited.endswith(behind)
    new = edited[start : len(edited) - len(behind)]
    assert new.count("\n") == 6 - has_composites
    assert "best: {BM: 64}" in new
