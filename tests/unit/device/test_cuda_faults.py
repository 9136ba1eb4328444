"""What CUDA's error codes are taken for, with the exceptions that CuPy itself raises."""

from __future__ import annotations

import pytest

from kernelab.device.cuda_faults import KernelFault, judge, translated
from kernelab.errors import BrokenMachine

cupy = pytest.importorskip("cupy")


@pytest.mark.parametrize(
    ("code", "status", "sticky"),
    [
        (700, "memory_fault", True),
        (716, "memory_fault", True),
        (719, "memory_fault", True),
        (9, "launch_error", False),
        (701, "launch_error", False),
        (209, "launch_error", False),
        (715, "launch_error", True),
        (702, "timeout", True),
    ],
)
def test_the_kernels_own_faults(code: int, status: str, sticky: bool) -> None:
    with pytest.raises(KernelFault) as fault, translated():
        raise cupy.cuda.runtime.CUDARuntimeError(code)
    assert (fault.value.status, fault.value.sticky) == (status, sticky)
    assert "cuda" in str(fault.value).lower()


@pytest.mark.parametrize("code", [2, 3, 35, 46, 100, 214, 802, 999])
def test_the_machines_faults_are_never_a_status(code: int) -> None:
    with pytest.raises(BrokenMachine), translated():
        raise cupy.cuda.runtime.CUDARuntimeError(code)


def test_out_of_memory_is_the_machines() -> None:
    with pytest.raises(BrokenMachine, match="no memory"), translated():
        raise cupy.cuda.memory.OutOfMemoryError(1 << 40, 0, 0)


def test_other_exceptions_and_translated_ones_pass() -> None:
    with pytest.raises(ZeroDivisionError), translated():
        raise ZeroDivisionError
    fault = judge(700, "x")
    with pytest.raises(KernelFault) as raised, translated(), translated():
        raise fault
    assert raised.value is fault
