"""Searches as planned: a base, and the parameters whose levels span the space around it. No space is enumerated here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from kernelab.plan.arms import PlannedSearch
from kernelab.plan.config import CONFIRMATION, Search
from kernelab.plan.model import level_text, suggestion
from kernelab.plan.resolve import Resolver, Unresolvable, made_from

# What a space may hold to be searched in full; more asks for a sampler.
MAX_POINTS = 100_000


def plan_search(resolver: Resolver, name: str, search: Search) -> PlannedSearch:
    """A search of config.yaml against the catalogue.

    Raises:
        Unresolvable: an unknown kernel, problem, parameter or level; a base that breaks a constraint; a parameter
            that two keys move; a space of one point, or one too large to search in full.
    """
    with _under("base"):
        declared = resolver.kernel(search.base)
    if declared.source is None:
        raise Unresolvable(f"base: {search.base} is a library function; it has no parameters to search")
    operation = resolver.owner[search.base]
    with made_from("base"):
        over = {variable: _levels(resolver, search, variable) for variable in search.over}
    with made_from("hold", "over"):
        _moved_once(resolver, search)
    with made_from("base"), _under("at"):
        settings = resolver.base_settings(search.base, search.at or resolver.default_problem(operation))
    for variable, level in search.hold.items():
        if variable in ("kernel", "problem"):
            raise Unresolvable(f"hold.{variable}: name it with {'base' if variable == 'kernel' else 'at'}")
        with made_from("base"), _under(f"hold.{variable}"):
            settings = resolver.move(settings, variable, level)
    points = 1
    for levels in over.values():
        points *= len(levels)
    if points < 2:
        raise Unresolvable("over: the space has one point; name two levels or more")
    if search.sampler == "all" and points > MAX_POINTS:
        raise Unresolvable(
            f"over: {points:,} points are too many for sampler: all ({MAX_POINTS:,} at most); "
            "use sampler: random or tpe, or fewer levels"
        )
    with made_from("base", "hold", "at"):
        base = resolver.arm(settings)
    return PlannedSearch(
        name=name,
        question=search.question,
        kernel=search.base,
        operation=operation,
        problem=base.problem,
        hold=search.hold,
        at=search.at,
        machine=resolver.machine_differing(settings),
        base=base,
        base_build=resolver.builds[base.build],
        over=over,
        sampler=search.sampler,
        configurations=search.configurations,
        budget_s=search.budget_s,
        confirm=search.confirm,
        seed=search.seed,
    )


@contextmanager
def _under(key: str) -> Iterator[None]:
    """What is wrong inside is said of a key of the search."""
    try:
        yield
    except Unresolvable as error:
        reason = str(error).removeprefix(f"{key.rpartition('.')[2]}: ")
        raise Unresolvable(f"{key}: {reason}") from None


def _levels(resolver: Resolver, search: Search, variable: str) -> tuple[str, ...]:
    """The level texts of one key of `over`, each known to be a level of its parameter or composite."""
    declared = resolver.kernel(search.base)
    known = [*declared.parameters, *declared.composites]
    if variable not in known:
        raise Unresolvable(f"over.{variable}: is no parameter of {search.base}{suggestion(variable, known)}")
    texts = [level_text(level) for level in search.over[variable]]
    seen: set[str] = set()
    for text in texts:
        if text in seen:
            raise Unresolvable(f"over.{variable}: the level {text} stands twice")
        seen.add(text)
        with _under(f"over.{variable}"):
            resolver.move({"kernel": search.base}, variable, text)
    return tuple(texts)


def _moved_once(resolver: Resolver, search: Search) -> None:
    """Every parameter is moved by one key: of two that move it the later would win, unsaid."""
    composites = resolver.kernel(search.base).composites
    movers: dict[str, str] = {}
    for section, keys in (("hold", search.hold), ("over", search.over)):
        for key in keys:
            for name in next(iter(composites[key].levels.values())) if key in composites else (key,):
                if name in movers:
                    raise Unresolvable(
                        f"{section}.{key}: {name} is moved by {movers[name]} already; drop one"
                    )
                movers[name] = f"{section}.{key}"


def confirm_overrides(planned: PlannedSearch, chosen: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """What, laid over the config, plans the confirmation alone: the experiment `search_<name>`, its winners against the base.

    Args:
        chosen: the levels (of `over`) of the configurations to compare, none of them the base.
    """
    experiment = {
        "question": planned.question,
        "base": planned.kernel,
        "hold": dict(planned.hold),
        "configurations": [dict(levels) for levels in chosen],
        "at": [planned.at] if planned.at else [],
    }
    name = CONFIRMATION + planned.name
    return {"experiments": {name: experiment}, "only": [name]}
