"""ldmatrix and stmatrix are counted by the lanes that give addresses; a prediction asks for bits a thread."""

from __future__ import annotations

import pytest

from kernelab.device.emulated import Counters
from kernelab.device.emulated.counters import SiteCounters
from kernelab.predict.emulation import _traffic
from kernelab.predict.microcode import bits


@pytest.mark.parametrize(
    ("kind", "name", "opcode"), [("load", "ldmatrix", "LDSM.16.M88"), ("store", "stmatrix", "STSM.16.M88")]
)
@pytest.mark.parametrize("matrices", [1, 2, 4])
def test_traffic_is_found_under_what_the_machine_code_says(
    kind: str, name: str, opcode: str, matrices: int
) -> None:
    warps, passes = 6, 2 * matrices
    site = SiteCounters(
        f"{name}.sync.aligned.m8n8.x{matrices}.shared.b16",
        "shared",
        kind,
        1,
        None,
        None,
        executed=warps,
        lanes=warps * 8 * matrices,
        requests=warps,
        wavefronts=warps * passes,
        bytes=warps * 128 * matrices,
    )
    (found,) = _traffic(Counters([site]), []).items()
    sass = opcode + ("" if matrices == 1 else f".{matrices}")
    assert found[0] == (sass.split(".")[0], bits(sass))
    assert found[1].pipe_cycles == passes
