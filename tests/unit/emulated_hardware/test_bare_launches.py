"""Launches through the bare driver, with a driver that is made up."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from against_hardware import bare_launches
from against_hardware.bare_launches import BareArray, BareLaunch, Driver, DriverError, read_job


class FakeDriver:
    """libcuda with host memory: it remembers its calls, and a launch adds its scalar to the array C."""

    def __init__(self, failing: str = "") -> None:
        self.calls: list[str] = []
        self.live: dict[int, Any] = {}
        self.failing = failing
        self.live_at_launch: list[int] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            raise AttributeError(name)

        def call(*arguments: Any) -> int:
            self.calls.append(name)
            if name == self.failing:
                return 719
            getattr(self, f"do_{name}", lambda *_: None)(*arguments)
            return 0

        return call

    def do_cuMemAlloc_v2(self, address: Any, size: Any) -> None:
        buffer = ctypes.create_string_buffer(size.value)
        address._obj.value = ctypes.addressof(buffer)
        self.live[ctypes.addressof(buffer)] = buffer

    def do_cuMemFree_v2(self, address: Any) -> None:
        del self.live[address.value]

    def do_cuMemcpyHtoD_v2(self, address: Any, data: bytes, size: Any) -> None:
        ctypes.memmove(address.value, data, size.value)

    def do_cuMemcpyDtoH_v2(self, buffer: Any, address: Any, size: Any) -> None:
        ctypes.memmove(buffer, address.value, size.value)

    def do_cuLaunchKernel(self, function: Any, *rest: Any) -> None:
        pointers = rest[8]
        scalar = ctypes.c_int.from_address(pointers[0]).value
        array = ctypes.c_uint64.from_address(pointers[1]).value
        ctypes.c_int.from_address(array).value += scalar
        self.live_at_launch = [len(buffer) for buffer in self.live.values()]
        self.shape = rest[:7]

    def do_cuGetErrorName(self, status: int, text: Any) -> None:
        text._obj.value = b"CUDA_ERROR_LAUNCH_FAILED"


@pytest.fixture
def launch(tmp_path: Path) -> BareLaunch:
    (tmp_path / "k.cubin").write_bytes(b"\x7fELF")
    (tmp_path / "C.in").write_bytes((40).to_bytes(4, "little"))
    arrays = {
        "C": BareArray(4, str(tmp_path / "C.in"), str(tmp_path / "C.out")),
        "W": BareArray(12, "", ""),
    }
    return BareLaunch(
        str(tmp_path / "k.cubin"),
        "k",
        (2, 1, 1),
        (64, 1, 1),
        65536,
        arrays,
        ("bytes:02000000", "array:C", "array:W"),
    )


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    fake = FakeDriver()
    monkeypatch.setattr(bare_launches.ctypes, "CDLL", lambda name: fake)
    return fake


def test_a_launch_reads_and_leaves_its_files(driver, launch, tmp_path):
    Driver().run(launch)
    assert int.from_bytes((tmp_path / "C.out").read_bytes(), "little") == 42
    assert driver.shape == (2, 1, 1, 64, 1, 1, 65536)
    assert driver.calls.count("cuFuncSetAttribute") == 1
    assert driver.live == {}


def test_nothing_lies_beside_an_array_at_the_launch_and_what_is_not_given_stays_unwritten(driver, launch):
    Driver().run(launch)
    assert sorted(driver.live_at_launch) == [4, 12]
    assert driver.calls.count("cuMemcpyHtoD_v2") == 1
    assert driver.calls.count("cuMemcpyDtoH_v2") == 1


def test_the_end_is_announced(driver, launch, tmp_path, monkeypatch, capsys):
    job = tmp_path / "job.json"
    job.write_text(json.dumps([asdict(launch)]))
    monkeypatch.setattr(sys, "argv", ["bare_launches.py", str(job)])
    assert bare_launches.main() == 0
    assert capsys.readouterr().out == f"{bare_launches.DONE}\n"
    driver.failing = "cuCtxSynchronize"
    assert bare_launches.main() == 3
    assert bare_launches.DONE not in capsys.readouterr().out


def test_a_refused_call_is_named(driver, launch):
    driver.failing = "cuCtxSynchronize"
    with pytest.raises(DriverError, match=r"cuCtxSynchronize: CUDA_ERROR_LAUNCH_FAILED \(719\)"):
        Driver().run(launch)


def test_a_job_is_read_as_it_was_written(launch, tmp_path):
    job = tmp_path / "job.json"
    job.write_text(json.dumps([asdict(launch)]))
    (read,) = read_job(job)
    assert read.arrays == launch.arrays
    assert (read.entry, tuple(read.grid), tuple(read.arguments)) == (
        launch.entry,
        launch.grid,
        launch.arguments,
    )


def test_without_a_driver_it_says_so(launch, tmp_path):
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        pass
    else:
        pytest.skip("there is a driver")
    job = tmp_path / "job.json"
    job.write_text(json.dumps([asdict(launch)]))
    done = subprocess.run(
        [sys.executable, str(bare_launches.__file__), str(job)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert done.stderr.startswith("no CUDA driver: ")
    assert "Traceback" not in done.stderr
