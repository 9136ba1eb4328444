"""CUDA C++ text to PTX with NVRTC, and a small launcher, for the tests of the emulated device."""

from __future__ import annotations

import ctypes
import functools
import importlib.metadata
from dataclasses import dataclass

import numpy as np

from kernelab.device.emulated import GlobalMemory, Launch, Module, Result, emulate, parse_ptx


def _library() -> ctypes.CDLL:
    files = importlib.metadata.files("nvidia-cuda-nvrtc-cu12") or []
    path = next(f for f in files if f.name.startswith("libnvrtc.so"))
    return ctypes.CDLL(str(path.locate()))


@functools.cache
def compile_ptx(source: str, arch: str = "compute_86", options: tuple[str, ...] = ()) -> str:
    """PTX of a CUDA C++ text, with line information."""
    nvrtc = _library()
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"test.cu", 0, None, None)
    flags = [f"--gpu-architecture={arch}".encode(), b"-lineinfo", *(o.encode() for o in options)]
    status = nvrtc.nvrtcCompileProgram(program, len(flags), (ctypes.c_char_p * len(flags))(*flags))
    size = ctypes.c_size_t()
    if status:
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        raise AssertionError(log.value.decode())
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetPTX(program, ptx)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return ptx.value.decode()


@functools.cache
def compiled(source: str, arch: str = "compute_86") -> Module:
    return parse_ptx(compile_ptx(source, arch))


@dataclass
class Ran:
    """A finished launch and its memory."""

    result: Result
    memory: GlobalMemory

    def __getitem__(self, name: str) -> np.ndarray:
        return self.memory.read(name)

    @property
    def kinds(self) -> set[str]:
        return {hazard.kind for hazard in self.result.hazards}


def run_kernel(
    source: str,
    grid: tuple[int, ...],
    block: tuple[int, ...],
    arguments: dict[str, object],
    *,
    uninitialised: tuple[str, ...] = (),
    read_only: tuple[str, ...] = (),
    arch: str = "compute_86",
    entry: str = "k",
    dynamic_shared: int = 0,
    module: Module | None = None,
    **options: object,
) -> Ran:
    """Compile and run; array arguments become device arrays of that name."""
    memory = GlobalMemory()
    values: list[object] = []
    for name, value in arguments.items():
        if isinstance(value, np.ndarray):
            values.append(
                memory.allocate(
                    name, value, initialised=name not in uninitialised, writable=name not in read_only
                )
            )
        else:
            values.append(value)
    launch = Launch(entry, (*grid, 1, 1)[:3], (*block, 1, 1)[:3], values, dynamic_shared)  # type: ignore[arg-type]
    result = emulate(module or compiled(source, arch), launch, memory, **options)  # type: ignore[arg-type]
    return Ran(result, memory)
