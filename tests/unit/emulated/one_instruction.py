"""Run one PTX instruction over arrays of operands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelab.device.emulated import GlobalMemory, Launch, emulate, parse_ptx

_REGISTER = {2: "b16", 4: "b32", 8: "b64"}


def evaluate(
    instruction: str, operands: Sequence[np.ndarray], result: type, *, predicate: bool = False
) -> np.ndarray:
    """The results of `instruction`, written with %d for the destination and %s0, %s1, ... for the operands.

    With `predicate` the destination is a predicate, returned as 0 and 1. All lanes hold one element each.
    """
    count = len(operands[0])
    kind = np.dtype(result)
    lines = ["\t.reg .b64 %rd<20>;", "\t.reg .b32 %r<9>;", "\t.reg .pred %p;"]
    params = [f".param .u64 p{i}" for i in range(len(operands) + 1)]
    body = ["mov.u32 %r0, %tid.x;", "mov.u32 %r1, %ctaid.x;", "mad.lo.s32 %r2, %r1, 64, %r0;"]
    for i, array in enumerate(operands):
        size = array.dtype.itemsize
        lines.append(f"\t.reg .{_REGISTER[size]} %s{i};")
        body += [
            f"ld.param.u64 %rd{i}, [p{i}];",
            f"mad.wide.u32 %rd{i}, %r2, {size}, %rd{i};",
            f"ld.global.b{8 * size} %s{i}, [%rd{i}];",
        ]
    lines.append("\t.reg .b32 %d;" if predicate else f"\t.reg .{_REGISTER[kind.itemsize]} %d;")
    out = len(operands)
    if predicate:
        body += [instruction.replace("%d", "%p") + ";", "selp.b32 %d, 1, 0, %p;"]
    else:
        body.append(instruction + ";")
    body += [
        f"ld.param.u64 %rd{out}, [p{out}];",
        f"mad.wide.u32 %rd{out}, %r2, {kind.itemsize}, %rd{out};",
        f"st.global.b{8 * kind.itemsize} [%rd{out}], %d;",
        "ret;",
    ]
    text = (
        ".version 8.5\n.target sm_86\n.address_size 64\n.visible .entry k("
        + ", ".join(params)
        + ")\n{\n"
        + "\n".join(lines)
        + "\n\t"
        + "\n\t".join(body)
        + "\n}\n"
    )
    blocks = -(-count // 64)
    memory = GlobalMemory()
    padded = [np.resize(array, 64 * blocks) for array in operands]
    addresses = [memory.allocate(f"s{i}", array) for i, array in enumerate(padded)]
    addresses.append(memory.allocate("d", np.zeros(64 * blocks, kind), initialised=False))
    result_ = emulate(parse_ptx(text), Launch("k", (blocks, 1, 1), (64, 1, 1), addresses), memory)
    assert result_.hazards == []
    return memory.read("d")[:count]
