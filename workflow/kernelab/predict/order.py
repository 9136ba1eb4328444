"""Predict many builds, compiled and simulated on all cores, and put the fastest first."""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from kernelab.build.cache import CompilationCache
from kernelab.build.cards import Card
from kernelab.build.compiler import Compilation
from kernelab.build.toolchain import Toolchain, find_toolchain
from kernelab.digests import Digests
from kernelab.errors import UserError
from kernelab.plan.arms import Arm, Build, Configuration, Plan
from kernelab.plan.catalogue import Kernel, Operation
from kernelab.predict.model import Prediction
from kernelab.predict.prepare import Unpredictable, predict_build
from kernelab.records.build import BuildRecord
from kernelab.records.layout import Layout
from kernelab.records.record import read_record
from kernelab.search.builds import BuildPool, BuildRequest, BuiltConfiguration


@dataclass(frozen=True)
class Candidate:
    """A build at a problem. `name` is how it is shown; `arm` names the problem."""

    name: str
    build: Build
    arm: Arm


@dataclass(frozen=True)
class Ordered:
    """A candidate's prediction, or None and why there is none."""

    name: str
    prediction: Prediction | None
    note: str = ""

    @property
    def ms(self) -> float:
        """For sorting: infinite where nothing was predicted."""
        return self.prediction.ms if self.prediction else math.inf


def order(
    candidates: Sequence[Candidate],
    plan: Plan,
    cards: Mapping[str, Card],
    layout: Layout,
    root: Path = Path(),
    *,
    workers: int | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> list[Ordered]:
    """Predict every candidate; the fastest first, those that cannot be predicted last.

    Args:
        candidates: what to predict.
        plan: of the project; holds catalogue and problems.
        cards: the card that builds of each architecture are for.
        layout: where compilations are kept.
        root: the project's folder.
        workers: processes at once; by default one for each core.
        say: told of progress.

    Raises:
        UserError: a file or a tool is missing.
    """
    found: list[Ordered] = []
    by_toolchain: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        by_toolchain.setdefault(candidate.build.toolchain, []).append(candidate)
    context = multiprocessing.get_context("spawn")  # BuildPool has threads: a fork could inherit a held lock
    with ProcessPoolExecutor(workers, mp_context=context) as processes:
        for name, group in by_toolchain.items():
            toolchain = find_toolchain(name)
            jobs = _jobs(group, plan, cards, layout, root, toolchain, workers)
            for done in _in_parallel(processes, jobs):
                found.append(done)
                say(f"configuration {len(found)} of {len(candidates)}")
    return sorted(found, key=lambda one: (one.ms, one.name))


@dataclass(frozen=True)
class _Job:
    """What a process needs to predict one candidate."""

    name: str
    compilation: Compilation
    build: Build
    operation: str  # as JSON, and so the kernel: what they have parsed cannot be sent
    kernel: str
    problem: Mapping[str, int | float]
    folder: Path
    card: Card
    toolchain: Toolchain

    def run(self) -> Ordered:
        try:
            prediction = predict_build(
                self.compilation,
                self.build,
                Operation.model_validate_json(self.operation),
                Kernel.model_validate_json(self.kernel),
                self.problem,
                folder=self.folder,
                card=self.card,
                disassembler=self.toolchain.disassembler,
            )
        except Unpredictable as why:
            return Ordered(self.name, None, str(why))
        return Ordered(self.name, prediction)


def _jobs(
    candidates: Sequence[Candidate],
    plan: Plan,
    cards: Mapping[str, Card],
    layout: Layout,
    root: Path,
    toolchain: Toolchain,
    workers: int | None,
) -> Iterator[_Job | Ordered]:
    """A job for each candidate as it is compiled, or its fate where it does not compile."""
    digests = Digests(plan, root)
    by_digest: dict[str, list[Candidate]] = {}
    requests = []
    for candidate in candidates:
        digest = digests.of_build(candidate.build)
        if digest not in by_digest:
            named = Configuration(name=candidate.name, levels={}, build=candidate.build, arm=candidate.arm)
            requests.append(BuildRequest(named, digest))
        by_digest.setdefault(digest, []).append(candidate)
    with BuildPool(toolchain, plan, layout, root, workers) as pool:
        for built in pool.run(requests):
            for candidate in by_digest[built.digest]:
                if built.status != "ok":
                    yield Ordered(candidate.name, None, built.note)
                    continue
                yield _Job(
                    candidate.name,
                    _compilation(built, candidate.build, layout),
                    candidate.build,
                    plan.operation(candidate.arm).model_dump_json(),
                    plan.kernel(candidate.arm).model_dump_json(),
                    plan.problems[candidate.arm.problem].values,
                    root / plan.operations[candidate.build.operation].folder,
                    cards[candidate.build.arch],
                    toolchain,
                )


def _compilation(built: BuiltConfiguration, build: Build, layout: Layout) -> Compilation:
    """The compilation of a build: one that is kept for searches, or the files of the step `build`."""
    kept = CompilationCache(layout).load(built.digest)
    if kept is not None:
        return kept
    folder = layout.build(build.key)
    record = read_record(layout.build_record(build.key), BuildRecord, built.digest)
    try:
        cubin, ptx = (folder / "kernel.cubin").read_bytes(), (folder / "kernel.ptx").read_text()
    except OSError as error:
        raise UserError(f"{folder.as_posix()}: {error.strerror}; delete the folder and run again") from None
    return Compilation(True, cubin, ptx, record.log, "", record.command, record.seconds)


def _in_parallel(processes: ProcessPoolExecutor, jobs: Iterable[_Job | Ordered]) -> Iterator[Ordered]:
    """Run the jobs while others still compile."""
    running: set[Future[Ordered]] = set()
    for job in jobs:
        if isinstance(job, Ordered):
            yield job
            continue
        running.add(processes.submit(job.run))
        done, running = wait(running, timeout=0, return_when=FIRST_COMPLETED)
        for future in done:
            yield future.result()
    while running:
        done, running = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            yield future.result()
