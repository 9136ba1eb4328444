"""Modules and arms: machine code with its arguments packed once, so that a launch costs the host about a microsecond."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from kernelab.device.cuda_faults import KernelFault, translated
from kernelab.device.cuda_memory import DeviceArrays, GuardedArray
from kernelab.device.cuda_tensor_map import encode_tensor_map
from kernelab.errors import BrokenMachine, UserError
from kernelab.operation.launches import Buffer, Dim3, LaunchConfig
from kernelab.operation.loader import blame
from kernelab.operation.program import EPOCH, Program
from kernelab.plan.expression import Number

if TYPE_CHECKING:
    from kernelab.device.cuda import Session

DEFAULT_SHARED = 48 * 1024  # above this a kernel must opt in; sm_75 and newer
INVALID_VALUE = 1


class Arm(Protocol):
    """Something that can be launched, checked and timed."""

    @property
    def from_ptx(self) -> bool:
        """The driver assembled the PTX, since the cubin is for another architecture; its SASS is not the build's."""

    @property
    def kernels(self) -> int | None:
        """How many kernels one launch enqueues; None where a library decides."""

    def launch(self) -> None:
        """Enqueue the whole sequence on the session's stream. Errors of CuPy's come through untranslated."""

    def damaged_guards(self) -> list[str]:
        """One line for each of its own buffers with writes outside it."""


class Module:
    """Machine code on the card. It stays loaded for as long as the process lives."""

    def __init__(self, session: Session, image: bytes) -> None:
        self._session = session
        self._driver = session.cupy.cuda.driver
        self._handle = self._driver.moduleLoadData(image)
        self._opted_in: dict[int, int] = {}  # dynamic shared memory in bytes, by function

    def bind(
        self, entry: str, grid: Dim3, block: Dim3, dynamic_shared: int, *arguments: Any
    ) -> Callable[[], None]:
        """A launch of one entry with its arguments packed once.

        Args:
            entry: its name.
            grid, block: x, y, z.
            dynamic_shared: bytes.
            arguments: each a NumPy scalar, a cupy.ndarray (its pointer), bytes (by value), or a ctypes object (by
                value, read anew at every launch).

        Raises:
            KernelFault: launch_error, as Session.load.
        """
        with translated():
            pack, keep = self.pack(LaunchConfig(entry, grid, block, dynamic_shared, ()), arguments)
        launch_kernel = self._driver.launchKernel

        def launch(_keep: object = keep) -> None:
            launch_kernel(*pack)

        return launch

    def unload(self) -> None:
        """Free its code on the card; nothing of it may be queued or launched any more."""
        with translated():
            self._driver.moduleUnload(self._handle)

    def pack(self, config: LaunchConfig, arguments: Sequence[Any]) -> tuple[tuple[int, ...], object]:
        """The arguments of cuLaunchKernel for one launch, and what must stay alive while it is used."""
        function = self._function(config)
        storage = [_stored(argument) for argument in arguments]
        self._match(function, config.entry, [ctypes.sizeof(item) for item in storage])
        addresses = (ctypes.c_void_p * max(1, len(storage)))(*(ctypes.addressof(item) for item in storage))
        pack = (
            *(function, *config.grid, *config.block, config.dynamic_shared),
            *(int(self._session.stream.ptr), ctypes.addressof(addresses), 0),
        )
        return pack, (storage, addresses, list(arguments))

    def _function(self, config: LaunchConfig) -> int:
        driver, entry = self._driver, config.entry
        function = int(driver.moduleGetFunction(self._handle, entry))
        threads = config.block[0] * config.block[1] * config.block[2]
        most = driver.funcGetAttribute(driver.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function)
        if threads > most:
            raise KernelFault(
                "launch_error",
                f"{entry}: a block of {threads} threads, but its code allows {most} (launch bounds or registers)",
            )
        static = driver.funcGetAttribute(driver.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function)
        shared, limit = static + config.dynamic_shared, self._session.shared_limit
        if shared > limit:
            raise KernelFault(
                "launch_error",
                f"{entry}: a block needs {shared} bytes of shared memory; the card has {limit}",
            )
        if shared > DEFAULT_SHARED and config.dynamic_shared > self._opted_in.get(function, 0):
            attribute = driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            driver.funcSetAttribute(function, attribute, config.dynamic_shared)
            self._opted_in[function] = config.dynamic_shared
        return function

    def _match(self, function: int, entry: str, sizes: list[int]) -> None:
        """Compare the arguments with the entry's parameters: cuLaunchKernel would read past a list that is too short.

        The driver has told them since CUDA 12.4; an older one is trusted.
        """
        query = getattr(_driver_library(), "cuFuncGetParamInfo", None)
        if query is None:
            return
        wanted: list[int] = []
        offset, size = ctypes.c_size_t(), ctypes.c_size_t()
        while True:
            status = query(
                ctypes.c_void_p(function),
                ctypes.c_size_t(len(wanted)),
                ctypes.byref(offset),
                ctypes.byref(size),
            )
            if status == INVALID_VALUE:
                break
            if status != 0:
                return
            wanted.append(size.value)
        if wanted != sizes:
            raise KernelFault(
                "launch_error",
                f"{entry}: takes {len(wanted)} arguments of {wanted} bytes, but the catalogue passes {len(sizes)} of {sizes}",
            )


class LoadedArm:
    """A build at one problem, ready: module loaded, arguments packed, workspaces allocated, hook called.

    Attributes:
        from_ptx, kernels: see Arm.
    """

    def __init__(
        self, session: Session, program: Program, module: Module, arrays: DeviceArrays, from_ptx: bool
    ) -> None:
        self._session, self._arrays, self._module = session, arrays, module
        self.from_ptx = from_ptx
        self.kernels = len(program.launches)
        self._epoch = ctypes.c_uint32(0)
        self._workspaces = {
            name: GuardedArray(session.cupy, session.stream, buffer)
            for name, buffer in program.workspaces.items()
        }
        self._uploads: list[GuardedArray] = []
        named: dict[str, Any] = {EPOCH: self._epoch, **program.scalars, **arrays}
        named |= {name: guarded.array for name, guarded in self._workspaces.items()}
        named |= self._prepared(program)
        packs = []
        self._keep = []
        for config in program.launches:
            if missing := [name for name in config.arguments if name not in named]:
                raise UserError(
                    f"kernels.yaml: {config.entry}: nothing is called {missing[0]} (prepare returned no such argument)"
                )
            pack, keep = module.pack(config, [named[name] for name in config.arguments])
            packs.append(pack)
            self._keep.append(keep)
        self._packs = tuple(packs)
        self._counted = any(EPOCH in config.arguments for config in program.launches)
        self._launch_kernel = session.cupy.cuda.driver.launchKernel
        session.stream.synchronize()  # workspaces are poisoned or zeroed, descriptors uploaded

    def launch(self) -> None:
        """Enqueue the whole sequence: no allocation, the epoch one higher. CuPy's errors come untranslated."""
        if self._counted:
            self._epoch.value += 1
        for pack in self._packs:
            self._launch_kernel(*pack)

    def unload(self) -> None:
        """Free its code on the card; it can be launched no more, and its buffers go with it."""
        self._module.unload()

    @property
    def guarded(self) -> dict[str, GuardedArray]:
        """Its own buffers: workspaces by name, and what its hook uploaded."""
        return {**self._workspaces, **{f"upload {i}": guarded for i, guarded in enumerate(self._uploads)}}

    def damaged_guards(self) -> list[str]:
        """One line for each workspace with writes outside it."""
        return [
            f"workspace {name}: {damage}"
            for name, guarded in self.guarded.items()
            if (damage := guarded.damage())
        ]

    def tensor_map(self, array: Any, box: tuple[int, ...], **options: Any) -> bytes:
        """See kernelab.operation.program.PrepareDevice."""
        return encode_tensor_map(
            int(array.data.ptr), options.pop("shape", None) or array.shape, box, **options
        )

    def upload(self, data: bytes | np.ndarray[Any, Any]) -> Any:
        """See kernelab.operation.program.PrepareDevice."""
        host = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else np.ascontiguousarray(data)
        guarded = GuardedArray(self._session.cupy, self._session.stream, Buffer(host.shape, host.dtype.name))
        guarded.set(host)
        self._uploads.append(guarded)
        return guarded.array

    def _prepared(self, program: Program) -> dict[str, Any]:
        if program.prepare is None:
            return {}
        file = program.prepare.__code__.co_filename if hasattr(program.prepare, "__code__") else "prepare"
        shown = "/".join(file.split("/")[-3:])
        workspaces = {name: guarded.array for name, guarded in self._workspaces.items()}
        try:
            made = dict(program.prepare(dict(program.values), dict(self._arrays), workspaces, self))
        except (KernelFault, BrokenMachine, MemoryError):
            raise
        except Exception as error:  # the hook is the user's: it may raise anything
            if hasattr(error, "status"):
                raise  # CUDA's own; the session says what it means
            raise UserError(f"{shown}: {program.prepare.__name__} raised at {blame(error, file)}") from None
        for name, value in made.items():
            if not isinstance(value, bytes | np.generic | self._session.cupy.ndarray):
                raise UserError(
                    f"{shown}: {program.prepare.__name__} returned {name} as {type(value).__name__}; "
                    "an argument is a device array, a NumPy scalar or bytes"
                )
        return made


class LibraryArm:
    """A library function, launched through what operation.py returned."""

    from_ptx = False
    kernels = None

    def __init__(
        self,
        session: Session,
        factory: Callable[[Mapping[str, Number], Mapping[str, Any]], Callable[[], None]],
        problem: Mapping[str, Number],
        arrays: DeviceArrays,
    ) -> None:
        file = factory.__code__.co_filename if hasattr(factory, "__code__") else "operation.py"
        shown = "/".join(file.split("/")[-3:])
        try:
            self.launch: Callable[[], None] = factory(dict(problem), dict(arrays))
            self._arrays = arrays  # a library's launch may hold bare pointers into them
        except ImportError as error:
            raise UserError(
                f"{shown}: {factory.__name__} needs a library that is not here: {' '.join(str(error).split())}"
            ) from None
        except Exception as error:  # operation.py is the user's: it may raise anything
            if hasattr(error, "status"):
                raise
            raise UserError(f"{shown}: {factory.__name__} raised at {blame(error, file)}") from None
        if not callable(self.launch):
            raise UserError(f"{shown}: {factory.__name__} must return a function that launches the library")

    def damaged_guards(self) -> list[str]:
        """A library has no buffers of ours."""
        return []


def _stored(argument: Any) -> Any:
    """The bytes of an argument, as a ctypes object."""
    if isinstance(argument, np.generic):
        argument = argument.tobytes()
    if isinstance(argument, bytes):
        return (ctypes.c_char * len(argument)).from_buffer_copy(argument)
    if isinstance(argument, ctypes._SimpleCData):
        return argument
    return ctypes.c_uint64(int(argument.data.ptr))


def _driver_library() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")
