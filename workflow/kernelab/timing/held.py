"""The card while it is measured on: locked against others, watched for other processes, its clocks given back."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

from kernelab.device.clocks import locked_clocks, repair_clocks
from kernelab.device.lock import card_lock
from kernelab.device.nvml import Monitor
from kernelab.errors import UserError
from kernelab.plan.config import TimingPolicy

Say = Callable[[str], None]

SETTLE_S = 2.0
"""How long the driver may still list a process that has just ended, such as our last worker."""


@dataclass
class HeldCard:
    """The card while it is held. `lock` is the descriptor that holds it: a worker keeps it even if we are killed."""

    lock: int
    monitor: Monitor
    policy: TimingPolicy
    say: Say
    locked_clock_mhz: int | None = None
    others: list[str] = field(default_factory=list)

    def check(self) -> None:
        """Refuse or warn when another process uses the card."""
        deadline = time.monotonic() + SETTLE_S
        while (found := self.monitor.other_processes({os.getpid()}) or ()) and time.monotonic() < deadline:
            time.sleep(0.1)
        for process in found:
            text = f"{process.name or 'a process'} ({process.pid})"
            if self.policy.busy == "refuse":
                raise UserError(
                    f"the GPU is in use by {text}; wait for it, or set timing.busy: warn in config.yaml"
                )
            if text not in self.others:
                self.others.append(text)
                self.say(f"the GPU is also in use by {text}: times will suffer")


@contextmanager
def held_card(uuid: str, monitor: Monitor, policy: TimingPolicy, say: Say) -> Iterator[HeldCard]:
    """The card, locked for us, with clocks as they are asked for; all is given back however the block ends."""
    if policy.lock_clocks is True:
        raise UserError("config.yaml: timing.lock_clocks: true names no clock; give it in MHz, or false")
    with card_lock(uuid) as lock, _termination_raises(), contextlib.ExitStack() as stack:
        if repaired := repair_clocks(monitor):
            say(repaired)
        card = HeldCard(lock, monitor, policy, say)
        card.check()
        wanted = policy.lock_clocks
        if wanted is not False:
            refusal = stack.enter_context(locked_clocks(monitor, int(wanted)))
            card.locked_clock_mhz = None if refusal else int(wanted)
            if refusal:
                say(f"the SM clock could not be locked at {int(wanted)} MHz: {refusal}")
        yield card


@contextmanager
def _termination_raises() -> Iterator[None]:
    """SIGTERM becomes an exception, so that clocks are freed and the worker is ended."""

    def end(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    try:
        before = signal.signal(signal.SIGTERM, end)
    except ValueError:  # not in the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
