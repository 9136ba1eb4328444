"""What what_if.py changes in the machine code of rungs 23 and later, by name, to see what the hot loop's parts cost.

A change rewrites instructions in their places or moves loads among FFMAs: the code stays as long as it was, and warps wait
at the same mbarriers. What the kernel computes becomes wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from banks import RZ, reading_twice
from instruction import BASE, CYCLES, OPCODE, SOURCES, STAY, Instruction, reuse
from loop import LDSM

Body = list[Instruction]
Edit = Callable[[Body], None]
Choice = Callable[[Body], list[Instruction]]
STORES = frozenset({0x388, 0x988, 0x844})  # STS, and STSM
SPARE_LOADS = frozenset({LDSM})
FARTHEST = 140  # instructions that a load of a group may move over


@dataclass(frozen=True)
class Change:
    """In words, what is done to the hot loop, and the opcodes that become NOPs in the loop of the spare warps."""

    words: str
    loop: tuple[Edit, ...] = ()
    spare: frozenset[int] = frozenset()


def loads(body: Body) -> list[Instruction]:
    """All loads from shared memory."""
    return [instruction for instruction in body if instruction.loads]


def every(step: int, first: int = 0) -> Choice:
    """Every second, third, ... load."""
    return lambda body: loads(body)[first::step]


def operand(name: str) -> Choice:
    """The loads of A or of B: of A a step has four, of B two, and B's are all from one base register.

    Raises ValueError where no register, or more than one, has a third of the loads.
    """

    def choice(body: Body) -> list[Instruction]:
        found = loads(body)
        counts = Counter(load.get(BASE) for load in found)
        thirds = [base for base, count in counts.items() if 3 * count == len(found)]
        if len(thirds) != 1:
            raise ValueError("A's loads cannot be told from B's: no one base register has a third of them")
        return [load for load in found if (load.get(BASE) == thirds[0]) == (name == "B")]

    return choice


def each(change: Callable[[Instruction], None], chosen: Choice = loads) -> Edit:
    """Changes these loads one by one."""

    def edit(body: Body) -> None:
        for load in chosen(body):
            change(load)

    return edit


nop = Instruction.to_nop


def conflict(body: Body, at: int) -> bool:
    """Whether an FFMA must read two registers of a bank, behind what stands before it."""
    *_, must = reading_twice(instruction.halves for instruction in body[max(0, at - 1) : at + 1])
    return bool(must)


def share_in_rows(body: Body) -> None:
    """An FFMA with a conflict, right behind another, takes a factor from that one, with its reuse flag."""
    for at in range(1, len(body)):
        before, here = body[at - 1], body[at]
        if not (before.multiplies and here.multiplies and conflict(body, at)):
            continue
        had, wants = before.sources(), here.sources()
        for place in (1, 0):
            other = wants[1 - place]
            kept = before.reused(1 - place) and had[1 - place] == other
            if kept or (other ^ wants[2]) & 1:
                break
        else:  # the other factor and the addend are of one bank, too: the first factor takes the other bank
            place = 1
            here.put(BASE, wants[0] ^ 1)
        here.put(SOURCES[place], had[place])
        before.put(reuse(place), 1)


def drop_after_others(body: Body) -> None:
    """An FFMA with a conflict, behind anything but an FFMA, has a zero for one factor."""
    for at in range(1, len(body)):
        here = body[at]
        if here.multiplies and not body[at - 1].multiplies and conflict(body, at):
            wants = here.sources()
            place = 0 if (wants[1] ^ wants[2]) & 1 else 1
            here.put(SOURCES[place], RZ)
            here.put(reuse(place), 0)


def reuse_over_loads(*places: int) -> Edit:
    """The FFMA before a load keeps a factor that the FFMA behind it reads in the same place."""

    def edit(body: Body) -> None:
        for before, load, behind in zip(body, body[1:], body[2:], strict=False):
            if load.loads and before.multiplies and behind.multiplies:
                for place in places:
                    if before.sources()[place] == behind.sources()[place]:
                        before.put(reuse(place), 1)

    return edit


def together(size: int, cycles: int) -> Edit:
    """Loads move forward to the first of their group; the warp waits so many cycles after each but the last.

    A group with other than FFMAs between its loads, or FARTHEST instructions long, stays: of rung 24's 12 groups of six five do.
    """

    def edit(body: Body) -> None:
        at = [index for index, instruction in enumerate(body) if instruction.loads]
        for number in range(0, len(at), size):
            group = at[number : number + size]
            first, end = group[0], group[-1] + 1
            between = body[first:end]
            if end - first > FARTHEST + 1 or not all(i.loads or i.multiplies for i in between):
                continue
            moved = loads(between)
            for load in moved[:-1]:
                load.put(CYCLES, cycles)
            body[first:end] = moved + [i for i in between if not i.loads]

    return edit


def wait_one_cycle(load: Instruction) -> None:
    load.put(CYCLES, 1)


def leave(always: bool) -> Edit:
    """The scheduler is told to leave the warp after FFMAs: after all, or those without a reuse flag."""

    def edit(body: Body) -> None:
        for instruction in body:
            if instruction.multiplies and (always or not any(map(instruction.reused, range(3)))):
                instruction.put(STAY, 0)

    return edit


# A step may bring new conflicts where it ends the reuse of a register, so that some are left after both.
FEWER = (share_in_rows, drop_after_others)
LESS = "fewer bank conflicts"
IN_ROWS = "an FFMA right behind another takes a factor from it, where it had a bank conflict"
AFTER = "an FFMA behind a load or the like has a zero for a factor, where it had a bank conflict"
CHANGES: dict[str, Change] = {
    "as_it_is": Change("nothing"),
    "nop": Change("loads are NOPs", (each(nop),)),
    "nop_second": Change("every second load is a NOP", (each(nop, every(2)),)),
    "nop_other_second": Change("the other half of the loads are NOPs", (each(nop, every(2, 1)),)),
    "nop_third": Change("every third load is a NOP", (each(nop, every(3)),)),
    **{
        f"nop_{name.lower()}": Change(f"the loads of {name} are NOPs", (each(nop, operand(name)),))
        for name in "AB"
    },
    **{
        f"lds_{bits}": Change(
            f"an LDS loads {bits} bits a lane", (each(partial(Instruction.to_width, bits=bits)),)
        )
        for bits in (64, 32)
    },
    "no_register": Change("what is loaded goes nowhere (RZ)", (each(Instruction.to_no_register),)),
    "one_address": Change("all lanes load from one address", (each(Instruction.to_one_address),)),
    "one_cycle": Change("the warp waits one cycle after every load", (each(wait_one_cycle),)),
    **{
        f"ldsm_x{count}{suffix}": Change(
            f"the loads{whose} are LDSM x{count}",
            (each(partial(Instruction.to_ldsm, matrices=count), chosen),),
        )
        for suffix, whose, chosen in (
            ("_a", " of A", operand("A")),
            ("_b", " of B", operand("B")),
            ("", "", loads),
        )
        for count in (4, 2, 1)
    },
    "fewer_in_rows": Change(f"{LESS}: {IN_ROWS}", (share_in_rows,)),
    "fewer_after_loads": Change(f"{LESS}: {AFTER}", (drop_after_others,)),
    "fewer": Change(f"{LESS}, in both ways", FEWER),
    **{
        f"{name}_{cycles}": Change(
            f"loads in groups of {size} behind one another, where only FFMAs lie between; cycles apart: {cycles}",
            (together(size, cycles),),
        )
        for name, size in (("pairs", 2), ("sixes", 6))
        for cycles in (4, 2, 1)
    },
    "sixes_4_fewer_in_rows": Change(f"as sixes_4; {LESS} in rows", (together(6, 4), share_in_rows)),
    "sixes_4_fewer": Change(f"as sixes_4; {LESS} in both ways", (together(6, 4), *FEWER)),
    "reuse_first": Change("a first factor is reused over a load", (reuse_over_loads(0),)),
    "reuse_second": Change("a second factor is reused over a load", (reuse_over_loads(1),)),
    "reuse": Change("both factors are reused over a load", (reuse_over_loads(0, 1),)),
    "leave": Change("the scheduler leaves the warp after an FFMA without a reuse flag", (leave(False),)),
    "leave_always": Change("the scheduler leaves the warp after every FFMA", (leave(True),)),
    "nop_fewer": Change(f"loads are NOPs; {LESS} in both ways", (each(nop), *FEWER)),
    "lds_64_fewer": Change(
        f"an LDS loads 64 bits a lane; {LESS} in both ways",
        (each(partial(Instruction.to_width, bits=64)), *FEWER),
    ),
    "spare_stores_nop": Change("the spare warps' stores are NOPs", spare=STORES),
    "spare_loads_nop": Change("the spare warps' loads are NOPs", spare=SPARE_LOADS),
    "spare_nop": Change("the spare warps' loads and stores are NOPs", spare=STORES | SPARE_LOADS),
    "nop_spare_nop": Change(
        "loads are NOPs, and so are the spare warps' loads and stores", (each(nop),), STORES | SPARE_LOADS
    ),
    "nop_fewer_spare_nop": Change(
        f"loads are NOPs, and so are the spare warps' loads and stores; {LESS} in both ways",
        (each(nop), *FEWER),
        STORES | SPARE_LOADS,
    ),
}


def apply(change: Change, code: Body, hot: tuple[int, int], spare: tuple[int, int]) -> None:
    """Changes an entry's code in place; the loops are given by their first and last instruction.

    Raises ValueError where a part of the change finds nothing to do: the rest would be another change.
    """
    start, end = hot
    body = code[start : end + 1]
    for edit in change.loop:
        before = [instruction.word for instruction in body]
        edit(body)
        if before == [instruction.word for instruction in body]:
            raise ValueError("a part of it changes nothing here")
    idle = [i for i in code[spare[0] : spare[1] + 1] if i.get(OPCODE) in change.spare]
    if change.spare and not idle:
        raise ValueError("the spare warps have no such instruction")
    for instruction in idle:
        instruction.to_nop()
    code[start : end + 1] = body
