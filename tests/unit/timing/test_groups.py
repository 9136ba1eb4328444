from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelab.plan.arms import Arm
from kernelab.timing.groups import AA, Group, form_groups, without


def arm(name: str, problem: str = "big", kernel: str = "k") -> Arm:
    return Arm(
        name=name,
        kernel=kernel,
        operation="o",
        build="b",
        problem=problem,
        data="uniform",
        l2="cold",
        settings={},
    )


def roles(group: Group) -> dict[str, str]:
    return {member.name: member.role for member in group.members}


def test_the_base_is_in_the_group_twice_and_the_reference_joins_by_problem() -> None:
    (group,) = form_groups([arm("a"), arm("b")], [arm("ref"), arm("other", "small")], [("a", "b")])
    assert roles(group) == {"a": "base", "b": "arm", "a#aa": "aa", "ref": "reference"}
    assert group.anchor == "a"
    assert group.controls == (("a", "a#aa"),)


def test_problems_form_groups_of_their_own() -> None:
    arms = [arm("a"), arm("b"), arm("c", "small"), arm("d", "small")]
    groups = form_groups(arms, [], [("a", "b"), ("c", "d")])
    assert [group.anchor for group in groups] == ["a", "c"]


def test_a_comparison_of_two_problems_is_inside_one_group() -> None:
    (group,) = form_groups([arm("a"), arm("b", "small")], [arm("r"), arm("s", "small")], [("a", "b")])
    assert roles(group) == {"a": "base", "b": "arm", "a#aa": "aa", "r": "reference", "s": "reference"}


def test_several_bases_are_each_a_control_but_steps_have_one() -> None:
    (bases,) = form_groups([arm("a"), arm("b"), arm("c"), arm("d")], [], [("a", "b"), ("c", "d")])
    assert [base for base, _ in bases.controls] == ["a", "c"]
    (steps,) = form_groups([arm("a"), arm("b"), arm("c")], [], [("a", "b"), ("b", "c"), ("a", "c")])
    assert [base for base, _ in steps.controls] == ["a"]


def test_the_control_of_a_ladder_is_its_last_arm() -> None:
    (group,) = form_groups([arm("1"), arm("2"), arm("3")], [], [("1", "2"), ("2", "3")], ladder=True)
    assert group.controls == (("3", "3#aa"),)
    assert group.anchor == "3"


def test_an_arm_without_comparison_is_its_own_control() -> None:
    (group,) = form_groups([arm("a")], [], [("a", "a")])
    assert roles(group) == {"a": "base", "a#aa": "aa"}
    assert group.pairs == ()


def test_a_failed_arm_takes_only_its_pairs_along() -> None:
    (group,) = form_groups([arm("a"), arm("b"), arm("c")], [arm("r")], [("a", "b"), ("a", "c")])
    left, along = without(group, "b")
    assert left is not None
    assert roles(left) == {"a": "base", "c": "arm", "a#aa": "aa", "r": "reference"}
    assert left.pairs == (("a", "c"),)
    assert along == ()


@pytest.mark.parametrize("failed", ["a", "a#aa"])
def test_a_failed_base_ends_the_group_under_either_name(failed: str) -> None:
    (group,) = form_groups([arm("a"), arm("b"), arm("c")], [arm("r")], [("a", "b"), ("a", "c")])
    assert without(group, failed) == (None, ("b", "c"))


def test_a_failed_base_among_others_ends_only_its_own_comparisons() -> None:
    (group,) = form_groups([arm("a"), arm("b"), arm("c"), arm("d")], [], [("a", "b"), ("c", "d")])
    left, along = without(group, "a")
    assert left is not None
    assert left.controls == (("c", "c#aa"),)
    assert left.anchor == "c"
    assert along == ("b",)


def test_a_base_that_loses_its_only_arm_goes_on_alone() -> None:
    (group,) = form_groups([arm("a"), arm("b")], [arm("r")], [("a", "b")])
    left, along = without(group, "b")
    assert left is not None
    assert roles(left) == {"a": "base", "a#aa": "aa", "r": "reference"}
    assert along == ()


def test_a_step_goes_on_where_another_comparison_holds_it() -> None:
    (group,) = form_groups([arm("a"), arm("b"), arm("c")], [], [("a", "b"), ("b", "c"), ("a", "c")])
    left, along = without(group, "b")
    assert left is not None
    assert left.pairs == (("a", "c"),)
    assert along == ()


def test_a_failed_reference_leaves_alone() -> None:
    (group,) = form_groups([arm("a"), arm("b")], [arm("r")], [("a", "b")])
    left, along = without(group, "r")
    assert left is not None
    assert "r" not in roles(left)
    assert left.pairs == group.pairs
    assert along == ()


def test_a_failed_last_rung_hands_the_control_on() -> None:
    (group,) = form_groups(
        [arm("1"), arm("2"), arm("3"), arm("4")], [], [("1", "2"), ("2", "3"), ("3", "4")], ladder=True
    )
    left, along = without(group, "4")
    assert left is not None
    assert left.controls == (("3", "3#aa"),)
    assert along == ()


names = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=8, unique=True)


@given(names, st.data())
def test_every_arm_is_timed_once_and_every_control_twice(arms: list[str], data: st.DataObject) -> None:
    problems = {name: data.draw(st.sampled_from(["p", "q"])) for name in arms}
    pairs = data.draw(st.lists(st.tuples(st.sampled_from(arms), st.sampled_from(arms)), max_size=10))
    groups = form_groups([arm(name, problems[name]) for name in arms], [], pairs)
    timed = [m.name for group in groups for m in group.members if m.role in ("base", "arm")]
    assert sorted(timed) == sorted(arms)
    for group in groups:
        inside = {member.name for member in group.members}
        assert group.anchor in inside
        assert group.controls
        assert all({base, other} <= inside for base, other in group.pairs)
        assert {m.arm + AA for m in group.members if m.role == "base"} == {
            m.name for m in group.members if m.role == "aa"
        }


@given(names, st.data())
def test_members_that_fail_one_by_one_always_end(arms: list[str], data: st.DataObject) -> None:
    pairs = data.draw(st.lists(st.tuples(st.sampled_from(arms), st.sampled_from(arms)), max_size=10))
    group: Group | None = form_groups([arm(name) for name in arms], [arm("ref")], pairs)[0]
    while group is not None:
        failed = data.draw(st.sampled_from([member.name for member in group.members]))
        left, along = without(group, failed)
        if left is not None:
            assert failed not in {member.name for member in left.members}
            assert not set(along) & {member.name for member in left.members}
            assert {member.arm for member in left.members} < {member.arm for member in group.members}
        group = left
