"""Every planted fault is reported with its kind and line; its clean twin gives no hazard."""

from __future__ import annotations

import numpy as np
import pytest
from planted import FAULTS
from planted_fault import Fault

from kernelab.device.emulated import KINDS


def launch(run, fault: Fault, bad: bool, **options):
    return run(
        fault.text(bad),
        fault.grid,
        fault.block,
        fault.arguments,
        uninitialised=fault.uninitialised,
        read_only=fault.read_only,
        dynamic_shared=fault.dynamic_shared,
        arch=fault.arch,
        **{**fault.options, **options},
    )


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name.replace(" ", "-"))
def test_fault_is_caught_at_its_line(run, fault):
    hazards = launch(run, fault, True).result.hazards
    of_kind = [h for h in hazards if h.kind == fault.kind]
    assert of_kind, [str(h) for h in hazards]
    named = {line for h in of_kind for line in (h.source_line, h.other_source_line)}
    assert named & fault.lines, (named, fault.lines, [str(h) for h in of_kind])
    assert all(h.entry == "k" and h.ptx_line > 0 and h.source_file for h in of_kind)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name.replace(" ", "-"))
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_clean_twin_has_no_hazard(run, fault, seed):
    result = launch(run, fault, False, order_seed=seed).result
    assert [str(h) for h in result.hazards] == []
    assert result.status == "ok"


@pytest.mark.parametrize(
    "name",
    [
        "2d tensor copy to a stage of 1040 bytes",
        "bulk copy to a misaligned stage",
        "bulk copy from a misaligned source",
    ],
)
def test_nobody_polls_for_a_refused_copy_up_to_the_limit(run, name):
    (fault,) = (fault for fault in FAULTS if fault.name == name)
    hazards = launch(run, fault, True).result.hazards
    assert "timeout" not in {h.kind for h in hazards}, [str(h) for h in hazards]


def test_kinds_are_many_and_documented():
    assert len(FAULTS) >= 25
    assert {f.kind for f in FAULTS} <= KINDS
    assert {"memory_fault", "hazard", "timeout"} == {
        "timeout"
        if f.kind == "timeout"
        else "memory_fault"
        if f.kind.startswith(("out_of", "mis", "write_to"))
        else "hazard"
        for f in FAULTS
    }


def test_half_an_epilogue_unwritten_is_seen_in_the_output(run):
    source = """extern "C" __global__ void k(float* C) {
      for (int i = 0; i < 4; i += %d) C[threadIdx.x * 4 + i] = 1.0f;
    }"""
    whole = run(source % 1, (1,), (64,), {"C": np.zeros(256, np.float32)}, uninitialised=("C",))
    half = run(source % 2, (1,), (64,), {"C": np.zeros(256, np.float32)}, uninitialised=("C",))
    assert not whole.memory.never_written("C").any()
    assert half.memory.never_written("C").sum() == 128
    assert np.isnan(half["C"]).sum() == 128
