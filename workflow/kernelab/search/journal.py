"""What a search has found out, kept line by line: a killed run goes on from it, and a larger space takes it over.

A line is written when a fact is known, and holds by two digests: of the conditions (card, driver, base, problem, method),
and of the configuration's build. Lines of other conditions are passed over. When a search ends it writes a last line with its own
digest; the journal is then the memory of what the results hold, and is worth nothing without them.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kernelab.records.record import write_text


@dataclass(frozen=True)
class Verdict:
    """What building or checking a configuration ended in: ok, or a status with its note."""

    status: str
    note: str


@dataclass(frozen=True)
class HeatEntry:
    """A heat that was run.

    key       of its stage's field and its members: see contest
    stage     0 is the screening
    number    the heat's, as the samples' `group` has it
    digests   build digest of each member, by the name that the rows use
    rows      samples in the order of timing.samples.COLUMNS
    slow      see job.Raced
    base_ms   the same
    """

    key: str
    stage: int
    number: int
    digests: dict[str, str]
    rows: list[list[Any]]
    slow: dict[str, float]
    base_ms: float


class Journal:
    """The journal of one search under one set of conditions.

    Args:
        path: the file.
        conditions: their digest.
        whole: whether the results that a finished search left are all there.

    Attributes:
        verdicts: by build digest.
        heats: in order.
        finished: the digest of the search that ended last, where nothing was written since.
        next_number: for the next heat.
    """

    def __init__(self, path: Path, conditions: str, *, whole: bool) -> None:
        self._path, self._conditions = path, conditions
        self.verdicts: dict[str, Verdict] = {}
        self.heats: list[HeatEntry] = []
        self.finished = ""
        for line in _lines(path):
            with contextlib.suppress(KeyError, TypeError, AttributeError):  # of another version, or damaged
                self._take(line)
        if self.finished and not whole:
            # Somebody has deleted a result: it is to be measured anew.
            self.verdicts, self.heats, self.finished = {}, [], ""
            path.unlink(missing_ok=True)
        self.next_number = 1 + max((heat.number for heat in self.heats), default=-1)

    def knows(self, digest: str) -> bool:
        """Whether a configuration need not be built, checked or screened again."""
        verdict = self.verdicts.get(digest)
        return verdict is not None and (verdict.status != "ok" or self.screening(digest) is not None)

    def screening(self, digest: str) -> HeatEntry | None:
        """The heat that a configuration was screened in."""
        return next((h for h in self.heats if h.stage == 0 and digest in h.digests.values()), None)

    def heat(self, key: str) -> HeatEntry | None:
        """The heat of a later stage, by its key."""
        return next((heat for heat in self.heats if heat.stage and heat.key == key), None)

    def keep_verdict(self, digest: str, verdict: Verdict) -> None:
        """Write what a build or a check said."""
        if self.verdicts.get(digest) != verdict:
            self.verdicts[digest] = verdict
            self._append({"kind": "verdict", "digest": digest, **asdict(verdict)})

    def keep_heat(self, heat: HeatEntry) -> None:
        """Write what a heat gave."""
        self.heats.append(heat)
        self.next_number = heat.number + 1
        self._append({"kind": "heat", **asdict(heat)})

    def finish(self, digest: str, builds: Collection[str], keys: Collection[str]) -> None:
        """The search has ended: keep what its results and a larger space need, in one step.

        Args:
            digest: the search's.
            builds: digests of its configurations.
            keys: of the heats of its stages; those of an earlier field are of no more use.
        """
        lines: list[dict[str, Any]] = [
            {"kind": "verdict", "digest": build, **asdict(verdict)}
            for build, verdict in self.verdicts.items()
            if build in builds
        ]
        kept = [
            heat
            for heat in self.heats
            if (heat.key in keys if heat.stage else not set(builds).isdisjoint(heat.digests.values()))
        ]
        lines += [{"kind": "heat", **asdict(heat)} for heat in kept]
        lines.append({"kind": "finished", "search": digest, "lines": len(lines)})
        write_text(self._path, "".join(self._text(line) for line in lines))
        self.heats, self.finished = kept, digest

    def _take(self, line: dict[str, Any]) -> None:
        if line.pop("conditions", None) != self._conditions:
            return
        kind = line.pop("kind")
        self.finished = ""
        if kind == "verdict":
            digest = line.pop("digest")
            self.verdicts[digest] = Verdict(**line)
        elif kind == "heat":
            self.heats.append(HeatEntry(**line))
        elif line["lines"] == len(self.verdicts) + len(self.heats):
            self.finished = str(line["search"])

    def _append(self, line: dict[str, Any]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab+") as stream:
            if stream.tell():
                stream.seek(-1, os.SEEK_END)
                if stream.read(1) != b"\n":
                    stream.write(b"\n")  # a run that was killed left half a line
            stream.write(self._text(line).encode())
        self.finished = ""

    def _text(self, line: dict[str, Any]) -> str:
        return json.dumps({"conditions": self._conditions, **line}, separators=(",", ":")) + "\n"


def _lines(path: Path) -> Iterable[dict[str, Any]]:
    """The lines that can be read; the last of a killed run may be cut off."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for line in text.splitlines():
        try:
            read = json.loads(line)
        except ValueError:
            continue
        if isinstance(read, dict):
            yield read
