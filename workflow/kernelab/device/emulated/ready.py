"""Groups of lanes that can run, and which of them does.

In the plain order the group at the lowest place runs first. In a shuffled order every warp has a random colour;
colours run apart from each other, a random one at a time, and within a colour the lowest place comes first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Place = tuple[int, int]  # colour and segment

_COLOURS = 3
_CHANGE = 0.25  # chance that another colour gets its turn at the end of a segment


class Ready:
    """The groups of one cohort that wait to run."""

    def __init__(self, lanes: int, random: np.random.Generator | None) -> None:
        self._random = random
        self._colour = None if random is None else np.repeat(random.integers(_COLOURS, size=lanes // 32), 32)
        self._groups: dict[Place, list[NDArray[np.int64]]] = {}
        self._turn: Place = (-1, -1)

    def __len__(self) -> int:
        return len(self._groups)

    def push(self, segment: int, lanes: NDArray[np.int64]) -> None:
        """Lanes will go on at a segment."""
        if self._colour is None:
            self._groups.setdefault((0, segment), []).append(lanes)
            return
        colours = self._colour[lanes]
        for colour in np.unique(colours).tolist():
            self._groups.setdefault((colour, segment), []).append(lanes[colours == colour])

    def choose(self, impatient: bool) -> Place:
        """The place that runs next; all in turn when impatient, for the lowest may wait for the others."""
        if impatient:
            self._turn = min((p for p in self._groups if p > self._turn), default=min(self._groups))
            return self._turn
        if self._random is None:
            return min(self._groups)
        colour = self._random.choice([c for c, _ in self._groups])
        return min(p for p in self._groups if p[0] == colour)

    def pop(self, place: Place) -> NDArray[np.int64]:
        """All lanes that wait at a place, in order."""
        waiting = self._groups.pop(place)
        return waiting[0] if len(waiting) == 1 else np.sort(np.concatenate(waiting))

    def comes_first(self, place: Place) -> bool:
        """Whether some group should run, or join, before the lanes at a place go on."""
        if not self._groups:
            return False
        if self._random is None:
            return min(self._groups) <= place
        return self._random.random() < _CHANGE or any(p[0] == place[0] and p <= place for p in self._groups)

    def clear(self) -> None:
        self._groups.clear()
