"""Are two builds the same machine code? A hash that ignores names and line information, and nothing else.

Hashed for an entry: the encoded bytes of its code, which include the schedule that the compiler chose (stall
counts, barriers, reuse flags) and no names, and whose branches are relative; the symbols that the loader
would patch in; the constants that the code reads; registers, stack, shared memory and barriers. The encoding
is taken rather than the disassembled text because text leaves the schedule out. The cubin as a whole will not
do: line information and names move its bytes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence

from kernelab.build.cubin import Cubin
from kernelab.build.resources import Resources
from kernelab.build.sass import Instruction

_BANK = re.compile(r"c\[0x([34])\]")


def sass_sha256(cubin: Cubin, entry: str, listing: Iterable[Instruction], resources: Resources) -> str:
    """SHA-256 of the entry's machine code and of the resources that it asks for."""
    code = f".text.{entry}"
    total = hashlib.sha256()

    def add(label: str, data: bytes) -> None:
        total.update(f"{label}:{len(data)}\0".encode() + data)

    add("code", cubin.data(code))
    for r in cubin.relocations(code):
        add("relocation", f"{r.offset} {r.kind} {_nameless(r.symbol, entry)} {r.addend}".encode())
    add("literals", cubin.data(f".nv.constant2.{entry}"))
    banks = {bank for i in listing if "c[0x" in i.operands for bank in _BANK.findall(i.operands)}
    for bank in sorted(banks):
        add(f"bank {bank}", cubin.data(f".nv.constant{bank}"))
    if "4" in banks:  # addresses of global variables: what they start with is what the code may read
        add("globals", cubin.data(".nv.global.init"))
    used = (resources.registers, resources.stack_bytes, resources.static_shared_bytes, resources.barriers)
    add("resources", " ".join(map(str, used)).encode())
    return total.hexdigest()


def combined(hashes: Sequence[str]) -> str:
    """One hash for the entries of a sequence of launches; of a single launch, its own."""
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()


def _nameless(symbol: str, entry: str) -> str:
    return symbol.replace(entry, "<entry>")
