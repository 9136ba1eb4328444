"""Read the sections of a cubin: a 64-bit little-endian ELF file, one `.text.<entry>` section for each
kernel."""

from __future__ import annotations

import struct
from dataclasses import dataclass

_NOBITS = 8
_RELA, _REL = 4, 9


@dataclass(frozen=True)
class Relocation:
    """A place in a section that the loader fills in: byte offset, kind, and the symbol it refers to."""

    offset: int
    kind: int
    symbol: str
    addend: int


@dataclass(frozen=True)
class Section:
    name: str
    data: bytes  # empty where the section has a size but no bytes (shared memory)
    size: int


class Cubin:
    """The sections of a cubin, by name.

    Raises:
        ValueError: the bytes are not an ELF file.
    """

    def __init__(self, data: bytes) -> None:
        if data[:5] != b"\x7fELF\x02":
            raise ValueError("not a 64-bit ELF file")
        (table,) = struct.unpack_from("<Q", data, 0x28)
        size, count, names = struct.unpack_from("<HHH", data, 0x3A)
        headers = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * size) for i in range(count)]
        name_table = headers[names][4]
        self.sections: dict[str, Section] = {}
        self._relocations: dict[str, list[Relocation]] = {}
        for offset, kind, _, _, start, length, *_ in headers:
            name = _text_at(data, name_table + offset)
            body = b"" if kind == _NOBITS else data[start : start + length]
            self.sections[name] = Section(name, body, length)
        for offset, kind, _, _, start, length, link, _, _, _ in headers:
            if kind in (_RELA, _REL):
                target = _text_at(data, name_table + offset).removeprefix(".rela").removeprefix(".rel")
                symbols = headers[link]
                strings = headers[symbols[6]][4]
                found = self._relocations.setdefault(target, [])
                for at in range(start, start + length, 24 if kind == _RELA else 16):
                    place, info = struct.unpack_from("<QQ", data, at)
                    addend = struct.unpack_from("<q", data, at + 16)[0] if kind == _RELA else 0
                    (name_offset,) = struct.unpack_from("<I", data, symbols[4] + 24 * (info >> 32))
                    symbol = _text_at(data, strings + name_offset)
                    found.append(Relocation(place, info & 0xFFFFFFFF, symbol, addend))

    @property
    def entries(self) -> tuple[str, ...]:
        """The functions that have a code section of their own, in file order."""
        return tuple(name[6:] for name in self.sections if name.startswith(".text."))

    def data(self, section: str) -> bytes:
        """The bytes of a section, empty where there is none."""
        found = self.sections.get(section)
        return found.data if found else b""

    def relocations(self, section: str) -> list[Relocation]:
        """The relocations that apply to a section."""
        return self._relocations.get(section, [])

    def constant_bytes(self, entry: str) -> int:
        """Bytes of the constant banks that belong to `entry` alone: parameters and the compiler's
        literals."""
        suffix = f".{entry}"
        banks = (s for n, s in self.sections.items() if n.startswith(".nv.constant") and n.endswith(suffix))
        return sum(bank.size for bank in banks)


def _text_at(data: bytes, start: int) -> str:
    return data[start : data.index(0, start)].decode()
