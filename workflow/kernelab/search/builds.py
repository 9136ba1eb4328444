"""The builds of a search: many configurations of one kernel, compiled side by side.

Each thread of the pool has a compiler of its own that stays up from one configuration to the next (`build.runner`); the
threads wait, the compilers work. Nothing is disassembled here: what ptxas reports is enough to race by.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Literal, Self

from kernelab.build.cache import CompilationCache
from kernelab.build.compiler import TIMEOUT_S, compile_source
from kernelab.build.cubin import Cubin
from kernelab.build.resources import Resources, parse_resources
from kernelab.build.runner import Compiler, CompilerKilled, make_compiler
from kernelab.build.source import text_sha256
from kernelab.build.toolchain import Toolchain
from kernelab.digests import Digests
from kernelab.errors import UserError
from kernelab.operation.launches import LaunchRefused, plan_launches
from kernelab.plan.arms import Build, Configuration, Plan
from kernelab.records.build import BuildRecord, EntryRecord
from kernelab.records.layout import Layout
from kernelab.records.record import read_record

NICENESS = 5  # configurations may be timed while others compile: the process that times comes first
_KILLED = "the compiler was killed, twice: is the machine out of memory?"


@dataclass(frozen=True)
class BuildRequest:
    """A configuration to build, none that is excluded, and the digest of its build (`Digests.of_build`)."""

    configuration: Configuration
    digest: str


@dataclass(frozen=True)
class BuiltConfiguration:
    """What became of a request.

    cubin     the machine code's absolute path; None unless `status` is ok
    note      why not, in one line
    registers, spill_bytes, shared_bytes   as in table.csv, of the launches that the configuration's problem takes; None
              where it did not compile or no launch applies
    seconds   of compiling, also where an earlier run did that
    cached    found, and not compiled now
    lasting   False where another attempt may end otherwise: the compiler was killed, crashed or took too long
    """

    configuration: Configuration
    digest: str
    status: Literal["ok", "compile_error"]
    note: str
    cubin: Path | None
    registers: int | None
    spill_bytes: int | None
    shared_bytes: int | None
    seconds: float
    cached: bool
    lasting: bool = True


class BuildPool:
    """Compilers that stay up until the pool is closed: use it as a context. `run` may be called again and again.

    Args:
        toolchain: of every request.
        plan: holds the catalogue and the problems.
        layout: where builds and compilations are kept.
        root: the project's folder.
        workers: compilers at once; by default one for each core that this process may use.
        timeout_s: a compile that takes longer is given up.
    """

    def __init__(
        self,
        toolchain: Toolchain,
        plan: Plan,
        layout: Layout,
        root: Path = Path(),
        workers: int | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self.workers = workers or len(os.sched_getaffinity(0))
        self._toolchain = toolchain
        self._plan = plan
        self._layout = layout
        self._root = root
        self._timeout_s = timeout_s
        self._cache = CompilationCache(layout)
        self._compilers: list[Compiler] = []
        self._stopped = threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the compilers."""
        for compiler in self._compilers:
            compiler.__exit__()
        self._compilers = []

    def stop(self) -> None:
        """Kill what compiles, and have `run` end. Any thread may call it; the pool builds nothing after that."""
        self._stopped.set()
        for compiler in tuple(self._compilers):
            compiler.stop()

    def run(self, requests: Iterable[BuildRequest]) -> Iterator[BuiltConfiguration]:
        """Build every request, and yield each as it is done: not in order. Requests are drawn as compilers come free.

        A generator that is closed early, or left by an exception such as Ctrl-C, kills what still compiles.

        Raises:
            UserError: a file is missing, or the toolchain does not know the architecture.
        """
        feed, results = _Feed(requests), SimpleQueue[BuiltConfiguration | BaseException | None]()
        while len(self._compilers) < self.workers:
            self._compilers.append(make_compiler(self._toolchain, NICENESS))
        if self._stopped.is_set():
            return
        threads = [
            threading.Thread(target=self._work, args=(feed, compiler, results), daemon=True)
            for compiler in self._compilers
        ]
        for thread in threads:
            thread.start()
        running = len(threads)
        try:
            while running:
                item = results.get()
                if self._stopped.is_set():
                    return
                if isinstance(item, BaseException):
                    raise item
                if item is None:
                    running -= 1
                else:
                    yield item
        finally:
            feed.close()
            if running:
                for compiler in self._compilers:
                    compiler.stop()
            for thread in threads:
                thread.join()
            if running:
                self.close()

    def _work(
        self,
        feed: _Feed,
        compiler: Compiler,
        results: SimpleQueue[BuiltConfiguration | BaseException | None],
    ) -> None:
        try:
            for request in feed:
                results.put(self._find(request) or self._make(request, compiler))
        except BaseException as error:
            results.put(error)
        finally:
            results.put(None)

    def _find(self, request: BuildRequest) -> BuiltConfiguration | None:
        """A request that was compiled before, by a search or by the step `build`."""
        build = _build(request)
        compiled = self._cache.record(request.digest)
        if compiled is not None:
            entries = parse_resources(compiled.log) if compiled.ok else {}
            cubin = self._cache.cubin(request.digest) if compiled.ok else None
            return self._built(request, compiled.error, cubin, entries, compiled.seconds, cached=True)
        try:
            record = read_record(self._layout.build_record(build.key), BuildRecord, request.digest)
            cubin = (self._layout.build(build.key) / "kernel.cubin").absolute()
            if record.status == "ok":
                Cubin(cubin.read_bytes())
            elif record.status != "compile_error":
                return None
        except (UserError, OSError, ValueError, struct.error, IndexError):  # none, or damaged
            return None
        found = cubin if record.status == "ok" else None
        return self._built(request, record.note, found, record.entries, record.seconds, cached=True)

    def _make(self, request: BuildRequest, compiler: Compiler) -> BuiltConfiguration:
        build = _build(request)
        source = self._root / self._plan.operations[build.operation].folder / build.source
        seconds, text = 0.0, text_sha256(source)
        for _ in range(2):
            try:
                made = compile_source(
                    source,
                    arch=build.arch,
                    toolchain=self._toolchain,
                    defines={name: str(value) for name, value in build.defines.items()},
                    options=build.options,
                    timeout_s=self._timeout_s,
                    compiler=compiler,
                )
            except CompilerKilled:
                if compiler.stopped:
                    raise
                note = _KILLED
                continue
            seconds += made.seconds
            if made.lasting:
                if Digests(self._plan, self._root).of_build(build) != request.digest:
                    raise UserError(
                        f"{source.as_posix()}: was changed while the search compiled it; run again"
                    )
                self._cache.store(request.digest, made, text)
                cubin = self._cache.cubin(request.digest) if made.ok else None
                return self._built(request, made.error, cubin, parse_resources(made.log), seconds)
            note = made.error
            if made.seconds >= self._timeout_s:
                break  # once is long enough
        return self._built(request, note, None, {}, seconds, lasting=False)

    def _built(
        self,
        request: BuildRequest,
        note: str,
        cubin: Path | None,
        entries: Mapping[str, Resources] | Mapping[str, EntryRecord],
        seconds: float,
        cached: bool = False,
        lasting: bool = True,
    ) -> BuiltConfiguration:
        registers, spill_bytes, shared_bytes = self._figures(request, entries)
        return BuiltConfiguration(
            configuration=request.configuration,
            digest=request.digest,
            status="ok" if cubin else "compile_error",
            note="" if cubin else note,
            cubin=cubin,
            registers=registers,
            spill_bytes=spill_bytes,
            shared_bytes=shared_bytes,
            seconds=seconds,
            cached=cached,
            lasting=lasting,
        )

    def _figures(
        self, request: BuildRequest, entries: Mapping[str, Resources] | Mapping[str, EntryRecord]
    ) -> tuple[int | None, int | None, int | None]:
        """Registers and shared memory of the last launch, spills of all."""
        build, arm, plan = _build(request), request.configuration.arm, self._plan
        if arm is None:
            return None, None, None
        try:
            launches = plan_launches(
                plan.operation(arm), plan.kernel(arm), build.levels, plan.problems[arm.problem].values
            )
            used = [entries[launch.entry] for launch in launches]
        except (LaunchRefused, KeyError):
            return None, None, None
        spilled = sum(entry.spill_store_bytes + entry.spill_load_bytes for entry in used)
        return used[-1].registers, spilled, used[-1].static_shared_bytes + launches[-1].dynamic_shared


class _Feed:
    """Requests, drawn by several threads from one iterator that is used by one at a time."""

    def __init__(self, requests: Iterable[BuildRequest]) -> None:
        self._requests = iter(requests)
        self._lock = threading.Lock()
        self._closed = False

    def close(self) -> None:
        self._closed = True

    def __iter__(self) -> Iterator[BuildRequest]:
        return self

    def __next__(self) -> BuildRequest:
        with self._lock:
            if self._closed:
                raise StopIteration
            try:
                return next(self._requests)
            except BaseException:  # the end, or a fault of the iterator's own
                self._closed = True
                raise


def _build(request: BuildRequest) -> Build:
    build = request.configuration.build
    if build is None:
        raise ValueError(f"{request.configuration.name}: excluded; there is nothing to build")
    return build
