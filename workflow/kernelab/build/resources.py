"""What each entry takes from the machine, from the report that ptxas prints under -v."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Resources:
    """Registers a thread; the rest in bytes, spills and stack a thread, shared memory a block; barriers a
    block.

    A function that is called and not inlined has spills of its own, which ptxas reports apart and which are
    not here.
    """

    registers: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    static_shared_bytes: int
    barriers: int


_LINE = re.compile(
    r"Compiling entry function '(?P<entry>[^']+)'"
    r"|(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads"
    r"|Used (?P<registers>\d+) registers(?P<rest>[^\n]*)"
)
_BARRIERS = re.compile(r"used (\d+) barriers")
_SHARED = re.compile(r"(\d+) bytes smem")
_CUMULATIVE = re.compile(r"(\d+) bytes cumulative stack size")


def parse_resources(log: str) -> dict[str, Resources]:
    """The resources of each entry, by name.

    After `Compiling entry function` come the entry's own properties, then `Used N registers`; properties of
    called functions follow and belong to no entry.
    """
    found: dict[str, Resources] = {}
    entry = ""
    frame = (0, 0, 0)
    for match in _LINE.finditer(log):
        if match["entry"]:
            entry, frame = match["entry"], (0, 0, 0)
        elif match["stack"]:
            frame = (int(match["stack"]), int(match["stores"]), int(match["loads"]))
        elif entry:
            rest = match["rest"]
            found[entry] = Resources(
                registers=int(match["registers"]),
                stack_bytes=_number(_CUMULATIVE, rest) or frame[0],
                spill_store_bytes=frame[1],
                spill_load_bytes=frame[2],
                static_shared_bytes=_number(_SHARED, rest),
                barriers=_number(_BARRIERS, rest),
            )
            entry = ""
    return found


def _number(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.search(text)
    return int(found[1]) if found else 0
