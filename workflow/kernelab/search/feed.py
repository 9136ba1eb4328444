"""Builds that go on in a thread of their own while the card works, handed over as they are done."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Protocol

from kernelab.search.builds import BuildRequest, BuiltConfiguration


class Pool(Protocol):
    """See builds.BuildPool."""

    def run(self, requests: Iterable[BuildRequest]) -> Iterator[BuiltConfiguration]:
        """Build every request, and yield each as it is done."""


class Feed:
    """What a pool builds, as an iterator; use it as a context, so that nothing is built any more once it is left.

    Attributes:
        seconds: that the pool took, once everything is drawn.
    """

    def __init__(self, pool: Pool, requests: Iterable[BuildRequest]) -> None:
        self.seconds = 0.0
        self._pool, self._requests = pool, requests
        self._done: queue.SimpleQueue[BuiltConfiguration | BaseException | None] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Feed:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def __iter__(self) -> Iterator[BuiltConfiguration]:
        while (item := self._done.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item

    def _wanted(self) -> Iterator[BuildRequest]:
        for request in self._requests:
            if self._stop.is_set():
                return
            yield request

    def _run(self) -> None:
        begun = time.monotonic()
        try:
            self._build()
        except BaseException as error:
            self._done.put(error)
        self.seconds = time.monotonic() - begun
        self._done.put(None)

    def _build(self) -> None:
        # The pool's generator ends with this frame, and kills what still compiles.
        for built in self._pool.run(self._wanted()):
            self._done.put(built)
            if self._stop.is_set():
                return
