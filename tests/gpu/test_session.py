"""The session on a real card: what timing relies on."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pytest

from kernelab.device.cuda_faults import KernelFault, translated
from kernelab.device.identify import list_gpus
from kernelab.device.nvml import Monitor
from kernelab.operation.compare import POISON
from kernelab.operation.launches import Buffer, LaunchConfig
from kernelab.operation.program import Program

if TYPE_CHECKING:
    from kernelab.device.cuda import Session

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not list_gpus(), reason="CUDA shows no GPU here"),
]
PTX = b"""
.version 6.5
.target sm_75
.address_size 64
// out[tid] = value + tid
.visible .entry put(.param .u64 out, .param .u32 value)
{
    .reg .b32 %v, %t;
    .reg .b64 %o, %d;
    ld.param.u64 %o, [out];
    ld.param.u32 %v, [value];
    mov.u32 %t, %tid.x;
    add.u32 %v, %v, %t;
    mul.wide.u32 %d, %t, 4;
    add.u64 %o, %o, %d;
    st.global.u32 [%o], %v;
    ret;
}
// spins for a number of nanoseconds
.visible .entry spin(.param .u64 nanoseconds)
{
    .reg .pred %p;
    .reg .b64 %n, %a, %b;
    ld.param.u64 %n, [nanoseconds];
    mov.u64 %a, %globaltimer;
AGAIN:
    mov.u64 %b, %globaltimer;
    sub.u64 %b, %b, %a;
    setp.lt.u64 %p, %b, %n;
    @%p bra AGAIN;
    ret;
}
\0"""
ONE = (1, 1, 1)


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    from kernelab.device.cuda import Session

    made = Session(list_gpus()[0].uuid)
    yield made
    made.close()


def test_the_card_is_the_one_that_was_asked_for(session: Session) -> None:
    gpu = list_gpus()[0]
    facts = session.facts()
    assert (facts["uuid"], facts["arch"]) == (gpu.uuid, gpu.arch)
    assert session.multiprocessors > 0
    assert session.l2_bytes > 0
    assert session.shared_limit > 48 * 1024
    properties = session.cupy.cuda.runtime.getDeviceProperties(session.index)
    assert properties["name"].decode() == gpu.name


def test_nvml_knows_the_same_card(session: Session) -> None:
    with Monitor(session.uuid) as monitor:
        assert monitor.available, monitor.why_not
        reading = monitor.reading()
        assert reading.temperature_c is None or 0 < reading.temperature_c < 120
        assert reading.sm_clock_mhz is None or 0 < reading.sm_clock_mhz < 5000
        assert reading.power_w is None or 0 < reading.power_w < 2000
        others = monitor.other_processes()
        assert others is None or all(process.pid > 0 for process in others)


def test_bound_launches_take_scalars_arrays_and_what_changes(session: Session) -> None:
    module = session.load_module(PTX)
    out = session.allocate(4 * 32)
    session.fill(out, 0xAB)
    value = ctypes.c_uint32(7)
    fixed = module.bind("put", ONE, (16, 1, 1), 0, out, np.uint32(100))
    changing = module.bind("put", ONE, (8, 1, 1), 0, out, value)
    fixed()
    changing()
    value.value = 50
    module.bind("put", ONE, (4, 1, 1), 0, out, value)()
    session.synchronize()
    words = out.get().view(np.uint32)
    expected = np.concatenate(
        [50 + np.arange(4), 11 + np.arange(4), 108 + np.arange(8), np.full(16, 0xABABABAB)]
    )
    np.testing.assert_array_equal(words, expected)


def test_events_time_a_spin_and_a_limit_ends_the_wait(session: Session) -> None:
    spin = session.load_module(PTX).bind("spin", ONE, ONE, 0, np.uint64(20_000_000))
    start, end = session.event(), session.event()
    start.record(session.stream)
    spin()
    end.record(session.stream)
    with pytest.raises(KernelFault) as fault:
        session.synchronize(limit_s=0.002)
    assert fault.value.status == "timeout"
    session.synchronize(limit_s=10)
    assert 20 <= session.elapsed_ms(start, end) < 25


def test_a_module_that_is_no_module_is_a_launch_error(session: Session) -> None:
    for image in (
        b"no code\0",
        PTX.replace(b"st.global.u32", b"st.nowhere.u32"),
        PTX.replace(b"6.5", b"99.9"),
    ):
        with pytest.raises(KernelFault) as fault:
            session.load_module(image)
        assert fault.value.status == "launch_error"
        assert not fault.value.sticky
    with pytest.raises(KernelFault) as fault:
        session.load_module(PTX).bind("absent", ONE, ONE, 0)
    assert fault.value.status == "launch_error"


def test_arrays_are_poisoned_guarded_and_restored(session: Session) -> None:
    buffers = {"x": Buffer((5, 3)), "y": Buffer((7,)), "z": Buffer((2, 2))}
    x, z = np.arange(15, dtype=np.float32).reshape(5, 3), np.ones((2, 2), np.float32)
    arrays = session.arrays(buffers, ("y", "z"), {"x": x, "z": z})
    outputs = arrays.outputs()
    assert (outputs["y"].view(np.uint32) == POISON).all()
    assert np.isnan(outputs["y"]).all()
    np.testing.assert_array_equal(outputs["z"], z)
    assert arrays.changed_inputs() == []
    assert arrays.damaged_guards() == []
    assert arrays["x"].data.ptr % 256 == 0
    session.fill(arrays["y"], 0)
    session.fill(arrays["z"], 0)
    session.fill(arrays["x"], 0)
    assert arrays.changed_inputs() == ["x: 14 elements"]
    arrays.reset_outputs()
    assert (arrays.outputs()["y"].view(np.uint32) == POISON).all()
    np.testing.assert_array_equal(arrays.outputs()["z"], z)
    arrays.upload({"x": 2 * x, "z": 3 * z})
    assert arrays.changed_inputs() == []
    np.testing.assert_array_equal(arrays.outputs()["z"], 3 * z)
    runtime = session.cupy.cuda.runtime
    runtime.memset(arrays["y"].data.ptr + 28, 0, 1)
    runtime.memset(arrays["x"].data.ptr - 8, 0, 2)
    runtime.deviceSynchronize()
    assert arrays.damaged_guards() == [
        "x: 1 of the 4-byte words before its start, the first at byte -8",
        "y: 1 of the 4-byte words past its end, the first at byte 0 from there",
    ]


def test_a_restore_is_queued_and_does_not_wait(session: Session) -> None:
    z = np.ones(1 << 20, np.float32)
    arrays = session.arrays({"z": Buffer(z.shape)}, ("z",), {"z": z})
    spin = session.load_module(PTX).bind("spin", ONE, ONE, 0, np.uint64(200_000_000))
    session.synchronize()
    started = time.perf_counter()
    spin()
    arrays.reset_outputs()
    assert time.perf_counter() - started < 0.1
    session.synchronize()


def test_a_launch_costs_the_host_microseconds(session: Session) -> None:
    out = session.arrays({"y": Buffer((32,))}, ("y",), {})
    program = Program(
        launches=(LaunchConfig("put", ONE, (32, 1, 1), 0, ("y", "epoch")),),
        workspaces={},
        values={},
        scalars={},
        prepare=None,
    )
    arm = session.load(program, PTX, out)
    arm.launch()
    session.synchronize()
    np.testing.assert_array_equal(out.outputs()["y"].view(np.uint32), 1 + np.arange(32))
    with translated():
        started = time.perf_counter()
        for _ in range(500):
            arm.launch()
        cost = (time.perf_counter() - started) / 500
    session.synchronize()
    np.testing.assert_array_equal(out.outputs()["y"].view(np.uint32), 501 + np.arange(32))
    assert cost < 50e-6, f"{1e6 * cost:.1f} us a launch"
