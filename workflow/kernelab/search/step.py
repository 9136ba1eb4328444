"""The step `search`: a space of configurations of one kernel, built, checked and raced on one GPU.

Compilers and card work side by side: the worker that holds the card starts first, and is fed configurations as they are built.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from kernelab.build.toolchain import find_toolchain
from kernelab.device.card import cupy_version, driver_version
from kernelab.device.cuda import CONTROLLING
from kernelab.device.nvml import Monitor
from kernelab.device.stopwatch import METHOD
from kernelab.digests import METHODS, Digests
from kernelab.errors import UserError
from kernelab.plan.arms import Configuration, Plan, PlannedSearch
from kernelab.plan.space import Space
from kernelab.records.layout import Layout
from kernelab.records.record import read_record, settings_digest, write_record
from kernelab.records.search import SearchCard, SearchRecord, read_search, write_search
from kernelab.search.builds import BuildPool, BuildRequest, BuiltConfiguration
from kernelab.search.code import code_sha256
from kernelab.search.contest import HEAT, Contest, Entrant, StartWorker
from kernelab.search.feed import Feed, Pool
from kernelab.search.job import BASE, Contender, SearchJob
from kernelab.search.journal import Journal, Verdict
from kernelab.search.racing import Race
from kernelab.search.rows import Findings, make_record, make_rows, make_samples
from kernelab.search.sampler import make_sampler
from kernelab.search.supervise import CardWorker
from kernelab.timing.held import held_card
from kernelab.timing.samples import write_samples

Say = Callable[[str], None]


@dataclass(frozen=True)
class SearchStep:
    """What the step reads and writes.

    plan      its device is where configurations run; plan.searches holds the search
    name      of the search
    space     its points
    digests   of the plan
    root      the project's folder
    layout    where <name>.csv, .json and .samples.csv.gz go; the journal lies beside them
    workers   compile processes; None: one a core
    """

    plan: Plan
    name: str
    space: Space
    digests: Digests
    root: Path
    layout: Layout
    workers: int | None = None

    @property
    def planned(self) -> PlannedSearch:
        return self.plan.searches[self.name]


def run_search(
    step: SearchStep,
    say: Say = print,
    *,
    pool: AbstractContextManager[Pool] | None = None,
    code: Callable[[BuiltConfiguration], str] | None = None,
    command: Sequence[str] | None = None,
    monitor: Callable[[str], Monitor] = Monitor,
) -> SearchRecord:
    """Search. Without a GPU in the plan everything is built, and nothing measured.

    Args:
        step: what to search, and where to.
        say: told in a line what happens.
        pool: builds, in place of the compilers.
        code: the hash of a configuration's machine code, in place of the disassembler.
        command: of the card's worker, in place of the real one.
        monitor: NVML for a card's UUID.

    Raises:
        UserError: the base does not build or is wrong, the card is in use, or the machine is to blame; what was
            finished is kept, and the next run goes on from it.
    """
    planned, plan = step.planned, step.plan
    begun, started = time.monotonic(), datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    with contextlib.ExitStack() as stack:
        builds = stack.enter_context(
            pool
            or BuildPool(
                find_toolchain(planned.base_build.toolchain), plan, step.layout, step.root, step.workers
            )
        )
        findings = Findings(planned)
        card: SearchCard | None = None
        if plan.device.kind != "gpu":
            _Builder(step, builds, findings).run(None, None, say)
            journal = None
        else:
            nvml = stack.enter_context(monitor(plan.device.uuid))
            held = stack.enter_context(contextlib.ExitStack())  # what outlives every worker
            card = SearchCard(name=plan.device.name, uuid=plan.device.uuid, driver=driver_version(nvml))
            journal = _journal(step, card.driver)
            done = journal.finished == step.digests.search(step.name)
            contest = stack.enter_context(
                Contest(
                    _starter(step, nvml, command, say, held),
                    journal,
                    goal=planned.confirm,
                    budget_s=0.0 if done else planned.budget_s,
                    sample_ms=plan.timing.sample_ms,
                    seed=planned.seed,
                    say=say,
                )
            )
            _Builder(step, builds, findings).run(contest, journal, say)
            _race(findings, contest, say)
            _name_code(findings, code or _disassembler(step))
        findings.seconds.total = time.monotonic() - begun
        write_samples(
            step.layout.search_samples(step.name), make_samples(findings, journal) if journal else []
        )
        rows = make_rows(findings, journal)
        write_search(step.layout.search(step.name), rows)
        digest = step.digests.search(step.name)
        record = make_record(findings, rows, digest, plan.device.id, card, started)
        if journal is not None and journal.finished == digest:
            # Nothing was measured: the record goes on telling when it was, and how long it took.
            with contextlib.suppress(UserError):
                record = read_record(step.layout.search_record(step.name), SearchRecord, digest)
        write_record(step.layout.search_record(step.name), record)
        if journal is not None:
            journal.finish(digest, set(findings.digests.values()), findings.keys)
    return record


class _Builder:
    """Builds what the sampler asks for, and hands to the card what is built."""

    def __init__(self, step: SearchStep, pool: Pool, findings: Findings) -> None:
        self._step, self._pool, self._findings = step, pool, findings
        self._base_digest = step.digests.of_build(step.planned.base_build)

    def run(self, contest: Contest | None, journal: Journal | None, say: Say) -> None:
        sampler = make_sampler(self._step.planned, self._step.space)
        while batch := sampler.ask():
            for configuration in batch:
                self._findings.add(configuration, self._digest(configuration))
            self._batch([c for c in batch if not c.excluded], contest, journal, say, sampler.total)
            entrants = [e for c in batch if (e := self._findings.entrants.get(c.name)) is not None]
            sampler.tell({e.name: contest.log_ratio(e) for e in entrants} if contest else {})
            if journal and not all(journal.knows(entrant.digest) for entrant in entrants):
                return  # the budget is spent: nothing more is learned

    def _batch(
        self,
        batch: list[Configuration],
        contest: Contest | None,
        journal: Journal | None,
        say: Say,
        total: int,
    ) -> None:
        findings = self._findings
        known = journal is not None and all(journal.knows(findings.digests[c.name]) for c in batch)
        if contest and contest.may_screen and not known:
            contest.warm()
        named: dict[str, list[Configuration]] = {}
        for configuration in batch:
            named.setdefault(findings.digests[configuration.name], []).append(configuration)
        ready: list[Entrant] = []
        with Feed(self._pool, self._requests(batch)) as feed:
            for built in feed:
                findings.built[built.digest] = built
                if built.digest == self._base_digest:
                    self._take_base(built, contest)
                for configuration in named.get(built.digest, []):
                    entrant = self._entrant(configuration, built, journal)
                    if entrant and journal and not journal.knows(entrant.digest):
                        ready.append(entrant)
                    else:
                        findings.done += 1
                while contest and contest.base and len(ready) >= HEAT:
                    ready = self._screen(contest, ready, say, total)
            findings.seconds.build += feed.seconds
        while contest and contest.base and ready:
            ready = self._screen(contest, ready, say, total)

    def _screen(self, contest: Contest, ready: list[Entrant], say: Say, total: int) -> list[Entrant]:
        """Screen the first heat of them; the others."""
        heat, rest = ready[:HEAT], ready[HEAT:]
        if contest.may_screen:
            say(f"configuration {self._findings.done + 1} of {total}")
            contest.screen(heat)
        self._findings.done += len(heat)
        return rest

    def _take_base(self, built: BuiltConfiguration, contest: Contest | None) -> None:
        planned = self._step.planned
        if built.cubin is None:
            raise UserError(
                f"search {planned.name}: its base {planned.base_build.key} does not build: {built.note}"
            )
        if contest:
            contest.base = Contender(
                name=BASE, arm=planned.base, build=planned.base_build, cubin=str(built.cubin)
            )

    def _entrant(
        self, configuration: Configuration, built: BuiltConfiguration, journal: Journal | None
    ) -> Entrant | None:
        if built.cubin is None:
            if journal and built.lasting:
                journal.keep_verdict(built.digest, Verdict("compile_error", built.note))
            return None
        assert configuration.arm is not None
        assert configuration.build is not None
        contender = Contender(
            name=configuration.name,
            arm=configuration.arm,
            build=configuration.build,
            cubin=str(built.cubin),
        )
        entrant = Entrant(contender, built.digest)
        self._findings.entrants[configuration.name] = entrant
        return entrant

    def _requests(self, batch: Sequence[Configuration]) -> list[BuildRequest]:
        """The base first: nothing can be raced before it is there. Each build once."""
        planned = self._step.planned
        wanted: dict[str, BuildRequest] = {}
        if self._base_digest not in self._findings.built:
            base = Configuration(name=BASE, levels={}, build=planned.base_build, arm=planned.base)
            wanted[self._base_digest] = BuildRequest(base, self._base_digest)
        for configuration in batch:
            digest = self._findings.digests[configuration.name]
            wanted.setdefault(digest, BuildRequest(configuration, digest))
        return list(wanted.values())

    def _digest(self, configuration: Configuration) -> str:
        return self._step.digests.of_build(configuration.build) if configuration.build else ""


def _race(findings: Findings, contest: Contest, say: Say) -> None:
    """The stages after the screening."""
    screened = {}
    for name, entrant in findings.entrants.items():
        if (standing := contest.screening(entrant)) is not None:
            screened[name] = standing
    race = Race(screened, findings.planned.confirm)
    base_ms = contest.base_ms()
    while (stage := race.next()) is not None:
        times = {name: race.placed[name].standing.time_ms for name in stage.names}
        found = contest.race(stage, findings.entrants, times, base_ms)
        if found is None:
            say(
                f"the budget of {findings.planned.budget_s:g} s is spent with {len(stage.names)} still in the race"
            )
            race.stop(stage)
            break
        race.tell(stage, found)
    findings.placed, findings.keys = race.placed, contest.keys
    findings.slow = {
        name: slow
        for name, entrant in findings.entrants.items()
        if (slow := contest.too_slow(entrant)) is not None
    }
    findings.seconds.check, findings.seconds.race = contest.spent.check, contest.spent.race


def _name_code(findings: Findings, code: Callable[[BuiltConfiguration], str]) -> None:
    """Which machine code the finalists are: a disassembly each, side by side."""
    finalists = [name for name, placed in findings.placed.items() if placed.fate == "finalist"]
    with ThreadPoolExecutor() as threads:
        hashes = threads.map(code, (findings.built[findings.digests[name]] for name in finalists))
        findings.sass = dict(zip(finalists, hashes, strict=True))


def _disassembler(step: SearchStep) -> Callable[[BuiltConfiguration], str]:
    """What hashes a configuration's code; what the last run has hashed is read from its rows."""
    toolchain = find_toolchain(step.planned.base_build.toolchain)
    hashed: dict[str, str] = {}
    with contextlib.suppress(UserError):
        hashed = {row.build_digest: row.sass_sha256 for row in read_search(step.layout.search(step.name))}
    return lambda built: hashed.get(built.digest) or code_sha256(built, toolchain, step.plan, step.layout)


def _journal(step: SearchStep, driver: str) -> Journal:
    planned, plan, layout = step.planned, step.plan, step.layout
    conditions = settings_digest(
        {
            "method": [METHODS["search"], METHOD],
            "base": step.digests.timing_arm(planned.base, planned.base_build),
            "device": plan.device.uuid,
            "driver": driver,
            "cupy": cupy_version(),
            "sample_ms": plan.timing.sample_ms,
            "lock_clocks": plan.timing.lock_clocks,
            "environment": {name: os.environ[name] for name in CONTROLLING if name in os.environ},
        }
    )
    results = (layout.search(step.name), layout.search_record(step.name), layout.search_samples(step.name))
    whole = all(path.is_file() and path.stat().st_size for path in results)
    return Journal(layout.search_journal(step.name), conditions, whole=whole)


def _starter(
    step: SearchStep,
    nvml: Monitor,
    command: Sequence[str] | None,
    say: Say,
    held: contextlib.ExitStack,
) -> StartWorker:
    """What starts a worker: the first takes the card's lock, which is held to the end of the step."""
    plan, planned = step.plan, step.planned
    operation = {planned.operation: plan.operations[planned.operation]}
    kernel = {planned.kernel: operation[planned.operation].kernels[planned.kernel]}
    small = plan.model_copy(
        update={
            "operations": {
                planned.operation: operation[planned.operation].model_copy(update={"kernels": kernel})
            },
            "problems": {planned.problem: plan.problems[planned.problem]},
            "builds": {},
            "arms": {},
            "experiments": {},
            "claims": {},
            "searches": {},
        }
    )

    @functools.cache
    def hold() -> tuple[Callable[[], None], int, str]:
        card = held.enter_context(held_card(plan.device.uuid, nvml, plan.timing, say))
        return card.check, card.lock, held.enter_context(TemporaryDirectory(prefix="kernelab-"))

    @contextmanager
    def start() -> Iterator[CardWorker]:
        check, lock, references = hold()
        check()
        job = SearchJob(root=str(step.root.resolve()), plan=small, base=planned.base, references=references)
        with CardWorker(job, command, inherited=(lock,)) as worker:
            yield worker

    return start
