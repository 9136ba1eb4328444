"""The space of a search: its points in order, each a configuration that can be built or one that says why not."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kernelab.errors import UserError
from kernelab.plan.arms import Configuration, Plan, PlannedSearch, variant_name
from kernelab.plan.catalogue import Kernel
from kernelab.plan.load import Identify, load_plan
from kernelab.plan.model import level_text, suggestion


class Space:
    """Every combination of the levels of a search, made one at a time. Pure.

    Args:
        kernel: whose parameters are searched, as its catalogue declares it.
        planned: the search.
    """

    def __init__(self, kernel: Kernel, planned: PlannedSearch) -> None:
        self.planned = planned
        self._kernel = kernel
        self._base = {name: planned.base.settings[name] for name in kernel.parameters}
        # What each level of each key sets: parameter -> level text.
        self._sets = {
            key: {level: self._setting(key, level) for level in levels}
            for key, levels in planned.over.items()
        }
        self._macros: dict[str, dict[str, int]] = {name: {} for name in self._base}
        for setting in (self._base, *(s for levels in self._sets.values() for s in levels.values())):
            for name, level in setting.items():
                self._macros[name][level] = kernel.parameters[name].macro_value(level)

    @classmethod
    def of(cls, plan: Plan, name: str) -> Space:
        """The space of a search of a plan.

        Raises:
            UserError: no search has that name.
        """
        if name not in plan.searches:
            raise UserError(f"{name}: no search of config.yaml{suggestion(name, list(plan.searches))}")
        planned = plan.searches[name]
        return cls(plan.operations[planned.operation].kernels[planned.kernel], planned)

    @classmethod
    def load(
        cls,
        root: Path,
        identify: Identify,
        name: str,
        overrides: Mapping[str, Any] | None = None,
        config_files: Sequence[Path] = (),
    ) -> Space:
        """The space of a search of the project in a folder. Arguments and errors are those of load_plan."""
        return cls.of(load_plan(root, identify, overrides, config_files), name)

    @property
    def size(self) -> int:
        """How many raw points there are, excluded ones and equal builds included."""
        return math.prod(len(levels) for levels in self.planned.over.values())

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters that `hold` or `over` sets, in the order of the catalogue: together they are a configuration."""
        composites = self._kernel.composites
        names: set[str] = set()
        for key in (*self.planned.hold, *self.planned.over):
            names |= set(next(iter(composites[key].levels.values()))) if key in composites else {key}
        return tuple(name for name in self._kernel.parameters if name in names)

    def points(self) -> Iterator[Configuration]:
        """Every configuration in order (the last key of `over` moves fastest), excluded ones too; equal builds appear once."""
        seen: set[tuple[int, ...]] = set()
        keys = tuple(self.planned.over)
        for levels in itertools.product(*self.planned.over.values()):
            chosen = dict(zip(keys, levels, strict=True))
            full, macros = self._assignment(chosen)
            identity = tuple(macros.values())
            if identity not in seen:
                seen.add(identity)
                yield self._configuration(chosen, full, macros)

    def nth(self, index: int) -> Configuration:
        """The raw point at an index from 0 to size - 1, in the order of `points`, which it counts duplicates in."""
        chosen = {}
        for key, levels in reversed(self.planned.over.items()):
            index, digit = divmod(index, len(levels))
            chosen[key] = levels[digit]
        if index:
            raise IndexError("the space has no such point")
        chosen = {key: chosen[key] for key in self.planned.over}
        return self._configuration(chosen, *self._assignment(chosen))

    def point(self, levels: Mapping[str, str]) -> Configuration:
        """The configuration at one level of every key of `over`.

        Raises:
            UserError: a key is missing or unknown, or its level is not one of the search's.
        """
        over = self.planned.over
        where = f"config.yaml: search.{self.planned.name}.over"
        for key in (*over, *levels):
            if key not in over:
                raise UserError(f"{where}: has no {key}{suggestion(key, list(over))}")
            if key not in levels:
                raise UserError(f"{where}: a point needs a level of {key} ({', '.join(over[key])})")
            if levels[key] not in over[key]:
                raise UserError(f"{where}.{key}: {levels[key]} is not a level ({', '.join(over[key])})")
        chosen = {key: levels[key] for key in over}
        return self._configuration(chosen, *self._assignment(chosen))

    def _setting(self, key: str, level: str) -> dict[str, str]:
        if key not in self._kernel.composites:
            return {key: level}
        return {n: level_text(value) for n, value in self._kernel.composites[key].levels[level].items()}

    def _assignment(self, chosen: Mapping[str, str]) -> tuple[dict[str, str], dict[str, int]]:
        """Every parameter's level, and every parameter's macro value."""
        full = dict(self._base)
        for key, level in chosen.items():
            full |= self._sets[key][level]
        return full, {name: self._macros[name][level] for name, level in full.items()}

    def _configuration(
        self, chosen: dict[str, str], full: dict[str, str], macros: dict[str, int]
    ) -> Configuration:
        planned = self.planned
        variant = variant_name(self._kernel.differing(full) | planned.machine)
        excluded = planned.base.excluded or self._kernel.broken(macros) or ""
        if excluded:
            return Configuration(name=variant, levels=chosen, excluded=excluded)
        build = planned.base_build.model_copy(update={"variant": variant, "levels": full, "defines": macros})
        _, _, conditions = planned.base.name.partition("@")
        arm = planned.base.model_copy(
            update={
                "name": f"{build.key}@{conditions}",
                "build": build.key,
                "settings": planned.base.settings | full,
            }
        )
        return Configuration(name=variant, levels=chosen, build=build, arm=arm)
