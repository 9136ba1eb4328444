"""What a rerun must time again: only the comparisons that a changed arm is in. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kernelab.records.timing import Conditions, Failure, SessionRecord, TimedPair, TimingRecord
from kernelab.timing.groups import Pair, bereft


@dataclass(frozen=True)
class Work:
    """What a run has to do.

    kept    pairs with the session that still answers each
    failed  the failures that still stand; their pairs are neither kept nor timed again
    todo    pairs for a new session, in the plan's order
    """

    kept: tuple[TimedPair, ...]
    failed: tuple[Failure, ...]
    todo: tuple[Pair, ...]


def wanted_pairs(arms: Sequence[str], pairs: Iterable[Pair]) -> list[Pair]:
    """The pairs to be timed: comparisons whose two arms are there, and (arm, arm) for an arm that is in none."""
    named = set(arms)
    found = [pair for pair in dict.fromkeys(pairs) if pair[0] in named and pair[1] in named]
    compared = {name for pair in found for name in pair}
    return found + [(name, name) for name in arms if name not in compared]


def divide(
    arms: Sequence[str],
    pairs: Iterable[Pair],
    digests: Mapping[str, str],
    conditions: Conditions,
    record: TimingRecord | None,
    *,
    ladder: bool = False,
) -> Work:
    """Which pairs a record still answers, and which are to be timed.

    A pair is kept where a session timed both arms in one group, as they are now (equal digests) and under conditions
    as they are now; the newest such session counts. Whatever is timed again forms a new session, since ratios never
    cross sessions.

    Args:
        arms: by name, that can be timed.
        pairs: (base, arm) of each comparison.
        digests: per arm, of everything that its time depends on but the conditions.
        conditions: of this run, as far as they are known before it starts (see `same_conditions`).
        record: of the last run, or None.
        ladder: see groups.bereft.
    """
    pairs = list(pairs)
    if record is None:
        return Work((), (), tuple(wanted_pairs(arms, pairs)))
    failed = tuple(
        failure
        for failure in record.failures
        if digests.get(failure.arm) == failure.digest and same_conditions(failure.conditions, conditions)
    )
    hopeless = {failure.arm for failure in failed}
    hopeless |= bereft(pairs, hopeless, ladder=ladder)
    kept: list[TimedPair] = []
    todo: list[Pair] = []
    for pair in wanted_pairs([arm for arm in arms if arm not in hopeless], pairs):
        session = next((s for s in reversed(record.sessions) if _holds(s, pair, digests, conditions)), None)
        if session is not None:
            kept.append(TimedPair(base=pair[0], arm=pair[1], session=session.id))
        else:
            todo.append(pair)
    return Work(tuple(kept), failed, tuple(todo))


def same_conditions(one: Conditions, other: Conditions) -> bool:
    """Whether two runs may be called the same method; a version that is empty is not known yet and matches any."""
    versions = ("driver", "cuda_runtime", "cupy", "cublas")
    known = [(getattr(one, name), getattr(other, name)) for name in versions]
    return (
        all(a == b or not a or not b for a, b in known)
        and one.kernelab_method == other.kernelab_method
        and one.environment == other.environment
        and one.policy == other.policy
    )


def _holds(session: SessionRecord, pair: Pair, digests: Mapping[str, str], conditions: Conditions) -> bool:
    members = session.members
    return (
        same_conditions(session.conditions, conditions)
        and any(set(pair) <= set(group) for group in session.groups)
        and all(members[name].digest == digests[name] for name in pair)
    )


def next_session_id(record: TimingRecord | None) -> str:
    """s1, s2 ...: a number that no session of the record has had."""
    used = [int(session.id.removeprefix("s")) for session in record.sessions] if record else []
    return f"s{max(used, default=0) + 1}"


def newest_session_of(arm: str, sessions: Sequence[SessionRecord]) -> SessionRecord | None:
    """The last session that timed an arm under its own name."""
    return next((session for session in reversed(sessions) if arm in session.members), None)
