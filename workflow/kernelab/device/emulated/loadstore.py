"""Plain loads and stores: data movement, never-written bytes, read-only arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .access import Site, Touched
from .memory import LOCAL_WINDOW, SHARED_WINDOW, WRITTEN
from .operands import Reader, Writer

Step = Callable[[Any, Any], None]


def check_written(m: Any, site: Site, touched: Touched, lanes: NDArray | None) -> None:
    """Report lanes that read bytes which were never written."""
    space = m.space(site.space)
    key = touched.key
    if key is not None and key in m.written_patterns:
        return
    regions = [space.regions[r] for r in set(touched.pattern.region.tolist()) if r < len(space.regions)]
    if all(region.full or not region.reads_checked for region in regions):
        return
    size = min(site.width, 8)
    index = touched.index * site.element // size
    flags = space.written[size]
    good = flags.take(index, mode="clip") == WRITTEN[size]
    if site.width == 16:
        good &= flags.take(index + 1, mode="clip") == WRITTEN[size]
    if touched.valid is not None:
        good |= ~touched.valid
    if good.all():
        if key is not None:
            m.written_patterns.add(key)
        return
    if site.space == "shared" and m.asynchronous.in_flight:
        good |= m.asynchronous.overlaps(m, touched.index * site.element, site.width)
    if site.space == "shared" and m.mbarriers.copies:
        good |= m.mbarriers.flying[touched.index * site.element]
    for row in np.flatnonzero(~good.all(1)):
        columns = np.flatnonzero(~good[row])
        address = site.address_of(m, touched, int(row), int(columns[0]), lanes)
        name, offset = space.describe(address)
        lane = int(columns[0]) if lanes is None else int(lanes[columns[0]])
        text = f"reads {site.width} bytes at {name} + {offset}, which nothing has written"
        m.run.report(
            "uninitialised_read", site.instructions[row], m, (lane,), text, address, name, len(columns)
        )


def mark_written(m: Any, site: Site, touched: Touched) -> None:
    """Set the written bit of every byte that a store touches."""
    key = touched.key
    if key is not None and key in m.written_patterns:
        return
    space = m.space(site.space)
    if all(space.regions[r].full for r in set(touched.pattern.region.tolist()) if r < len(space.regions)):
        return
    size = min(site.width, 8)
    index = touched.index if touched.valid is None else touched.index[touched.valid]
    index = index * site.element // size
    space.written[size][index] = WRITTEN[size]
    if site.width == 16:
        space.written[size][index + 1] = WRITTEN[size]
    if key is not None and touched.valid is None:
        m.written_patterns.add(key)


def check_in_flight(m: Any, site: Site, touched: Touched, lanes: NDArray | None) -> None:
    """Report lanes that touch shared memory which an asynchronous copy will overwrite."""
    if m.asynchronous.in_flight:
        m.asynchronous.check(m, site, touched, lanes)
    if m.mbarriers.copies:
        m.mbarriers.check(m, site, touched, lanes)


def _extended(words: NDArray, signed: bool, register: np.dtype) -> NDArray:
    """Loaded elements as register bits."""
    if words.dtype.itemsize == register.itemsize:
        return words
    if signed:
        return words.view(f"i{words.dtype.itemsize}").astype(register)
    return words.astype(register)


def load_step(site: Site, writers: Sequence[Writer], register: np.dtype, signed: bool, tracked: bool) -> Step:
    """A step that loads one register for each vector component. `tracked`: races and written bits matter."""

    def step(m: Any, lanes: Any) -> None:
        touched = site.touch(m, lanes)
        words = m.space(site.space).words[site.element]
        if tracked:
            if site.space == "shared":
                check_in_flight(m, site, touched, lanes)
            check_written(m, site, touched, lanes)
            m.run.races.access(m, site, touched, lanes)
        for z, write in enumerate(writers):
            data = words.take(touched.index if z == 0 else touched.index + z, mode="clip")
            if touched.valid is not None:
                data[~touched.valid] = words.dtype.type(np.iinfo(words.dtype).max)
            write(m, lanes, _extended(data, signed, register))

    return step


def store_step(site: Site, readers: Sequence[Reader], tracked: bool) -> Step:
    """A step that stores one register for each vector component, the last instruction's lanes winning."""

    def step(m: Any, lanes: Any) -> None:
        touched = site.touch(m, lanes)
        space = m.space(site.space)
        words = space.words[site.element]
        if tracked:
            if site.space == "shared":
                check_in_flight(m, site, touched, lanes)
            m.run.races.access(m, site, touched, lanes)
        if site.space == "global":
            touched = site.without_read_only(m, touched, lanes)
        mark_written(m, site, touched)
        index, valid = touched.index, touched.valid
        for z, read in enumerate(readers):
            value = read(m, lanes)
            if value.dtype != words.dtype:
                value = value.astype(words.dtype)
            if m.run.reverse:
                value = np.broadcast_to(value, index.shape)
                target, value = index[:, ::-1], value[:, ::-1]
                keep = None if valid is None else valid[:, ::-1]
            else:
                target, keep = index, valid
            if keep is not None:
                target, value = target[keep], np.broadcast_to(value, index.shape)[keep]
            words[target if z == 0 else target + z] = value

    return step


def generic_step(
    make: Callable[[str, int], tuple[Site, Step]], read_address: Callable[[Any, Any], NDArray]
) -> Step:
    """Dispatch lanes with generic addresses to the space that each address lies in."""
    steps: dict[str, Step] = {}
    windows = {"global": 0, "shared": SHARED_WINDOW, "local": LOCAL_WINDOW}

    def step(m: Any, lanes: Any) -> None:
        address = read_address(m, lanes)
        which = np.where(address >= LOCAL_WINDOW, 2, np.where(address >= SHARED_WINDOW, 1, 0))
        which = np.broadcast_to(which, (1, m.lanes if lanes is None else len(lanes)))[0]
        for number, (space, window) in enumerate(windows.items()):
            chosen = which == number
            if not chosen.any():
                continue
            if space not in steps:
                steps[space] = make(space, window)[1]
            if chosen.all():
                steps[space](m, lanes)
            else:
                steps[space](m, np.flatnonzero(chosen) if lanes is None else lanes[chosen])

    return step
