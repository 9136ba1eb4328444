"""The card's side of a search: configurations checked, screened and raced, whatever becomes of the worker that does it.

A member that faults, hangs or takes the worker down gets its status and is never run again; a new worker goes on with the rest.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import random
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType

from kernelab.errors import UserError
from kernelab.records.record import settings_digest
from kernelab.search.heat import Ruin
from kernelab.search.job import AGAIN, BASE, Checked, Contender, Heat, Raced
from kernelab.search.journal import HeatEntry, Journal, Verdict
from kernelab.search.racing import FEWEST, SCREEN_ROUNDS, Stage, Standing, rounds_that_fit
from kernelab.search.supervise import CardWorker
from kernelab.timing.faults import ArmFault
from kernelab.timing.rounds import pair_rounds
from kernelab.timing.samples import COLUMNS, Sample, sample_from_row
from kernelab.timing.schedule import seed_of

HEAT = 8
"""Members that share rounds with the base: so many that its two visits cost little, so few that a drift stays small."""

SLOW = 3.0
SLOW_OF_BEST = 1.5
"""By its first sample a member is out if it takes so many times as long as the base, or as the last that would be confirmed."""

SCREEN_SHARE = 0.75
"""Of the budget, at most, goes into checking and screening; the rest decides among the best."""

VISIT_S = 1e-3
"""What a visit costs beside its launches: flush, stamps, and the host."""

ARM = COLUMNS.index("arm")
StartWorker = Callable[[], AbstractContextManager[CardWorker]]


@dataclass(frozen=True)
class Entrant:
    """A configuration that is built: what runs, and the digest of its build."""

    contender: Contender
    digest: str

    @property
    def name(self) -> str:
        return self.contender.name


@dataclass
class Spent:
    """Wall-clock seconds that the card has worked in this run."""

    check: float = 0.0
    race: float = 0.0

    @property
    def total(self) -> float:
        return self.check + self.race


class Contest:
    """Use it as a context: at its end no worker is left.

    Args:
        start: starts a worker; called again for each that is lost.
        journal: what is known, and where to keep what is found out.
        goal: how many are to be confirmed.
        budget_s: of the card's time.
        sample_ms: shortest sample.
        seed: of all orders.
        say: told in a line what happens.

    Attributes:
        base: its code; set before the first heat.
        spent: see there.
        keys: of the heats of the stages that were run or recalled.
    """

    def __init__(
        self,
        start: StartWorker,
        journal: Journal,
        *,
        goal: int,
        budget_s: float,
        sample_ms: float,
        seed: int,
        say: Callable[[str], None],
    ) -> None:
        self.base: Contender | None = None
        self.spent = Spent()
        self.keys: set[str] = set()
        self._start, self._journal, self._say = start, journal, say
        self._goal, self._budget_s = max(FEWEST, goal), budget_s
        self._sample_ms, self._seed = sample_ms, seed
        self._worker: CardWorker | None = None
        self._stack = contextlib.ExitStack()
        self._suspects: set[str] = set()
        self._standings: dict[int, dict[str, Standing]] = {}  # by heat

    def __enter__(self) -> Contest:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lose()

    def warm(self) -> None:
        """Start the worker, so that the card is ready when the first configuration is."""
        if self._worker is None:
            self._worker = self._stack.enter_context(self._start())

    @property
    def left_s(self) -> float:
        """Of the budget."""
        return self._budget_s - self.spent.total

    @property
    def may_screen(self) -> bool:
        """Whether the budget lets another heat be screened."""
        return self.spent.total < SCREEN_SHARE * self._budget_s

    def screen(self, entrants: Sequence[Entrant]) -> None:
        """Check those that never were, and race all of them for the first time; the journal keeps what comes of it."""
        self._heat("", 0, entrants, SCREEN_ROUNDS, self._slow())

    def screening(self, entrant: Entrant) -> Standing | None:
        """What the screening said of a configuration, in this run or an earlier; None where it failed or was too slow."""
        entry = self._journal.screening(entrant.digest)
        if entry is None or not self._sound(entrant):
            return None
        return self._stood(entry).get(entrant.digest)

    def base_ms(self) -> float:
        """A launch of the base, in ms, as the last heat found it; 0 before the first."""
        return next((heat.base_ms for heat in reversed(self._journal.heats) if heat.base_ms), 0.0)

    def too_slow(self, entrant: Entrant) -> tuple[float, float] | None:
        """The first launch's time (ms) and its ratio to the base, of one that was not screened for it."""
        entry = self._journal.screening(entrant.digest)
        if entry is None or not self._sound(entrant):
            return None
        for name, time_ms in entry.slow.items():
            if entry.digests[name] == entrant.digest:
                return time_ms, time_ms / entry.base_ms
        return None

    def log_ratio(self, entrant: Entrant) -> float | None:
        """The log ratio to the base, by the rounds of the screening or the first launches; None where it failed."""
        if (standing := self.screening(entrant)) is not None:
            return standing.centre
        slow = self.too_slow(entrant)
        return None if slow is None else math.log(slow[1])

    def race(
        self, stage: Stage, entrants: Mapping[str, Entrant], times_ms: Mapping[str, float], base_ms: float
    ) -> dict[str, Standing] | None:
        """Run a stage, or recall it; who failed in it is missing. None: there is no budget for it.

        Args:
            stage: its names are those of `entrants`.
            entrants: by name.
            times_ms: of a launch, by name; base_ms: of the base.
        """
        field = settings_digest(sorted(entrants[name].digest for name in stage.names))[:16]
        heats = self._heats(stage, field, entrants)
        missing = [
            key
            for key, part in heats
            if not self._journal.heat(key) and any(self._sound(one) for one in part)
        ]
        rounds = stage.rounds
        if missing:
            visits = [self._visit_s(times_ms[name]) for name in stage.names]
            base = 2 * 2 * self._visit_s(base_ms) * len(heats)
            cost = (2 * sum(visits) + base) * len(missing) / len(heats)
            rounds = rounds_that_fit(stage.rounds, cost, self.left_s, last=stage.last)
            if not rounds:
                return None
        found: dict[str, Standing] = {}
        for number, (key, members) in enumerate(heats):
            self.keys.add(key)
            if self._journal.heat(key) is None:
                self._say(
                    f"stage {stage.number}: {len(stage.names)} configurations, {rounds} rounds: heat {number + 1} of {len(heats)}"
                )
                self._heat(key, stage.number, members, rounds, None)
            entry = self._journal.heat(key)
            by_digest = self._stood(entry) if entry else {}
            for member in members:
                if member.digest in by_digest and self._sound(member):
                    found[member.name] = by_digest[member.digest]
        return found

    def _heats(
        self, stage: Stage, field: str, entrants: Mapping[str, Entrant]
    ) -> list[tuple[str, list[Entrant]]]:
        """The members of a stage in heats of about the same size, each with its key; the same for the same field."""
        ordered = sorted((entrants[name] for name in stage.names), key=lambda one: one.digest)
        random.Random(seed_of(self._seed, field)).shuffle(ordered)
        count = max(1, math.ceil(len(ordered) / HEAT))
        parts = [ordered[number::count] for number in range(count)]
        return [
            (settings_digest([stage.number, field, sorted(one.digest for one in part)])[:16], part)
            for part in parts
        ]

    def _heat(
        self, key: str, stage: int, entrants: Sequence[Entrant], rounds: int, slow: float | None
    ) -> None:
        """One heat, over as many workers as it takes."""
        assert self.base is not None
        number = self._journal.next_number
        waiting = {entrant.name: entrant for entrant in entrants if self._sound(entrant, unknown=True)}
        raced: Raced | None = None
        while waiting and raced is None:
            heat = Heat(
                base=self.base,
                members=[entrant.contender for entrant in waiting.values()],
                check=[name for name, one in waiting.items() if one.digest not in self._journal.verdicts],
                rounds=rounds,
                slow=slow,
                session=f"stage {stage}" if stage else "screening",
                number=number,
                seed=seed_of(self._seed, number),
            )
            raced = self._attempt(heat, waiting)
        if raced is None:
            return
        for name, note in raced.wrong.items():
            self._out(waiting, name, Verdict("wrong_result", note))
        running = {*waiting, BASE, AGAIN}
        self._journal.keep_heat(
            HeatEntry(
                key=key,
                stage=stage,
                number=number,
                digests={name: one.digest for name, one in waiting.items()},
                rows=[row for row in raced.rows if row[ARM] in running],
                slow={name: ms for name, ms in raced.slow.items() if name in waiting},
                base_ms=raced.base_ms,
            )
        )

    def _attempt(self, heat: Heat, waiting: dict[str, Entrant]) -> Raced | None:
        """Ask a worker once. Whoever fails is taken out of `waiting`; None: the others are to be asked again."""
        begun = time.monotonic()
        checked = 0.0
        self.warm()
        assert self._worker is not None
        raced: Raced | None = None
        try:
            for reply in self._worker.ask(heat):
                if isinstance(reply, Checked):
                    checked += reply.seconds
                    verdict = Verdict(reply.status, reply.note)
                    if reply.status == "ok":
                        self._journal.keep_verdict(waiting[reply.name].digest, verdict)
                    else:
                        self._out(waiting, reply.name, verdict)
                else:
                    raced = reply
                    self.spent.race += reply.seconds
            self.spent.check += checked
            return raced
        except ArmFault as fault:
            self._lose()
            self.spent.check += time.monotonic() - begun
            if fault.member not in waiting:
                raise UserError(
                    f"search: its base {self.base.name if self.base else ''} fails: {fault.status}: {fault.note}"
                ) from None
            self._out(waiting, fault.member, Verdict(fault.status, fault.note))
        except Ruin as ruin:
            self._lose()
            self.spent.check += time.monotonic() - begun
            if ruin.name in self._suspects:
                note = f"after it ran, the base is wrong too: it writes where it must not ({ruin.note})"
                self._out(waiting, ruin.name, Verdict("memory_fault", note))
            else:
                # It may have suffered from what another one wrote over; in a fresh process it shows.
                self._suspects.add(ruin.name)
        return None

    def _out(self, waiting: dict[str, Entrant], name: str, verdict: Verdict) -> None:
        entrant = waiting.pop(name)
        self._say(f"{name}: {verdict.status}: {verdict.note}")
        self._journal.keep_verdict(entrant.digest, verdict)

    def _sound(self, entrant: Entrant, *, unknown: bool = False) -> bool:
        verdict = self._journal.verdicts.get(entrant.digest)
        return unknown if verdict is None else verdict.status == "ok"

    def _slow(self) -> float:
        """Beyond how many times the base's time a member is not raced: see SLOW."""
        best = sorted(
            standing.centre
            for heat in self._journal.heats
            if heat.stage == 0
            for digest, standing in self._stood(heat).items()
            if self._journal.verdicts[digest].status == "ok"
        )
        return SLOW if len(best) < self._goal else min(SLOW, SLOW_OF_BEST * math.exp(best[self._goal - 1]))

    def _stood(self, heat: HeatEntry) -> dict[str, Standing]:
        if heat.number not in self._standings:
            self._standings[heat.number] = standings(heat)
        return self._standings[heat.number]

    def _visit_s(self, time_ms: float) -> float:
        return max(time_ms, self._sample_ms) / 1e3 + VISIT_S

    def _lose(self) -> None:
        self._worker = None
        self._stack.close()


def samples_of(entry: HeatEntry, names: Mapping[str, str] | None = None) -> list[Sample]:
    """The samples of a heat. names: by build digest, what its members are called now; others are left out."""
    samples = [sample_from_row(row) for row in entry.rows]
    if names is None:
        return samples
    called = {name: names[digest] for name, digest in entry.digests.items() if digest in names}
    called |= {BASE: BASE, AGAIN: AGAIN}
    return [dataclasses.replace(sample, arm=called[sample.arm]) for sample in samples if sample.arm in called]


def standings(entry: HeatEntry) -> dict[str, Standing]:
    """How each member of a heat stands to the base's two instances, by build digest."""
    samples = samples_of(entry)
    session = samples[0].session if samples else ""
    found = {}
    for name, digest in entry.digests.items():
        own = [sample.time_ms for sample in samples if sample.arm == name]
        if own:
            pair = [_one_process(pair_rounds(samples, session, (base, name)).time) for base in (BASE, AGAIN)]
            found[digest] = Standing(
                tuple((a + b) / 2 for a, b in zip(*pair, strict=True)), statistics.median(own)
            )
    return found


def _one_process(rounds: Iterable[list[float]]) -> list[float]:
    return next(iter(rounds), [])
