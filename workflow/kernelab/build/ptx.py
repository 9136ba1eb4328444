"""Control facts from PTX: what the author told the compiler about an entry's launch."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class ControlFacts:
    """The performance directives of one entry; None where the source gives none.

    `maxntid` and `reqntid` are threads a block in x, y, z (nvcc 13 writes `128` where NVRTC 12 writes `128,
    1, 1`); `min_blocks` is `.minnctapersm`, the second argument of `__launch_bounds__`; `max_registers` is
    `.maxnreg`; `cluster` is `.reqnctapercluster`. `parameters` are the PTX types of the arguments, in order.
    """

    maxntid: tuple[int, int, int] | None
    reqntid: tuple[int, int, int] | None
    min_blocks: int | None
    max_registers: int | None
    cluster: tuple[int, int, int] | None
    parameters: tuple[str, ...]


@dataclass(frozen=True)
class PtxFacts:
    """`version` is that of the PTX language, `target` the architecture."""

    version: str
    target: str
    entries: dict[str, ControlFacts]


_VERSION = re.compile(r"^\s*\.version\s+(\S+)", re.MULTILINE)
_TARGET = re.compile(r"^\s*\.target\s+([^\s,]+)", re.MULTILINE)
_ENTRY = re.compile(r"\.entry\s+(?P<name>[\w$]+)\s*(?:\((?P<parameters>[^)]*)\))?(?P<directives>[^{;]*)\{")
_PARAMETER = re.compile(r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)(?:\s+\.ptr[^,]*?)?\s+[\w$]+(\[\d+\])?")


def parse_ptx(text: str) -> PtxFacts:
    """The facts of every entry of a PTX file.

    Raises:
        ValueError: the text has no `.version` or `.target`.
    """
    version, target = _VERSION.search(text), _TARGET.search(text)
    if not version or not target:
        raise ValueError("not PTX: no .version or .target")
    entries = {match["name"]: _facts(match) for match in _ENTRY.finditer(text)}
    return PtxFacts(version[1], target[1], entries)


def _facts(entry: re.Match[str]) -> ControlFacts:
    directives = entry["directives"]
    return ControlFacts(
        maxntid=_extent("maxntid", directives),
        reqntid=_extent("reqntid", directives),
        min_blocks=_number("minnctapersm", directives),
        max_registers=_number("maxnreg", directives),
        cluster=_extent("reqnctapercluster", directives),
        parameters=tuple(kind + size for kind, size in _PARAMETER.findall(entry["parameters"] or "")),
    )


def _extent(directive: str, text: str) -> tuple[int, int, int] | None:
    found = re.search(rf"\.{directive}\s+(\d+(?:\s*,\s*\d+)*)", text)
    if not found:
        return None
    x, y, z, *_ = [*(int(number) for number in found[1].split(",")), 1, 1]
    return x, y, z


def _number(directive: str, text: str) -> int | None:
    found = re.search(rf"\.{directive}\s+(\d+)", text)
    return int(found[1]) if found else None
