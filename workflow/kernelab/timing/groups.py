"""Which arms of an experiment share rounds, and which of them are doubled as A/A controls. Pure.

A group is what can be compared: arms joined by comparisons, and the arms and references of one problem. Its
controls are loaded twice, under a second name, and timed like any other arm.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from kernelab.plan.arms import Arm

Role = Literal["base", "arm", "aa", "reference"]
Pair = tuple[str, str]  # (base, arm)
AA = "#aa"  # cannot be part of an arm's name


@dataclass(frozen=True)
class Member:
    """One loaded instance of an arm. Two members of one arm differ in nothing but their name."""

    name: str
    arm: str
    role: Role


@dataclass(frozen=True)
class Group:
    """Members that share rounds. `anchor` is the member whose time says which others are slow."""

    members: tuple[Member, ...]
    pairs: tuple[Pair, ...]
    anchor: str
    ladder: bool = False

    @property
    def controls(self) -> tuple[Pair, ...]:
        """The A/A pairs: (base, the same arm under its second name)."""
        return tuple((member.arm, member.name) for member in self.members if member.role == "aa")


def form_groups(
    arms: Sequence[Arm], references: Sequence[Arm], pairs: Iterable[Pair], *, ladder: bool = False
) -> tuple[Group, ...]:
    """The groups of an experiment, in the order of their first arm.

    Args:
        arms: the arms to be timed, in the plan's order.
        references: library arms; one joins the groups of its problem and is left out where there is none.
        pairs: (base, arm) of each comparison. A pair with an arm that is not timed is ignored, and so is
            (arm, arm), which only says that an arm is timed though no comparison holds it.
        ladder: a ladder has no base. Its control is its last arm: the A/A interval should tell of
            the noise of the fast rungs that matter, and the first rung may be a hundred times slower.
    """
    named = {arm.name: arm for arm in arms}
    kept = [pair for pair in pairs if pair[0] in named and pair[1] in named and pair[0] != pair[1]]
    parent: dict[str, str] = {}

    def find(item: str) -> str:
        parent.setdefault(item, item)
        while parent[item] != item:
            item = parent[item]
        return item

    def problem(arm: Arm) -> str:
        return f"problem {arm.problem}"  # the blank keeps it apart from any arm's name

    for arm in arms:
        parent[find(arm.name)] = find(problem(arm))
    for base, other in kept:
        parent[find(base)] = find(other)
    together: dict[str, list[Arm]] = {}
    for arm in arms:
        together.setdefault(find(arm.name), []).append(arm)
    groups = []
    for root, inside in together.items():
        names = [arm.name for arm in inside]
        own = tuple(pair for pair in kept if pair[0] in names)
        libraries = [r.name for r in references if find(problem(r)) == root]
        groups.append(_group(names, libraries, own, ladder))
    return tuple(groups)


def _group(names: Sequence[str], references: Sequence[str], pairs: tuple[Pair, ...], ladder: bool) -> Group:
    controls = _controls(names, pairs, ladder)
    members = [Member(name, name, "base" if name in controls else "arm") for name in names]
    members += [Member(name + AA, name, "aa") for name in controls]
    members += [Member(name, name, "reference") for name in references]
    return Group(tuple(members), pairs, controls[0], ladder)


def _controls(names: Sequence[str], pairs: Sequence[Pair], ladder: bool) -> list[str]:
    if ladder:
        return [names[-1]]
    varied = {arm for _, arm in pairs}
    # The starting points: bases that no comparison made.
    return list(dict.fromkeys(base for base, _ in pairs if base not in varied)) or [names[0]]


def bereft(pairs: Iterable[Pair], failed: Collection[str], *, ladder: bool) -> set[str]:
    """The arms that are given up with the failed ones: their base failed, and no other comparison holds them.

    A base that loses its arms is still worth its time, and so is a rung: a ladder has no base.
    """
    if ladder:
        return set()
    known, gone = list(pairs), set(failed)
    held = {name for pair in known if not gone & set(pair) for name in pair}
    return {arm for base, arm in known if base in gone} - held - gone


def without(group: Group, failed: str) -> tuple[Group | None, tuple[str, ...]]:
    """A group after one of its members failed.

    A failed reference leaves alone. A failed arm, under either of its names, takes its pairs along and the arms that
    are bereft by it; so a failed base of all comparisons ends the group. The controls are chosen anew.

    Returns:
        the group that goes on, or None; and the arms (not references) that are given up with the failed one.
    """
    lost = next(member for member in group.members if member.name == failed)
    references = [m.name for m in group.members if m.role == "reference" and m is not lost]
    timed = [member.arm for member in group.members if member.role in ("base", "arm")]
    if lost.role == "reference":
        return _group(timed, references, group.pairs, group.ladder), ()
    along = bereft(group.pairs, {lost.arm}, ladder=group.ladder)
    left = [name for name in timed if name != lost.arm and name not in along]
    given_up = tuple(name for name in timed if name in along)
    if not left:
        return None, given_up
    pairs = tuple(pair for pair in group.pairs if pair[0] in left and pair[1] in left)
    return _group(left, references, pairs, group.ladder), given_up
