"""The bench of a search on a card whose memory is the host's and whose judging kernels run on the emulated device."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scaled_project import ScaledProject

from kernelab.device import cuda_memory, judge
from kernelab.device.cuda_launch import LoadedArm
from kernelab.device.cuda_memory import DeviceArrays, GuardedArray
from kernelab.device.emulated import GlobalMemory, Launch, emulate, parse_ptx
from kernelab.device.stopwatch import Sampled
from kernelab.operation.launches import Buffer
from kernelab.search import bench as bench_module
from kernelab.search.bench import SearchBench
from kernelab.search.job import BASE, Contender, SearchJob
from kernelab.timing import bench as timing_bench
from kernelab.timing.faults import ArmFault
from kernelab.timing.groups import Member

MODULE = parse_ptx(judge.PTX.rstrip(b"\0").decode())


class HostArray(np.ndarray[Any, Any]):
    """A NumPy array with what CuPy's has besides."""

    memptr: Any

    @property
    def data(self) -> Any:  # type: ignore[override]
        return SimpleNamespace(ptr=self.ctypes.data)

    def get(self) -> np.ndarray[Any, Any]:
        return np.array(self)


class HostCupy:
    """The part of CuPy that memory needs, in the host's memory."""

    def __init__(self) -> None:
        self.cuda = SimpleNamespace(runtime=self, memory=self)
        self.cuda.MemoryPointer = lambda memory, offset: SimpleNamespace(
            ptr=memory.ctypes.data + offset, memory=memory
        )
        self.memcpyHostToDevice = self.memcpyDeviceToHost = self.memcpyDeviceToDevice = 0

    def Memory(self, nbytes: int) -> Any:
        return np.zeros(nbytes + 16, np.uint8)[: nbytes + 8]

    def ndarray(self, shape: tuple[int, ...], dtype: Any, memptr: Any) -> HostArray:
        count = int(np.prod(shape)) * np.dtype(dtype).itemsize
        raw = (ctypes.c_uint8 * count).from_address(memptr.ptr)
        made = np.frombuffer(raw, dtype).reshape(shape).view(HostArray)
        made.memptr = memptr
        return made

    def memsetAsync(self, pointer: int, byte: int, nbytes: int, stream: Any) -> None:
        ctypes.memset(pointer, byte, nbytes)

    def memcpyAsync(self, to: int, source: int, nbytes: int, kind: int, stream: Any) -> None:
        ctypes.memmove(to, source, nbytes)


class EmulatedModule:
    """The judging kernels: their operands are copied to the emulated device and their tally back."""

    def bind(self, entry: str, grid: Any, block: Any, shared: int, *arguments: Any) -> Callable[[], None]:
        def pointer(argument: Any) -> int:
            return int(argument.data.ptr) if isinstance(argument, np.ndarray) else int(argument)

        def launch() -> None:
            memory = GlobalMemory()
            count = int(arguments[4] if entry == "judge" else arguments[3])
            sizes = (4, 8, 4) if entry == "judge" else (4, 4)
            addresses: list[Any] = []
            for name, argument, size in zip("abc", arguments, sizes, strict=False):
                at = pointer(argument)
                words = np.frombuffer(ctypes.string_at(at, size * count), f"u{size}") if at else None
                addresses.append(0 if words is None else memory.allocate(name, words))
            tally = pointer(arguments[len(sizes)])
            held = np.frombuffer(ctypes.string_at(tally, 8 * judge.WORDS), np.uint64)
            addresses.append(memory.allocate("tally", held))
            rest = [count, *(float(value) for value in arguments[5:])]
            result = emulate(MODULE, Launch(entry, (2, 1, 1), (64, 1, 1), [*addresses, *rest]), memory)
            assert result.hazards == []
            written = np.ascontiguousarray(memory.read("tally"))
            ctypes.memmove(tally, written.ctypes.data, 8 * judge.WORDS)

        return launch


class Arm:
    """A kernel as a function of the arrays."""

    kernels = 1

    def __init__(self, session: HostSession, arrays: DeviceArrays) -> None:
        self._session, self._arrays = session, arrays
        self.guarded = {"workspace": GuardedArray(session.cupy, session.stream, Buffer((6,)))}

    def launch(self) -> None:
        self._session.launches += 1
        self._session.kernel(self._arrays, self.guarded["workspace"])

    def unload(self) -> None:
        self._session.unloaded += 1

    damaged_guards = LoadedArm.damaged_guards


class HostSession:
    """See cuda.Session."""

    multiprocessors = 1

    def __init__(self) -> None:
        self.cupy = HostCupy()
        self.stream = SimpleNamespace(ptr=0, synchronize=lambda: None)
        self.launches = self.unloaded = 0
        self.free = 10
        self.kernel: Callable[[DeviceArrays, GuardedArray], None] = right

    def arrays(self, buffers: Any, outputs: Any, inputs: Any) -> DeviceArrays:
        return DeviceArrays(self.cupy, self.stream, buffers, outputs, inputs)

    def allocate(self, nbytes: int) -> Any:
        memory = self.cupy.Memory(nbytes)
        return self.cupy.ndarray((nbytes,), np.uint8, self.cupy.cuda.MemoryPointer(memory, 0))

    def fill(self, array: Any, byte: int) -> None:
        array[...] = byte

    def load_module(self, image: bytes) -> EmulatedModule:
        assert image == judge.PTX
        return EmulatedModule()

    def load(self, program: Any, cubin: bytes, arrays: DeviceArrays) -> Arm:
        return Arm(self, arrays)

    def synchronize(self, limit_s: float | None = None) -> None:
        return

    def memory(self) -> tuple[int, int]:
        return self.free, 10


def right(arrays: DeviceArrays, workspace: GuardedArray) -> None:
    arrays["y"][:] = 3 * arrays["x"]


class Stopwatch:
    def __init__(self, session: HostSession) -> None:
        pass

    def cold(self, launch: Any, launches: int, limit_s: float, restore: Any) -> Sampled:
        for _ in range(launches):
            if restore is not None:
                restore()
            launch()
        return Sampled(1.0, 1500.0, True)


@pytest.fixture
def session() -> HostSession:
    return HostSession()


@pytest.fixture
def bench(session: HostSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SearchBench:
    monkeypatch.setattr(cuda_memory, "GUARD_BYTES", 1024)
    monkeypatch.setattr(judge, "GUARD_BYTES", 1024)
    monkeypatch.setattr(timing_bench, "Stopwatch", Stopwatch)
    project = ScaledProject(tmp_path, problems={"few": {"n": 100}})
    plan = project.plan
    (tmp_path / "k.cubin").write_bytes(b"code")
    planned = plan.searches["factors"]
    job = SearchJob(root=str(tmp_path), plan=plan, base=planned.base, references=str(tmp_path / "references"))
    made = SearchBench(job, session, None)  # type: ignore[arg-type]
    made.begin(["a"])
    made.admit(
        Contender(name=BASE, arm=planned.base, build=planned.base_build, cubin=str(tmp_path / "k.cubin"))
    )
    for name in (BASE, "a"):
        made.load(Member(name, planned.base.name, "arm"))
    made.member = Member("a", planned.base.name, "arm")  # type: ignore[attr-defined]
    return made


def check(bench: SearchBench) -> str:
    return bench.check(bench.member)  # type: ignore[attr-defined]


def test_a_right_kernel_passes_and_is_run_on_poison(bench: SearchBench, session: HostSession) -> None:
    assert check(bench) == ""
    session.kernel = lambda arrays, workspace: None
    assert check(bench) == "the kernel wrote nothing to y"


def test_what_is_wrong_is_said_as_the_host_says_it(bench: SearchBench, session: HostSession) -> None:
    def spoilt(arrays: DeviceArrays, workspace: GuardedArray) -> None:
        right(arrays, workspace)
        arrays["y"][41] += 1

    session.kernel = spoilt
    assert check(bench).startswith("1 of 100 elements of y are wrong, the first at y[41]: ")
    session.kernel = right
    assert check(bench) == ""


@pytest.mark.parametrize(
    ("offset", "side"), [(-4, "before its start"), (400, "past its end"), (1420, "past its end")]
)
def test_a_write_outside_an_array_is_a_memory_fault(
    bench: SearchBench, session: HostSession, offset: int, side: str
) -> None:
    def stray(arrays: DeviceArrays, workspace: GuardedArray) -> None:
        right(arrays, workspace)
        ctypes.memset(arrays["y"].data.ptr + offset, 0, 4)

    session.kernel = stray
    with pytest.raises(ArmFault, match=f"writes outside y: 1 of the 4-byte words {side}") as caught:
        check(bench)
    assert (caught.value.status, caught.value.sticky) == ("memory_fault", True)


def test_a_write_outside_a_workspace_is_seen_too(bench: SearchBench, session: HostSession) -> None:
    def stray(arrays: DeviceArrays, workspace: GuardedArray) -> None:
        right(arrays, workspace)
        ctypes.memset(workspace.array.data.ptr + 24, 0, 4)

    session.kernel = stray
    with pytest.raises(ArmFault, match="writes outside workspace workspace: 1 of"):
        check(bench)


def test_a_changed_input_is_seen(bench: SearchBench, session: HostSession) -> None:
    def careless(arrays: DeviceArrays, workspace: GuardedArray) -> None:
        right(arrays, workspace)
        arrays["x"][7] += 1

    session.kernel = careless
    with pytest.raises(ArmFault, match="changed its input x: 1 elements") as caught:
        check(bench)
    assert (caught.value.status, caught.value.sticky) == ("wrong_result", True)


def test_a_judged_sample_is_of_poisoned_outputs(bench: SearchBench, session: HostSession) -> None:
    member = bench.member  # type: ignore[attr-defined]
    reading, wrong = bench.sample_judged(member, 3)
    assert (reading.time_ms, wrong, session.launches) == (1.0, "", 3)

    def once(arrays: DeviceArrays, workspace: GuardedArray) -> None:
        if session.launches < 6:
            right(arrays, workspace)

    session.kernel = once
    assert bench.sample_judged(member, 3)[1] == "the kernel wrote nothing to y"
    assert bench.sample(member, 2).time_ms == 1.0


def test_the_oldest_makes_room_but_nobody_who_is_needed(
    bench: SearchBench, session: HostSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    arm = bench.member.arm  # type: ignore[attr-defined]
    monkeypatch.setattr(bench_module, "MOST_LOADED", 4)
    for name in ("b", "c", "d"):
        bench.begin([name])
        bench.load(Member(name, arm, "arm"))
    assert session.unloaded == 1
    assert not bench.loaded(Member("a", arm, "arm"))
    assert bench.loaded(Member(BASE, arm, "base"))
    session.free = 1
    bench.begin(["b", "e"])
    bench.load(Member("e", arm, "arm"))
    # With no memory left, all go but those that share the next rounds.
    assert [name for name in "bcde" if bench.loaded(Member(name, arm, "arm"))] == ["b", "e"]
