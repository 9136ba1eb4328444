"""Bulk copies (TMA) from global to shared memory: cp.async.bulk and cp.async.bulk.tensor."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .access import Site
from .mbarriers import spread
from .operands import Reader
from .parser import Instruction
from .tensormap import TensorMap

# Bytes that the PTX ISA wants a copy's addresses to be multiples of; the hardware faults on others.
_ALIGNMENT = 16
_TENSOR_ALIGNMENT = 128  # of a tensor copy's shared memory


def _refuse(
    m: Any,
    instruction: Instruction,
    lane: int,
    barrier: int,
    size: int,
    fault: tuple[str, str, int, str | None],
) -> None:
    """Report a bad copy (kind, text, address, array's name); its barrier does not wait for it."""
    kind, text, address, name = fault
    m.run.report(kind, instruction, m, (lane,), text, address, name, 1)
    m.mbarriers.refuse_copy(m, instruction, lane, barrier, size)


def _landed(
    m: Any, instruction: Instruction, lane: int, barrier: int, address: int, size: int, alignment: int
) -> int | None:
    """The storage offset of a bulk copy's target, or None after refusing a bad one."""
    where, _, valid = m.space("shared").locate(np.array([address], np.int64), size)
    past = address % alignment
    if past or not valid[0]:
        name, offset = m.space("shared").describe(address)
        text = f"a bulk copy of {size} bytes to {name} + {offset}"
        if past:
            text += f", an address that is {past} bytes off a {alignment}-byte boundary"
        kind = "misaligned" if past else "out_of_bounds_shared"
        _refuse(m, instruction, lane, barrier, size, (kind, text, address, name))
        return None
    return int(where[0]) + int(m.storage_offset("shared")[lane])


def _read_global(
    m: Any,
    instruction: Instruction,
    lane: int,
    addresses: NDArray[np.int64],
    inside: NDArray[np.bool_],
    element: int,
) -> NDArray[np.uint8]:
    space = m.space("global")
    where, _, valid = space.locate(addresses, element)
    if not valid[inside].all():
        bad = int(addresses[inside & ~valid][0])
        name, offset = space.describe(bad)
        m.run.report(
            "out_of_bounds_global",
            instruction,
            m,
            (lane,),
            f"a bulk copy reads {name or 'no array'} + {offset}",
            bad,
            name,
            int((inside & ~valid).sum()),
        )
    data = np.zeros((len(addresses), element), np.uint8)
    good = inside & valid
    index = where[good, None] + np.arange(element)
    data[good] = space.data[index]
    if (space.flags[index] == 0).any():
        name, offset = space.describe(int(addresses[good][0]))
        m.run.report(
            "uninitialised_read",
            instruction,
            m,
            (lane,),
            f"a bulk copy reads bytes of {name} that nothing has written",
            int(addresses[good][0]),
            name,
            1,
        )
    return data


def tensor_step(
    instruction: Instruction,
    target: Reader,
    target_offset: int,
    map_address: Reader,
    map_offset: int,
    corner: list[Reader],
    barrier: Reader,
    barrier_offset: int,
) -> Any:
    """cp.async.bulk.tensor from global to shared memory."""

    def step(m: Any, lanes: Any) -> None:
        everyone, to = spread(m, lanes, target(m, lanes))
        maps = spread(m, lanes, map_address(m, lanes))[1] + map_offset
        at = spread(m, lanes, barrier(m, lanes))[1] + barrier_offset
        corners = [spread(m, lanes, c(m, lanes).view(np.int32))[1] for c in corner]
        for where, who in m.mbarriers.storage(m, instruction, at, everyone):
            for lane in who.tolist():
                i = int(np.searchsorted(everyone, lane))
                raw = m.run.descriptor(int(maps[i]))
                tensor = TensorMap.decode(raw)
                if tensor is None or len(tensor.box) != len(corners):
                    m.run.report(
                        "invalid_mbarrier",
                        instruction,
                        m,
                        (lane,),
                        f"the copy's tensor map is not one of {len(corners)} dimensions",
                        int(maps[i]),
                        None,
                        1,
                    )
                    continue
                place, size = int(to[i]) + target_offset, tensor.bytes_in_box
                start = _landed(m, instruction, lane, where, place, size, _TENSOR_ALIGNMENT)
                if start is None:
                    continue
                addresses, inside = tensor.fetch([int(c[i]) for c in corners])
                data = _read_global(m, instruction, lane, addresses, inside, tensor.element)
                places = start + tensor.places()[:, None] + np.arange(tensor.element)
                m.mbarriers.launch_copy(
                    m,
                    Site([instruction], "shared", "store", 4, 1),
                    lane,
                    where,
                    places.reshape(-1),
                    data.reshape(-1),
                )

    return step


def bulk_step(
    instruction: Instruction,
    target: Reader,
    target_offset: int,
    source: Reader,
    source_offset: int,
    size: Reader,
    barrier: Reader,
    barrier_offset: int,
) -> Any:
    """cp.async.bulk of consecutive bytes from global to shared memory."""

    def step(m: Any, lanes: Any) -> None:
        everyone, to = spread(m, lanes, target(m, lanes))
        origin = spread(m, lanes, source(m, lanes))[1] + source_offset
        sizes = spread(m, lanes, size(m, lanes))[1]
        at = spread(m, lanes, barrier(m, lanes))[1] + barrier_offset
        for where, who in m.mbarriers.storage(m, instruction, at, everyone):
            for lane in who.tolist():
                i = int(np.searchsorted(everyone, lane))
                place, length = int(to[i]) + target_offset, int(sizes[i])
                start = _landed(m, instruction, lane, where, place, length, _ALIGNMENT)
                if start is None:
                    continue
                if origin[i] % _ALIGNMENT or length % _ALIGNMENT:
                    text = f"a bulk copy's source and size must be multiples of {_ALIGNMENT} bytes"
                    fault = ("misaligned", text, int(origin[i]), None)
                    _refuse(m, instruction, lane, where, length, fault)
                    continue
                addresses = origin[i] + np.arange(length)
                data = _read_global(m, instruction, lane, addresses, np.ones(len(addresses), np.bool_), 1)
                m.mbarriers.launch_copy(
                    m,
                    Site([instruction], "shared", "store", 4, 1),
                    lane,
                    where,
                    start + np.arange(length),
                    data.reshape(-1),
                )

    return step
