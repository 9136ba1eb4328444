"""Register-bank conflicts of a cubin's FFMAs, counted from the machine code of sm_90.

An FFMA reads three registers, and the register file has two banks (a register's lowest bit) that deliver one each a cycle.
A register with a reuse flag on the FFMA before, in the same place, need not be read again.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

FFMA = 0x223
RZ = 255  # stands for zero, and is not read
REUSE = 58  # first of the three reuse flags, in the upper half of an instruction


def ffma_conflicts(cubin: bytes, entry: str) -> tuple[int, int]:
    """FFMAs of an entry, and those that must read two registers of a bank."""
    return two_reads(struct.iter_unpack("<QQ", text(cubin, entry)))


def two_reads(code: Iterable[tuple[int, ...]]) -> tuple[int, int]:
    """The same, of a piece of code."""
    found = [must for must in reading_twice(code) if must is not None]
    return len(found), sum(found)


def reading_twice(code: Iterable[tuple[int, ...]]) -> Iterator[bool | None]:
    """Of each instruction, whether it is an FFMA that must read two registers of a bank; None of any other."""
    kept: dict[int, int] = {}
    for low, high in code:
        if low & 0xFFF != FFMA:
            kept = {}
            yield None
            continue
        registers = {0: low >> 24 & 0xFF, 1: low >> 32 & 0xFF, 2: high & 0xFF}
        banks = [
            register & 1 for place, register in registers.items() if register not in (RZ, kept.get(place))
        ]
        yield max(banks.count(0), banks.count(1)) > 1
        kept = {place: register for place, register in registers.items() if high >> REUSE >> place & 1}


def text(cubin: bytes, entry: str) -> bytes:
    """The entry's machine code: its section of the ELF file."""
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", cubin, table + size * number) for number in range(count)]
    strings = headers[names][4]
    for name, _, _, _, offset, length in headers:
        start = strings + name
        if cubin[start : cubin.index(0, start)].decode() == f".text.{entry}":
            return cubin[offset : offset + length]
    raise ValueError(f"the cubin has no entry {entry}")


if __name__ == "__main__":
    for path in sys.argv[1:]:
        ffmas, with_conflict = ffma_conflicts(Path(path).read_bytes(), "sgemm")
        print(
            f"{path}: {ffmas} FFMAs, {with_conflict} ({100 * with_conflict / ffmas:.1f}%) with two reads in a bank"
        )
