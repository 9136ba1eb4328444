"""cp.async: data are read when the copy is issued and land in shared memory only at the wait that covers them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .access import Site, Touched
from .loadstore import Step, check_written
from .memory import WRITTEN
from .operands import Reader


@dataclass(slots=True)
class Copy:
    """Copies in flight of one instruction group: what lands where, for which lanes, in which of their groups."""

    site: Site
    touched: Touched
    data: list[NDArray]
    lanes: NDArray[np.int64]
    group: NDArray[np.int64]


class AsyncCopies:
    """The copies that the threads of one cohort have under way."""

    def __init__(self, lanes: int) -> None:
        self._all = np.arange(lanes)
        self.committed = np.zeros(lanes, np.int64)
        self.pending: list[Copy] = []
        self._flying: NDArray[np.uint8] | None = None

    @property
    def in_flight(self) -> bool:
        return bool(self.pending)

    def _bytes(self, m: Any) -> NDArray[np.uint8]:
        size = m.space("shared").data.size
        if self._flying is None or self._flying.size != size:
            self._flying = np.zeros(size, np.uint8)
        return self._flying

    def issue(self, m: Any, site: Site, touched: Touched, data: list[NDArray], lanes: NDArray | None) -> None:
        where = self._all if lanes is None else lanes
        self._mark(m, site, touched, 1)
        self.pending.append(Copy(site, touched, data, where, self.committed[where].copy()))

    def commit(self, lanes: NDArray | None) -> None:
        self.committed[self._all if lanes is None else lanes] += 1

    def wait(self, m: Any, lanes: NDArray | None, keep: int | None) -> None:
        """Land every copy of the waiting lanes but those of their last `keep` groups (None: all of them)."""
        waiting = np.zeros(len(self._all), np.bool_)
        waiting[self._all if lanes is None else lanes] = True
        remaining = []
        for copy in self.pending:
            done = waiting[copy.lanes]
            if keep is not None:
                done &= copy.group < self.committed[copy.lanes] - keep
            if done.all():
                self._land(m, copy)
            elif done.any():
                self._land(m, _part(copy, done))
                remaining.append(_part(copy, ~done))
            else:
                remaining.append(copy)
        self.pending = remaining

    def _land(self, m: Any, copy: Copy) -> None:
        site, touched = copy.site, copy.touched
        space = m.space("shared")
        words, written = space.words[site.element], space.written[site.element]
        for z, value in enumerate(copy.data):
            index = touched.index + z
            if touched.valid is not None:
                index, value = index[touched.valid], value[touched.valid]
            words[index] = value
            written[index] = WRITTEN[site.element]
        self._mark(m, site, touched, 0)
        everyone = len(copy.lanes) == len(self._all)
        m.run.races.access(m, site, touched, None if everyone else copy.lanes)

    def _mark(self, m: Any, site: Site, touched: Touched, value: int) -> None:
        flags = self._bytes(m).view(f"u{site.element}")
        index = touched.index if touched.valid is None else touched.index[touched.valid]
        for z in range(site.vector):
            flags[index + z] = WRITTEN[site.element] * value

    def overlaps(self, m: Any, first_byte: NDArray, width: int) -> NDArray[np.bool_]:
        """Which accesses of `width` bytes touch bytes that a copy in flight will overwrite."""
        flags = self._bytes(m)
        result = flags[first_byte] != 0
        for i in range(1, width):
            result |= flags[first_byte + i] != 0
        return result

    def check(self, m: Any, site: Site, touched: Touched, lanes: NDArray | None) -> None:
        """Report lanes that touch shared memory which a copy in flight will overwrite."""
        bad = self.overlaps(m, touched.index * site.element, site.width)
        if touched.valid is not None:
            bad &= touched.valid
        if not bad.any():
            return
        for row in np.flatnonzero(bad.any(1)):
            columns = np.flatnonzero(bad[row])
            address = site.address_of(m, touched, int(row), int(columns[0]), lanes)
            name, offset = m.space("shared").describe(address)
            lane = int(columns[0]) if lanes is None else int(lanes[columns[0]])
            verb = "writes" if site.kind == "store" else "reads"
            m.run.report(
                "cp_async_not_waited",
                site.instructions[row],
                m,
                (lane,),
                f"{verb} {name} + {offset} while a cp.async into it is under way (no wait covers it)",
                address,
                name,
                len(columns),
            )


def _part(copy: Copy, chosen: NDArray[np.bool_]) -> Copy:
    old = copy.touched
    pattern = old.pattern
    touched = Touched(
        pattern,
        old.index[:, chosen],
        np.zeros(len(old.index), np.int64),
        None if old.valid is None else old.valid[:, chosen],
    )
    return Copy(copy.site, touched, [d[:, chosen] for d in copy.data], copy.lanes[chosen], copy.group[chosen])


def copy_step(shared: Site, remote: Site, limits: Reader | None, ignore: bool) -> Step:
    """A step that issues copies. `limits` reads the source size (or, with `ignore`, the ignore predicate)."""
    partial: dict[int, Site] = {}

    def fetch(m: Any, site: Site, lanes: Any) -> list[NDArray]:
        touched = site.touch(m, lanes)
        check_written(m, site, touched, lanes)
        m.run.races.access(m, site, touched, lanes)
        words = m.space("global").words[site.element]
        data = [words.take(touched.index + z, mode="clip") for z in range(site.vector)]
        if touched.valid is not None:
            for value in data:
                value[~touched.valid] = np.iinfo(value.dtype).max
        return data

    def limited(m: Any, lanes: Any, index: NDArray) -> list[NDArray]:
        assert limits is not None
        where = np.arange(m.lanes) if lanes is None else lanes
        sizes = np.broadcast_to(limits(m, lanes), index.shape)[0]
        sizes = np.where(sizes, 0, shared.width) if ignore else np.minimum(sizes, shared.width)
        if (sizes == shared.width).all():
            return fetch(m, remote, lanes)
        result = np.zeros((len(where), shared.width), np.uint8)
        for size in np.unique(sizes).tolist():
            if size == 0:
                continue
            chosen = sizes == size
            part = lanes if chosen.all() else where[chosen]
            site = remote if size == shared.width else partial.get(size)
            if site is None:
                site = partial[size] = _partial_site(remote, size)
            pieces = fetch(m, site, part)
            packed = np.stack([p[0] for p in pieces], -1)
            result[chosen, :size] = np.ascontiguousarray(packed).view(np.uint8).reshape(len(packed), -1)
        words = result.view(f"u{shared.element}")
        return [np.ascontiguousarray(words[:, z])[None] for z in range(shared.vector)]

    def step(m: Any, lanes: Any) -> None:
        touched = shared.touch(m, lanes)
        m.asynchronous.check(m, shared, touched, lanes)
        data = fetch(m, remote, lanes) if limits is None else limited(m, lanes, touched.index)
        m.run.races.access(m, shared, touched, lanes)
        m.asynchronous.issue(m, shared, touched, data, lanes)

    return step


def _partial_site(remote: Site, size: int) -> Site:
    """A site that reads only the first `size` bytes of each copy, aligned as the whole copy must be."""
    element = 4 if size % 4 == 0 else 1
    site = Site(remote.instructions, "global", "load", element, size // element)
    site.alignment = remote.width
    site.member, site.offsets, site.read_base = remote.member, remote.offsets, remote.read_base
    return site
