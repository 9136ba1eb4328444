"""A fresh copy of the project, with caches of its own, and commands in it under a clock and a limit."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelab.records.search import SearchRow, read_search

COPIED = ("Snakefile", "config.yaml", "kernels", "workflow", "profiles", "envs", "benchmarks")


@dataclass(frozen=True)
class Ran:
    """A command: its exit status (None: stopped at its limit), its wall seconds, and what it printed."""

    status: int | None
    wall_s: float
    words: str


class FreshProject:
    """A copy without results, so that nothing is compiled or measured yet; CuPy's and the driver's caches are empty too.

    Args:
        root: the project.
        folder: where the copy goes; must not be there yet.
    """

    def __init__(self, root: Path, folder: Path) -> None:
        self.folder = folder / "project"
        self._caches = folder / "caches"
        for name in COPIED:
            if (root / name).is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(root / name, self.folder / name, ignore=ignored)
            else:
                self.folder.mkdir(parents=True, exist_ok=True)
                shutil.copy(root / name, self.folder)

    def run(self, arguments: Sequence[str], limit_s: float) -> Ran:
        """Run `python ...` in the copy, with everything that it starts, and stop all of it at the limit."""
        given = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
        # The copy's own package, whatever path the caller came by; other packages as they are.
        kept = [str(Path(path).resolve()) for path in given if not (Path(path) / "kernelab").is_dir()]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(
                [str(self.folder / "workflow"), str(self.folder / "benchmarks"), *kept]
            ),
            "CUPY_CACHE_DIR": str(self._caches / "cupy"),
            "CUDA_CACHE_PATH": str(self._caches / "cuda"),
            "PYTHONUNBUFFERED": "1",
        }
        start = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            words, _ = process.communicate(timeout=limit_s)
            status: int | None = process.returncode
        except subprocess.TimeoutExpired:
            _stop(process)
            words, _ = process.communicate()
            status = None
        except BaseException:
            _stop(process)
            raise
        return Ran(status, time.perf_counter() - start, words.decode(errors="replace"))

    def searched(self, name: str) -> tuple[dict[str, Any], list[SearchRow]]:
        """The record and the rows of a search that was run here.

        Raises:
            FileNotFoundError: none was.
        """
        found = sorted((self.folder / "results").glob(f"*/search/{name}.json"))
        if not found:
            raise FileNotFoundError(f"results/*/search/{name}.json")
        return json.loads(found[0].read_text(encoding="utf-8")), read_search(found[0].with_suffix(".csv"))

    def compile_seconds(self) -> list[float]:
        """What each compilation of the copy took, one by one."""
        paths = (self.folder / "results" / "compiled").glob("*/*/compilation.json")
        return [float(json.loads(path.read_text(encoding="utf-8"))["seconds"]) for path in paths]


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ask the command and its children to end, then make them."""
    for sign, wait_s in ((signal.SIGTERM, 10.0), (signal.SIGKILL, 10.0)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(wait_s)
            return
