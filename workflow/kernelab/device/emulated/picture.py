"""Pictures of one shared-memory access: which lane hits which bank, in which wavefront."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .counters import BANKS, MATRIX_OPCODES, WarpAccess

_COLOURS = ("#cfe8cf", "#f6d186", "#f2a365", "#e2726e", "#c46ba0", "#8f7ac8", "#6a9bd1", "#6fb9b0")
_CELL_W, _CELL_H, _MARGIN = 26, 16, 44
# Digits of 3 x 5 dots, a row of three bits each, for the PNG.
_DIGITS = (0o75557, 0o26227, 0o71747, 0o71717, 0o55711, 0o74717, 0o74757, 0o71111, 0o75757, 0o75717)


@dataclass(slots=True)
class Wavefront:
    """One pass over the banks: for each bank the word served (None: idle) and the lanes that want it."""

    words: list[int | None]
    lanes: list[list[int]]


def wavefronts_of(access: WarpAccess) -> list[Wavefront]:
    """The passes that a shared-memory request takes, each bank serving its words in the order of the lanes."""
    passes: list[Wavefront] = []
    for part in _parts(access):
        queues: list[dict[int, list[int]]] = [{} for _ in range(BANKS)]
        for lane in part:
            address = access.addresses[lane]
            for word in range(address // 4, (address + access.width + 3) // 4) if address is not None else ():
                queues[word % BANKS].setdefault(word, []).append(lane)
        for i in range(max((len(q) for q in queues), default=0)):
            chosen = [list(q.items())[i] if i < len(q) else (None, []) for q in queues]
            passes.append(Wavefront([word for word, _ in chosen], [lanes for _, lanes in chosen]))
    return passes


def _parts(access: WarpAccess) -> list[range]:
    """The lanes that are served together: the whole warp, half-warps or quarter-warps."""
    if access.width <= 4:
        return [range(32)]
    size = 16 if access.width == 8 else 8
    on = access.addresses
    merged = not access.opcode.startswith(MATRIX_OPCODES) and any(
        all(on[i] is None or on[i ^ d] is None or on[i] == on[i ^ d] for i in range(32)) for d in (1, 2)
    )
    size *= 2 if merged else 1
    return [range(i, i + size) for i in range(0, 32, size)]


def _label(lanes: list[int]) -> str:
    return "" if not lanes else str(lanes[0]) if len(lanes) == 1 else f"{lanes[0]}+{len(lanes) - 1}"


def title(access: WarpAccess) -> str:
    """One line that names the access and its cost."""
    passes = len(wavefronts_of(access))
    return (
        f"{access.opcode} at PTX line {access.ptx_line}"
        + (f" (source line {access.source_line})" if access.source_line is not None else "")
        + f": {passes} wavefront{'s' if passes != 1 else ''}"
    )


def bank_text(access: WarpAccess) -> str:
    """A grid of text: a row for each wavefront, a column for each bank, in a cell the first lane served and `+n` more."""
    lines = [title(access), "bank      " + "".join(f"{bank:>5}" for bank in range(BANKS))]
    for i, wavefront in enumerate(wavefronts_of(access), 1):
        lines.append(f"pass {i:>4} " + "".join(f"{_label(lanes) or '.':>5}" for lanes in wavefront.lanes))
    return "\n".join(lines) + "\n"


def bank_svg(access: WarpAccess) -> str:
    """The same grid as an SVG, with each cell's word and lanes as its tooltip."""
    passes = wavefronts_of(access)
    width, height = _MARGIN + BANKS * _CELL_W + 4, 2 * _CELL_H + len(passes) * _CELL_H + 8
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="monospace" '
        f'font-size="9"><text x="4" y="12" font-size="11">{title(access)}</text>'
    ]
    out.extend(
        f'<text x="{_MARGIN + bank * _CELL_W + 4}" y="{_CELL_H + 12}">{bank}</text>' for bank in range(BANKS)
    )
    for i, wavefront in enumerate(passes):
        y = 2 * _CELL_H + i * _CELL_H
        out.append(f'<text x="4" y="{y + 11}">pass {i + 1}</text>')
        for bank, (word, lanes) in enumerate(zip(wavefront.words, wavefront.lanes, strict=True)):
            fill = _COLOURS[i % len(_COLOURS)] if lanes else "#ffffff"
            tip = f"word {word}, lanes {', '.join(map(str, lanes))}" if lanes else "idle"
            x = _MARGIN + bank * _CELL_W
            out.append(
                f'<g><title>{tip}</title><rect x="{x}" y="{y}" width="{_CELL_W}" height="{_CELL_H}" fill="{fill}" '
                f'stroke="#bbbbbb"/><text x="{x + 2}" y="{y + 11}">{_label(lanes)}</text></g>'
            )
    return "".join(out) + "</svg>\n"


def bank_png(access: WarpAccess) -> bytes:
    """The grid as a PNG: cells coloured by pass, with the first lane's number."""
    passes = wavefronts_of(access)
    image = np.full((len(passes) * _CELL_H + 1, BANKS * _CELL_W + 1, 3), 255, np.uint8)
    for i, wavefront in enumerate(passes):
        colour = _rgb(_COLOURS[i % len(_COLOURS)])
        for bank, lanes in enumerate(wavefront.lanes):
            y, x = i * _CELL_H, bank * _CELL_W
            image[y : y + _CELL_H + 1, x : x + _CELL_W + 1] = 187
            image[y + 1 : y + _CELL_H, x + 1 : x + _CELL_W] = colour if lanes else 255
            if lanes:
                _draw_number(image, y + 4, x + 5, lanes[0])
    return _encode(image)


def _rgb(colour: str) -> list[int]:
    return [int(colour[i : i + 2], 16) for i in (1, 3, 5)]


def _draw_number(image: NDArray[np.uint8], y: int, x: int, number: int) -> None:
    for place, digit in enumerate(str(number)):
        dots = _DIGITS[int(digit)]
        for row in range(5):
            for column in range(3):
                if dots >> (12 - 3 * row) & 7 & 4 >> column:
                    top, left = y + 2 * row, x + 8 * place + 2 * column
                    image[top : top + 2, left : left + 2] = 40


def _encode(image: NDArray[np.uint8]) -> bytes:
    """A PNG file of an RGB image, shape (rows, columns, 3)."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows, columns, _ = image.shape
    lines = b"".join(b"\0" + row.tobytes() for row in image)
    header = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(lines))
        + chunk(b"IEND", b"")
    )
