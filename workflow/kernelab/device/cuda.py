"""A session on one GPU: the card, its stream, modules, arrays and arms.

No kernel of CuPy's own is ever launched (they would be compiled at run time and need CUDA's headers): copies, memsets,
events, and the kernels that are loaded here.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelab.device.cuda_faults import KernelFault, translated
from kernelab.device.cuda_launch import LibraryArm, LoadedArm, Module
from kernelab.device.cuda_memory import DeviceArrays, fill
from kernelab.device.identify import Gpu, list_gpus
from kernelab.errors import UserError
from kernelab.operation.launches import Buffer
from kernelab.operation.program import Program
from kernelab.plan.expression import Number

PEDANTIC = 2  # CUBLAS_PEDANTIC_MATH: FP32 as written, no TF32, no emulation
NOT_READY = 600  # cudaErrorNotReady
FIRST_POLL_S, LAST_POLL_S = 20e-6, 2e-3
# Environment variables that change what libraries compute or how kernels are built and launched.
CONTROLLING = (
    "NVIDIA_TF32_OVERRIDE",
    "CUPY_TF32",
    "CUBLAS_EMULATION_STRATEGY",
    "CUBLAS_EMULATE_SINGLE_PRECISION",
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_FORCE_PTX_JIT",
    "CUDA_DISABLE_PTX_JIT",
    "CUDA_MODULE_LOADING",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
)


class Session:
    """One process's use of one card, on one stream of its own.

    Attributes:
        uuid, index, name, arch: of the card; `index` in CUDA's own order, `arch` such as sm_90.
        multiprocessors, l2_bytes, shared_limit: SMs, L2 size in bytes, most shared memory of a block in bytes (opted in).
        stream: the CuPy stream, non-blocking, current in this thread.
        cupy: the module.

    Raises:
        UserError: CuPy is not installed, or no card here has this UUID.
        BrokenMachine: the card does not answer.
    """

    def __init__(self, uuid: str) -> None:
        gpu = _find(uuid)
        try:
            import cupy
        except ImportError as error:
            raise UserError(
                f"CuPy cannot be imported ({error}); install the extra cuda12 or cuda13 of kernelab"
            ) from None
        self.cupy = cupy
        self.uuid, self.index, self.name, self.arch = gpu.uuid, gpu.index, gpu.name, gpu.arch
        self._runtime = runtime = cupy.cuda.runtime
        self._math_mode: int | None = None
        with translated():
            cupy.cuda.Device(gpu.index).use()
            runtime.free(0)  # makes the primary context, whatever CUDA_MODULE_LOADING says
            self.multiprocessors = int(
                runtime.deviceGetAttribute(runtime.cudaDevAttrMultiProcessorCount, gpu.index)
            )
            self.l2_bytes = int(runtime.deviceGetAttribute(runtime.cudaDevAttrL2CacheSize, gpu.index))
            self.shared_limit = int(
                runtime.deviceGetAttribute(runtime.cudaDevAttrMaxSharedMemoryPerBlockOptin, gpu.index)
            )
            self.stream = cupy.cuda.Stream(non_blocking=True)
            self.stream.use()

    def arrays(
        self, buffers: Mapping[str, Buffer], outputs: tuple[str, ...], inputs: Mapping[str, NDArray[Any]]
    ) -> DeviceArrays:
        """The operation's arrays on the card, between guard bands, with the inputs uploaded and the outputs poisoned.

        Args:
            buffers: shape and dtype of every array.
            outputs: which of them are outputs.
            inputs: host arrays of all that is read; an output among them starts with these values.
        """
        with translated():
            return DeviceArrays(self.cupy, self.stream, buffers, outputs, inputs)

    def load(
        self, program: Program, cubin: bytes, arrays: DeviceArrays, ptx: bytes | None = None
    ) -> LoadedArm:
        """Load a build for one problem, ready to be launched.

        Args:
            program: the launches and what they need.
            cubin: the build's machine code.
            arrays: what its arguments point to.
            ptx: assembled by the driver where the cubin is for another architecture.

        Raises:
            KernelFault: launch_error: the code does not load, an entry is missing, arguments do not match, or a
                block does not fit.
            UserError: the prepare hook raises or returns something that cannot be an argument.
        """
        with translated():
            module, from_ptx = self._module(cubin, ptx)
            return LoadedArm(self, program, module, arrays, from_ptx)

    def load_library(
        self,
        factory: Callable[[Mapping[str, Number], Mapping[str, Any]], Callable[[], None]],
        problem: Mapping[str, Number],
        arrays: DeviceArrays,
    ) -> LibraryArm:
        """A library kernel: what a function of operation.py returns, in pedantic FP32 until the session is closed.

        Raises:
            UserError: the library is not installed, or the function raises.
        """
        with translated():
            self._make_pedantic()
            return LibraryArm(self, factory, problem, arrays)

    def load_module(self, image: bytes) -> Module:
        """Load a cubin or a PTX text.

        Raises:
            KernelFault: launch_error: it does not load.
        """
        with translated():
            return Module(self, image)

    def synchronize(self, limit_s: float | None = None) -> None:
        """Wait until everything on the stream is done.

        Args:
            limit_s: after which to give up. The kernel still runs then: leave the process with os._exit.

        Raises:
            KernelFault: a kernel broke (sticky), or the limit passed (`timeout`, sticky).
        """
        if limit_s is None:
            with translated():
                self.stream.synchronize()
            return
        deadline = time.monotonic() + limit_s
        pause = FIRST_POLL_S
        while (code := self._query()) == NOT_READY:
            if time.monotonic() >= deadline:
                raise KernelFault("timeout", f"still running after {limit_s:g} s", sticky=True)
            time.sleep(pause)
            pause = min(2 * pause, LAST_POLL_S)
        if code != 0:
            # The synchronisation raises the same error, with CUDA's own words.
            with translated():
                self.stream.synchronize()

    def allocate(self, nbytes: int) -> Any:
        """A device array of bytes (cupy.ndarray, uint8), without guard bands, for buffers of the measurement itself."""
        with translated():
            memory = self.cupy.cuda.memory.Memory(nbytes)
            return self.cupy.ndarray((nbytes,), np.uint8, memptr=self.cupy.cuda.MemoryPointer(memory, 0))

    def memory(self) -> tuple[int, int]:
        """The card's free memory and all of it, in bytes."""
        with translated():
            free, total = self._runtime.memGetInfo()
            return int(free), int(total)

    def fill(self, array: Any, byte: int) -> None:
        """Set every byte of a device array, on the stream."""
        with translated():
            fill(self.cupy, self.stream, array.data.ptr, byte, array.nbytes)

    def event(self) -> Any:
        """A CuPy event with timing; record it with `event.record(session.stream)`."""
        with translated():
            return self.cupy.cuda.Event()

    def elapsed_ms(self, start: Any, end: Any) -> float:
        """Milliseconds between two events that have both been reached."""
        with translated():
            return float(self.cupy.cuda.get_elapsed_time(start, end))

    def profiled(self, launch: Callable[[], None]) -> None:
        """One launch between profiler start and stop, waited for."""
        with translated():
            self._runtime.profilerStart()
            launch()
            self.stream.synchronize()
            self._runtime.profilerStop()

    def facts(self) -> dict[str, str | int]:
        """The card, the versions and the environment variables that results depend on, for a record."""
        runtime = self._runtime
        with translated():
            versions = {
                "driver": int(runtime.driverGetVersion()),
                "runtime": int(runtime.runtimeGetVersion()),
            }
        card = {
            "uuid": self.uuid,
            "name": self.name,
            "arch": self.arch,
            "multiprocessors": self.multiprocessors,
        }
        environment = {name: os.environ[name] for name in CONTROLLING if name in os.environ}
        return {**card, "l2_bytes": self.l2_bytes, "cupy": self.cupy.__version__, **versions, **environment}

    def close(self) -> None:
        """Give cuBLAS its math mode back. A dead context is left alone."""
        mode, self._math_mode = self._math_mode, None
        if mode is not None:
            with contextlib.suppress(KernelFault), translated():
                self.cupy.cuda.cublas.setMathMode(self.cupy.cuda.device.get_cublas_handle(), mode)

    def _module(self, cubin: bytes, ptx: bytes | None) -> tuple[Module, bool]:
        try:
            return Module(self, cubin), False
        except self.cupy.cuda.driver.CUDADriverError as error:
            if error.status != 209 or ptx is None:
                raise
        return Module(self, ptx), True

    def _query(self) -> int:
        # streamQuery returns the code; it does not raise it.
        return int(self._runtime.streamQuery(self.stream.ptr))

    def _make_pedantic(self) -> None:
        if self._math_mode is not None:
            return
        try:
            cublas = self.cupy.cuda.cublas
        except ImportError as error:
            raise UserError(
                f"cuBLAS is not here ({' '.join(str(error).split())}); install the extra cuda12 or cuda13 of kernelab"
            ) from None
        handle = self.cupy.cuda.device.get_cublas_handle()
        self._math_mode = int(cublas.getMathMode(handle))
        cublas.setMathMode(handle, PEDANTIC)


def _find(uuid: str) -> Gpu:
    for gpu in list_gpus():
        if gpu.uuid.lower() == uuid.lower():
            return gpu
    listed = "; ".join(f"{gpu.index}: {gpu.name} {gpu.uuid}" for gpu in list_gpus()) or "CUDA shows no GPU"
    raise UserError(
        f"the GPU {uuid} is not here ({listed}); look at CUDA_VISIBLE_DEVICES, or set device in config.yaml"
    )
