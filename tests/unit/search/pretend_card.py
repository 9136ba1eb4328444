"""A card made of numbers, behind the protocol of the real one; run as a worker: `python pretend_card.py WORLD.json`.

The world says what each configuration (by its level of N) does: its time in ms, and how it misbehaves. What is done is
logged, a line each, so that a test can see what was done twice.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

from kernelab.errors import UserError
from kernelab.search.heat import Heats
from kernelab.search.job import Contender, SearchJob
from kernelab.search.worker import main
from kernelab.timing.faults import ArmFault
from kernelab.timing.groups import Member
from kernelab.timing.measure import CardState, Reading
from kernelab.timing.progress import Progress


class PretendCard:
    """See heat.HeatBench."""

    def __init__(self, world: dict[str, Any]) -> None:
        self.world = world
        self.limit_s = float(world.get("limit_s", 30.0))
        self._random = random.Random(world.get("seed", 1))
        self._behaves: dict[str, dict[str, Any]] = {}
        self._loaded: set[str] = set()
        self._ruined = False

    def begin(self, names: Collection[str]) -> None:
        self._log(f"begin {','.join(names)}")

    def admit(self, contender: Contender) -> None:
        level = contender.build.levels["N"]
        self._behaves[contender.arm.name] = self.world["configurations"].get(level, {})

    def load(self, member: Member) -> None:
        self._log(f"load {member.name}")
        how = self._how(member)
        if how.get("load") == "launch_error":
            raise ArmFault("launch_error", "a block needs too much", sticky=False)
        self._loaded.add(member.name)

    def loaded(self, member: Member) -> bool:
        return member.name in self._loaded

    def launch_once(self, member: Member) -> None:
        self._misbehave(member, "check")

    def check(self, member: Member) -> str:
        self._log(f"check {member.name}")
        self._misbehave(member, "check")
        if self._ruined:
            return "the base's bytes were written over"
        return str(self._how(member).get("wrong", ""))

    def sample(self, member: Member, launches: int) -> Reading:
        self._misbehave(member, "sample")
        time.sleep(self.world.get("sleep_s", 0.0))
        time_ms = self._how(member).get("time_ms", 1.0) * self._random.gauss(
            1, self.world.get("noise", 0.001)
        )
        return Reading(time_ms, 1500.0, True)

    def sample_judged(self, member: Member, launches: int) -> tuple[Reading, str]:
        self._log(f"judge {member.name}")
        return self.sample(member, launches), str(self._how(member).get("wrong_later", ""))

    def state(self) -> CardState:
        return CardState(300.0, 50.0, "none")

    def method(self, member: Member) -> tuple[str, int]:
        return "cold", 1

    def _how(self, member: Member) -> dict[str, Any]:
        return self._behaves[member.arm]

    def _misbehave(self, member: Member, when: str) -> None:
        what = self._how(member).get(when)
        if what == "hang":
            time.sleep(600)
        elif what == "timeout":
            raise ArmFault("timeout", "still running after 2 s")
        elif what == "fault":
            raise ArmFault("memory_fault", "illegal address")
        elif what == "segv":
            os.kill(os.getpid(), signal.SIGSEGV)
        elif what == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif what == "broken":
            raise UserError("no memory: out of it")
        elif what == "ruin":
            self._ruined = True

    def _log(self, line: str) -> None:
        with open(self.world["log"], "a") as stream:
            stream.write(line + "\n")


def make(job: SearchJob, progress: Progress) -> Heats:
    world = json.loads(Path(sys.argv[1]).read_text())
    card = PretendCard(world)
    card._log(f"start {os.getpid()}")
    return Heats(card, progress, job.base.problem, job.plan.timing.sample_ms)


if __name__ == "__main__":
    main(make)
