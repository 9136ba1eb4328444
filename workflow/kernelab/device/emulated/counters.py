"""Memory counters with Nsight Compute's definitions: requests, sectors and shared-memory wavefronts.

All functions take byte addresses of shape (instructions, warps, 32) and, where some lanes are inactive, a mask of
shape (warps, 32); every warp given has at least one active lane. They return one number per instruction and warp.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

SECTOR = 32  # bytes
BANKS = 32  # four-byte words wide
MATRIX_OPCODES = ("ldmatrix", "stmatrix")  # their parts, a matrix each, are never served together

# Columns of a site's count matrix.
EXECUTED, LANES, REQUESTS, SECTORS, WAVEFRONTS, IDEAL, BYTES = range(7)
COLUMNS = ("executed", "lanes", "requests", "sectors", "wavefronts", "ideal_wavefronts", "bytes")


def by_warp(addresses: NDArray[np.int64], lanes: NDArray[np.int64] | None) -> tuple[NDArray, NDArray | None]:
    """Addresses of shape (instructions, lanes) regrouped by warp; inactive lanes repeat an active one."""
    n = addresses.shape[0]
    if lanes is None:
        return addresses.reshape(n, -1, 32), None
    warps, row = np.unique(lanes >> 5, return_inverse=True)
    full = np.zeros((n, len(warps), 32), np.int64)
    active = np.zeros((len(warps), 32), np.bool_)
    full[:, row, lanes & 31] = addresses
    active[row, lanes & 31] = True
    first = active.argmax(1)
    filler = full[:, np.arange(len(warps)), first][:, :, None]
    return np.where(active, full, filler), active


def _distinct(sorted_rows: NDArray) -> NDArray[np.bool_]:
    fresh = np.ones(sorted_rows.shape, np.bool_)
    fresh[..., 1:] = sorted_rows[..., 1:] != sorted_rows[..., :-1]
    return fresh


def sectors(addresses: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """Distinct 32-byte sectors that each request touches. A naturally aligned access lies in one sector."""
    ids = addresses >> 5
    if width > SECTOR:
        ids = np.concatenate([ids + i for i in range(width // SECTOR)], -1)
    return _distinct(np.sort(ids, axis=-1)).sum(-1)


def wavefronts(
    addresses: NDArray[np.int64], active: NDArray[np.bool_] | None, width: int, parted: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Shared-memory wavefronts of each request, and the fewest that its distinct words would need, or its matrices.

    A wavefront serves at most one word of each of the 32 banks; lanes that read the same word share it. A 64-bit
    request is served by half-warps, a 128-bit one by quarter-warps. Two neighbouring parts are served together when
    every active lane agrees with its neighbour (lane ^ 1), or every one with lane ^ 2, inactive lanes agreeing with any;
    never with `parted`, as for the matrices of ldmatrix and stmatrix.
    """
    shape = addresses.shape
    rows = addresses.reshape(-1, 32)
    mask = None if active is None else np.broadcast_to(active, shape).reshape(-1, 32)
    if width <= 4:
        counts, words = _conflicts(rows, 1)
        result, distinct = counts, words
    else:
        merged = (_pairs_agree(rows, mask, 1) | _pairs_agree(rows, mask, 2)) & (not parted)
        part = 16 if width == 8 else 8
        result = np.zeros(len(rows), np.int64)
        distinct = np.zeros(len(rows), np.int64)
        for select, size in ((merged, 2 * part), (~merged, part)):
            if not select.any():
                continue
            pieces = rows[select].reshape(-1, size)
            if mask is not None:
                pieces, empty = _filled(pieces, mask[select].reshape(-1, size))
            counts, _ = _conflicts(pieces, width // 4)
            if mask is not None:
                counts = np.where(empty, 0, counts)
            result[select] = counts.reshape(-1, 32 // size).sum(1)
        distinct = _conflicts(rows, width // 4)[1]
    ideal = -(-distinct // BANKS)
    if parted:  # each of these parts is a pass of its own, however few its words are
        parts = np.ones((len(rows), 4), np.bool_) if mask is None else mask.reshape(-1, 4, 8).any(2)
        ideal = parts.sum(1)
    return result.reshape(shape[:-1]), ideal.reshape(shape[:-1])


def _pairs_agree(rows: NDArray, mask: NDArray | None, distance: int) -> NDArray[np.bool_]:
    partner = np.arange(32) ^ distance
    same = rows == rows[:, partner]
    if mask is not None:
        same |= ~(mask & mask[:, partner])
    return same.all(1)


def _filled(pieces: NDArray, mask: NDArray) -> tuple[NDArray, NDArray]:
    """Inactive lanes of each piece repeat an active lane of it; a piece without any is marked empty."""
    first = mask.argmax(1)
    empty: NDArray[np.bool_] = ~np.any(mask, axis=1)
    return np.where(mask, pieces, pieces[np.arange(len(pieces)), first][:, None]), empty


def _conflicts(rows: NDArray, words_each: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each row of addresses: the largest number of distinct words in one bank, and the distinct words."""
    words = rows >> 2
    if words_each > 1:
        words = (words[:, :, None] + np.arange(words_each)).reshape(len(rows), -1)
    words = np.sort(words, axis=1)
    fresh = _distinct(words)
    row = np.broadcast_to(np.arange(len(words))[:, None], words.shape)[fresh]
    banks = np.bincount(row * BANKS + (words[fresh] & (BANKS - 1)), minlength=len(words) * BANKS)
    return banks.reshape(-1, BANKS).max(1), fresh.sum(1)


@dataclass(slots=True)
class SiteCounters:
    """What one memory instruction did over the whole launch. Fields not defined for its space are 0.

    `executed`: warps that executed it; `lanes`: threads that did; `requests`: as ncu counts them; `sectors`: 32-byte
    sectors (global); `wavefronts` and `ideal_wavefronts` (shared); `bytes`: asked for by the threads.
    """

    opcode: str
    space: str
    kind: str
    ptx_line: int
    source_file: str | None
    source_line: int | None
    executed: int = 0
    lanes: int = 0
    requests: int = 0
    sectors: int = 0
    wavefronts: int = 0
    ideal_wavefronts: int = 0
    bytes: int = 0

    @property
    def sectors_per_request(self) -> float:
        return self.sectors / self.requests if self.requests else 0.0

    @property
    def wavefronts_per_request(self) -> float:
        return self.wavefronts / self.requests if self.requests else 0.0


@dataclass(slots=True)
class WarpAccess:
    """The costliest request seen of one instruction: one byte address for each lane, None where it was inactive."""

    opcode: str
    space: str
    kind: str
    ptx_line: int
    source_line: int | None
    width: int
    cost: int  # wavefronts (shared) or sectors (global)
    addresses: list[int | None]


@dataclass(slots=True)
class Counters:
    """Counters of one launch: by site, in total, and the dynamic instruction mix (warp-level)."""

    sites: list[SiteCounters] = field(default_factory=list)
    mix: dict[str, int] = field(default_factory=dict)

    def total(self, space: str, kind: str, column: str) -> int:
        """Sum of one column over the sites of a space (`global`, `shared`) and kind (`load`, `store`, `atomic`)."""
        return sum(getattr(s, column) for s in self.sites if s.space == space and s.kind == kind)

    def merge(self, other: Counters) -> None:
        """Add another launch's counters, site for site where they agree."""
        known = {(s.opcode, s.kind, s.space, s.ptx_line): s for s in self.sites}
        for site in other.sites:
            mine = known.get((site.opcode, site.kind, site.space, site.ptx_line))
            if mine is None:
                self.sites.append(site)
                continue
            for column in COLUMNS:
                setattr(mine, column, getattr(mine, column) + getattr(site, column))
        for name, count in other.mix.items():
            self.mix[name] = self.mix.get(name, 0) + count

    def summary(self) -> dict[str, float]:
        """The table's emu_ columns, by name without the prefix."""
        out: dict[str, float] = {}
        for kind in ("load", "store", "atomic"):
            requests, count = self.total("global", kind, "requests"), self.total("global", kind, "sectors")
            out[f"global_{kind}_requests"] = requests
            out[f"global_{kind}_sectors"] = count
            out[f"global_{kind}_bytes"] = self.total("global", kind, "bytes")
            shared, waves = self.total("shared", kind, "requests"), self.total("shared", kind, "wavefronts")
            out[f"shared_{kind}_requests"] = shared
            out[f"shared_{kind}_wavefronts"] = waves
            out[f"shared_{kind}_excess_wavefronts"] = waves - self.total("shared", kind, "ideal_wavefronts")
        out["instructions"] = sum(self.mix.values())
        return out
