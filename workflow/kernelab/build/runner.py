"""The compilers as processes: each takes a prepared folder and leaves kernel.cubin and kernel.ptx in it.

`Nvrtc` keeps one worker (`nvrtc_worker`) through any number of compiles; `Nvcc` starts anew for each. Both run in sessions of
their own, so that Ctrl-C reaches Python alone, and both can be stopped from another thread.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from kernelab.build.toolchain import Toolchain, supported_architectures, tool_environment
from kernelab.errors import UserError

WORKER = Path(__file__).with_name("nvrtc_worker.py")
# All that NVRTC's worker gets of the environment: a string more would move the memory that it compiles in.
_INHERITED = ("LD_LIBRARY_PATH",)
_ANSWER = re.compile(rb"= (-?\d+)\n")


class CompilerKilled(UserError):
    """The compiler was killed from outside, most likely for want of memory: nothing is known of the source."""


@dataclass(frozen=True)
class Outcome:
    """How one compile ended.

    ok       whether it left the two files
    log      what the compiler said
    lasting  whether it would end the same way again: False where the compiler crashed, or took too long
    """

    ok: bool
    log: str
    lasting: bool = True


class Compiler(ABC):
    """One compiler, at work on one source at a time. Used as a context, it leaves nothing running.

    Args:
        toolchain: whose compiler.
        niceness: how far it stands back for other processes, 0 to 19.

    `stopped` says that it will not compile any more.
    """

    def __init__(self, toolchain: Toolchain, niceness: int = 0) -> None:
        self._toolchain = toolchain
        self._niceness = niceness
        self._process: subprocess.Popen[bytes] | None = None
        self.stopped = False
        self._lock = threading.Lock()  # over starting, killing and reaping

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._reap()

    def stop(self) -> None:
        """Kill what runs, and start nothing more. Any thread may call it; `run` then raises CompilerKilled."""
        with self._lock:
            self.stopped = True
            self._kill()

    @abstractmethod
    def run(self, folder: Path, source: str, arch: str, options: list[str], timeout_s: float) -> Outcome:
        """Compile `source`, a path below `folder`.

        Raises:
            UserError: the compiler does not know the architecture, or does not start.
            CompilerKilled: it was killed, by the machine or by `stop`.
        """

    def _start(self, command: list[str], folder: str | Path, environment: Mapping[str, str]) -> None:
        with self._lock:
            if self.stopped:
                raise CompilerKilled(f"{command[0]}: the compiler was stopped")
            try:
                self._process = subprocess.Popen(
                    command,
                    cwd=folder,
                    env=dict(environment),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    bufsize=0,
                    start_new_session=True,
                )
            except OSError as error:
                raise UserError(f"{command[0]}: the compiler does not start: {error.strerror}") from None
            if self._niceness:
                with contextlib.suppress(OSError):
                    os.setpriority(os.PRIO_PROCESS, self._process.pid, self._niceness)

    def _kill(self) -> None:
        if self._process and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)  # with all that it started

    def _reap(self) -> int:
        """Kill what still runs, and give the exit status of the process (0 where none was started)."""
        with self._lock:
            self._kill()
            process, self._process = self._process, None
            if process is None:
                return 0
            for pipe in (process.stdin, process.stdout):
                if pipe:
                    pipe.close()
            return process.wait()

    def _died(self, number: int, output: str) -> Outcome:
        """The outcome of a compile that ended by a signal."""
        if number == signal.SIGKILL:
            raise CompilerKilled(
                f"{self._toolchain.compiler.path}: the compiler was killed: is the machine out of memory?"
            )
        log = f"{output}\nerror: the compiler died of {signal.Signals(number).name}"
        return Outcome(False, log, lasting=False)


class Nvrtc(Compiler):
    """NVRTC, in a worker that is started at the first compile, and again after it died or was too slow."""

    _said = b""

    def run(self, folder: Path, source: str, arch: str, options: list[str], timeout_s: float) -> Outcome:
        library = self._toolchain.compiler.path
        if self._process is None:
            self._said = b""
            environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
            self._start(
                [sys.executable, "-IS", str(WORKER), str(library)], "/", {"LC_ALL": "C", **environment}
            )
        request = "".join(f"{part}\0" for part in (folder, source, arch, *options)).encode()
        try:
            status, said = self._ask(b"%08d%s" % (len(request), request), timeout_s)
        except TimeoutError:
            self._reap()
            return Outcome(False, f"error: the compiler was stopped after {timeout_s:g} s", lasting=False)
        except EOFError:
            code, said = self._reap(), self._said.decode(errors="replace")
            if code >= 0:
                last = said.strip().rpartition("\n")[2]
                raise UserError(f"{library}: NVRTC does not start: {last}: install it again") from None
            return self._died(-code, said)
        except BaseException:  # Ctrl-C: the answer would be taken for the next request's
            self._reap()
            raise
        log = "".join(_text(folder / name) for name in ("nvrtc.log", "output.log")) + said
        if status == 2:
            known = ", ".join(supported_architectures(self._toolchain))
            version = self._toolchain.compiler.version
            raise UserError(f"arch {arch}: this NVRTC ({version}) compiles for {known} only")
        return self._died(-status, log) if status < 0 else Outcome(status == 0, log)

    def _ask(self, request: bytes, timeout_s: float) -> tuple[int, str]:
        """The status that the worker answers, and what it said when it started.

        Raises:
            TimeoutError: no answer in time.
            EOFError: the worker died.
        """
        process = self._process
        assert process
        assert process.stdin
        assert process.stdout
        deadline = time.monotonic() + timeout_s
        with contextlib.suppress(BrokenPipeError):  # it died: the end of its output says so too
            process.stdin.write(request)
        poll = select.poll()
        poll.register(process.stdout, select.POLLIN)
        while not (answer := _ANSWER.search(self._said)):
            if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise TimeoutError
            more = process.stdout.read(4096)
            if not more:
                raise EOFError
            self._said += more
        self._said = self._said[: answer.start()]  # a note on the machine, which goes for every compile
        return int(answer[1]), self._said.decode(errors="replace")


class Nvcc(Compiler):
    """nvcc, in a process for each compile."""

    def run(self, folder: Path, source: str, arch: str, options: list[str], timeout_s: float) -> Outcome:
        (folder / "keep").mkdir()
        nvcc = str(self._toolchain.compiler.path)
        command = [nvcc, "-cubin", f"-arch={arch}", *options, source, "-o", "kernel.cubin"]
        self._start([*command, "--keep", "--keep-dir", "keep"], folder, tool_environment(folder))
        process = self._process
        assert process
        try:
            said, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self._reap()
            return Outcome(False, f"error: the compiler was stopped after {timeout_s:g} s", lasting=False)
        except BaseException:
            self._reap()
            raise
        output, code = said.decode(errors="replace"), self._reap()
        if code < 0:
            return self._died(-code, output)
        if code and re.search(r"Unsupported gpu architecture|not defined for option 'gpu-arch", output):
            known = ", ".join(supported_architectures(self._toolchain))
            raise UserError(f"arch {arch}: this nvcc compiles for {known} only")
        if code == 0:
            (kept,) = (folder / "keep").glob("*.ptx")
            kept.rename(folder / "kernel.ptx")
        return Outcome(code == 0, output)


def make_compiler(toolchain: Toolchain, niceness: int = 0) -> Compiler:
    """The compiler of a toolchain; nothing is started yet."""
    return Nvcc(toolchain, niceness) if toolchain.name == "nvcc" else Nvrtc(toolchain, niceness)


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""
