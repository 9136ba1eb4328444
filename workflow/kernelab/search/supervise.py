"""The parent's side of the card's worker: started early, asked heat by heat, ended when it overruns what it announced."""

from __future__ import annotations

import contextlib
import queue
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from tempfile import TemporaryFile
from types import TracebackType

from pydantic import ValidationError

from kernelab.errors import UserError
from kernelab.search.heat import Ruin
from kernelab.search.job import REPLY, Checked, Heat, Raced, Ruined, SearchJob
from kernelab.timing import supervise
from kernelab.timing.faults import ArmFault
from kernelab.timing.job import BROKEN_EXIT, FAULT_EXIT, Announcement, Fault

Heard = Announcement | Fault | Checked | Raced | Ruined


def worker_command() -> list[str]:
    """The command of a worker."""
    return [sys.executable, "-m", "kernelab.search.worker"]


class CardWorker:
    """One worker process. Use it as a context; it never outlives the block.

    Args:
        job: what it is told first.
        command: in place of the worker's own.
        inherited: descriptors that it keeps open, such as the card's lock.
    """

    def __init__(
        self, job: SearchJob, command: Sequence[str] | None = None, *, inherited: Sequence[int] = ()
    ) -> None:
        self._job, self._command, self._inherited = job, command or worker_command(), inherited
        self._stack = contextlib.ExitStack()
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._said = Announcement(step="start", limit_s=supervise.START_S)

    def __enter__(self) -> CardWorker:
        self._errors = self._stack.enter_context(TemporaryFile())
        self._process = self._stack.enter_context(
            supervise.running(self._command, self._errors.fileno(), self._inherited)
        )
        threading.Thread(target=supervise.read_lines, args=(self._process, self._lines), daemon=True).start()
        self._tell(self._job.model_dump_json())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def ask(self, heat: Heat) -> Iterator[Checked | Raced]:
        """Run a heat: what each check said, and at last what the rounds gave.

        Raises:
            ArmFault: a member failed, hung, or took the process down; the worker is of no more use.
            Ruin: the base is wrong after a member was; the same.
            UserError: the machine is to blame.
        """
        self._tell(heat.model_dump_json())
        while True:
            heard = self._hear()
            if isinstance(heard, Announcement):
                self._said = heard
            elif isinstance(heard, Fault):
                supervise.reap(self._process)
                raise ArmFault(heard.status, heard.note, heard.member)
            elif isinstance(heard, Ruined):
                supervise.reap(self._process)
                raise Ruin(heard.name, heard.note)
            else:
                yield heard
                if isinstance(heard, Raced):
                    # Nobody is to blame for what happens between two heats.
                    self._said = Announcement(step="wait", limit_s=supervise.START_S)
                    return

    def _hear(self) -> Heard:
        while True:
            said = self._said
            try:
                line = self._lines.get(timeout=said.limit_s + supervise.GRACE_S)
            except queue.Empty:
                supervise.kill(self._process)
                if not said.member:
                    raise UserError(
                        f"search: the worker hung at '{said.step}' for {said.limit_s:g} s; does nvidia-smi answer?"
                    ) from None
                raise ArmFault(
                    "timeout", f"{said.step}: not done after {said.limit_s:g} s", said.member
                ) from None
            if line is None:
                raise self._ended()
            if (heard := parse(line)) is not None:
                return heard

    def _ended(self) -> ArmFault | UserError:
        """What it means that the worker ended without a last word."""
        code = supervise.reap(self._process)
        self._errors.seek(0)
        words = self._errors.read()[-supervise.TAIL :].decode(errors="replace").strip()
        if code not in (0, FAULT_EXIT, BROKEN_EXIT):
            print(words, file=sys.stderr)  # an error of ours: its trace belongs in the log
        if -code in supervise.CRASHES and self._said.member:
            return ArmFault(
                "launch_error", f"its process ended by {signal.Signals(-code).name}", self._said.member
            )
        last = words.splitlines()[-1] if words else "it said nothing"
        return UserError(f"searching on {self._job.plan.device.name} failed (exit {code}): {last}")

    def _tell(self, text: str) -> None:
        assert self._process.stdin is not None
        # A worker that has ended is noticed when it is listened to.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(text.encode() + b"\n")
            self._process.stdin.flush()


def parse(line: bytes) -> Heard | None:
    """What a line of a worker's says; None where it is noise."""
    for model in (Announcement, Fault):
        with contextlib.suppress(ValidationError):
            return model.model_validate_json(line)
    with contextlib.suppress(ValidationError):
        return REPLY.validate_json(line)
    return None
