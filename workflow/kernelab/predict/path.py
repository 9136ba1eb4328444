"""The steady path: the instructions that a warp runs over and over, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelab.build.hot_loop import find_hot_loop
from kernelab.build.loops import Loop, find_loops
from kernelab.build.sass import Instruction

_FEEDS = {"LDG", "LDGSTS", "UTMALDG", "UBLKCP", "BAR", "LD"}
_MBARRIER = "SYNCS"


@dataclass(frozen=True)
class SteadyPath:
    """One turn of the loop that a warp spends its life in.

    `before` + `inner` + `after` is one turn, in which the addresses of `inner` are run `trips` times in a row where the
    arithmetic stands in a loop of its own; `code_bytes` is what the turn takes of the instruction cache.
    """

    before: tuple[int, ...]
    inner: tuple[int, ...]
    after: tuple[int, ...]
    code_bytes: int

    def addresses(self, trips: int) -> list[int]:
        """The turn with its inner loop run `trips` times."""
        return [*self.before, *self.inner * trips, *self.after]


def find_steady_path(listing: Sequence[Instruction], arch: str) -> SteadyPath | None:
    """The path of the hot loop, or of the loop around it where that one feeds it; None where there is no loop.

    A hot loop that waits at an mbarrier is fed by the copies that arrive there: what lies around it is another tile.
    Of the ways through a loop the longest is taken: what every turn but the last does. A loop inside that is not the hot
    one (a wait for data) is gone through once.
    """
    hot = find_hot_loop(listing, arch)
    if hot is None:
        return None
    loops = find_loops(listing)
    inner = next(loop for loop in loops if loop.start == hot.start)
    waits = any(i.base == _MBARRIER for i in inner.instructions)
    around = [] if waits else [loop for loop in loops if _holds(loop, inner) and _feeds(loop)]
    turn = min(around, key=lambda loop: len(loop.instructions)) if around else inner
    path = _longest(turn)
    size = 16 * len(turn.instructions)
    if turn.start == inner.start:
        return SteadyPath(tuple(path), (), (), size)
    body = set(_longest(inner))
    first = next((i for i, address in enumerate(path) if address in body), None)
    if first is None:
        return SteadyPath(tuple(path), (), (), size)
    last = max(i for i, address in enumerate(path) if address in body)
    return SteadyPath(tuple(path[:first]), tuple(path[first : last + 1]), tuple(path[last + 1 :]), size)


def straight_path(listing: Sequence[Instruction]) -> SteadyPath:
    """The longest way through an entry that has no loop."""
    whole = Loop(listing[0].address, tuple(listing))
    path = _longest(whole)
    return SteadyPath(tuple(path), (), (), 16 * len(path))


def _holds(outer: Loop, inner: Loop) -> bool:
    return inner.start in {i.address for i in outer.instructions}


def _feeds(loop: Loop) -> bool:
    return any(i.base in _FEEDS for i in loop.instructions)


def _longest(loop: Loop) -> list[int]:
    """Addresses of the longest way from the loop's header to a branch back to it, or to an exit where none goes back."""
    code = loop.instructions
    position = {instruction.address: n for n, instruction in enumerate(code)}
    start = position[loop.start]
    following = [_following(instruction, position) for instruction in code]
    length = [0] * len(code)  # of the longest way to here
    came = [-1] * len(code)
    length[start] = 1
    back, leave = -1, start
    order = _order(start, following)
    rank = {n: r for r, n in enumerate(order)}
    for n in order:
        for target in following[n]:
            if target == start:
                back = n if back < 0 or length[n] > length[back] else back
            elif rank[target] > rank[n] and length[n] >= length[target]:
                length[target], came[target] = length[n] + 1, n
        if code[n].base == "EXIT" and not code[n].predicate and length[n] > length[leave]:
            leave = n
    path = []
    at = back if back >= 0 else leave
    while at >= 0:
        path.append(code[at].address)
        at = came[at]
    return path[::-1]


def _following(instruction: Instruction, position: Mapping[int, int]) -> list[int]:
    """What may run next, as positions; what lies outside the loop is left out."""
    targets = [] if _always(instruction) else [instruction.address + 16]
    if instruction.base in ("BRA", "JMP") and instruction.target is not None:
        targets.append(instruction.target)
    return [position[target] for target in targets if target in position]


def _order(start: int, following: Sequence[Sequence[int]]) -> list[int]:
    """Positions so that each comes before what follows it, but for branches back."""
    finished: list[int] = []
    seen = {start}
    stack = [(start, iter(following[start]))]
    while stack:
        at, rest = stack[-1]
        target = next((t for t in rest if t not in seen), None)
        if target is None:
            finished.append(at)
            stack.pop()
        else:
            seen.add(target)
            stack.append((target, iter(following[target])))
    return finished[::-1]


def _always(instruction: Instruction) -> bool:
    if (
        instruction.base not in ("BRA", "JMP", "EXIT", "RET")
        or instruction.predicate
        or ".DIV" in instruction.opcode
    ):
        return False
    first = instruction.operands.partition(",")[0].strip().lstrip("!")
    return not first.startswith(("P", "UP"))
