"""Find the loops of a SASS listing: natural loops, from back edges to a block that dominates their source.

Addresses alone will not do: code moved out of line behind the end of a kernel branches backwards without
being a loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelab.build.sass import Instruction

_LEAVES = {"EXIT", "RET", "KILL", "BRX", "JMX"}
_JUMPS = {"BRA", "JMP", *_LEAVES}


@dataclass(frozen=True)
class Loop:
    """`start` is the address of the header; `instructions` are all those of the body, inner loops
    included."""

    start: int
    instructions: tuple[Instruction, ...]


def find_loops(listing: Sequence[Instruction]) -> list[Loop]:
    """Every loop of the listing, by header address. Endless self-branches, with which ptxas pads code, are
    left out."""
    blocks, index = _blocks(listing)
    successors = [_successors(block, i, index, len(blocks)) for i, block in enumerate(blocks)]
    predecessors: list[list[int]] = [[] for _ in blocks]
    for source, targets in enumerate(successors):
        for target in targets:
            predecessors[target].append(source)
    # a function that the entry calls lies in the same section, and is reached by CALL alone
    called = {index[i.target] for i in listing if i.base == "CALL" and i.target in index}
    dominators = _dominators(successors, predecessors, roots={0, *called} if blocks else set())
    bodies: dict[int, set[int]] = {}
    for source, targets in enumerate(successors):
        for header in targets:
            if dominators[source] >> header & 1 and not (source == header and len(blocks[source]) == 1):
                bodies.setdefault(header, {header}).update(_body(source, header, predecessors))
    return [
        Loop(blocks[header][0].address, tuple(i for block in sorted(body) for i in blocks[block]))
        for header, body in sorted(bodies.items())
    ]


def _blocks(listing: Sequence[Instruction]) -> tuple[list[list[Instruction]], dict[int, int]]:
    leaders = {i.target for i in listing if i.target is not None}
    blocks: list[list[Instruction]] = []
    index: dict[int, int] = {}
    starts = True
    for instruction in listing:
        if starts or instruction.address in leaders:
            index[instruction.address] = len(blocks)
            blocks.append([])
        blocks[-1].append(instruction)
        starts = instruction.base in _JUMPS or instruction.target is not None
    return blocks, index


def _successors(block: Sequence[Instruction], number: int, index: dict[int, int], count: int) -> list[int]:
    last = block[-1]
    # CALL comes back, BSSY and WARPSYNC only name a place: they fall through, like a branch under a predicate
    always = last.base in _JUMPS and not last.predicate and not _conditional(last)
    found = [number + 1] if not always and number + 1 < count else []
    if last.base in ("BRA", "JMP") and last.target in index:
        found.append(index[last.target])
    return found


def _conditional(branch: Instruction) -> bool:
    """`BRA P0, ...`, `BRA.U UP0, ...` and `BRA.DIV` carry their condition among the operands."""
    first = branch.operands.partition(",")[0].strip()
    return ".DIV" in branch.opcode or first.lstrip("!").startswith(("P", "UP"))


def _dominators(successors: list[list[int]], predecessors: list[list[int]], roots: set[int]) -> list[int]:
    """For each block the set of its dominators, as a bit mask; an unreachable block has none."""
    reached, pending = set[int](), list(roots)
    while pending:
        block = pending.pop()
        if block not in reached:
            reached.add(block)
            pending += successors[block]
    order = sorted(reached)
    every = (1 << len(successors)) - 1
    masks = [every if block in reached else 0 for block in range(len(successors))]
    for root in roots:
        masks[root] = 1 << root
    changed = True
    while changed:
        changed = False
        for block in order:
            if block in roots:
                continue
            mask = every
            for source in predecessors[block]:
                if source in reached:
                    mask &= masks[source]
            mask |= 1 << block
            if mask != masks[block]:
                masks[block], changed = mask, True
    return masks


def _body(source: int, header: int, predecessors: list[list[int]]) -> set[int]:
    body, pending = {header}, [source]
    while pending:
        block = pending.pop()
        if block not in body:
            body.add(block)
            pending += predecessors[block]
    return body
