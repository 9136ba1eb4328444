"""The step `confirm`: the best of a search against its base, by the same controlled comparison as any experiment.

A search ranks by screening, in one process. Its best are then the arms of an experiment of their own, with builds,
checks, fresh processes, A/A control and verdicts as config.yaml's experiments have them, in a results folder of their
own (results/<device>/search/<name>/), which `verify` and `diff` read like any other.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelab.build.kernel import FILES
from kernelab.build.step import build_planned
from kernelab.check.step import check_planned
from kernelab.check.wanted import wanted_checks
from kernelab.compare.describe import describe
from kernelab.compare.step import compare_experiment
from kernelab.digests import Digests
from kernelab.errors import UserError
from kernelab.plan.arms import Arm, Plan, PlannedSearch
from kernelab.plan.search import confirm_overrides
from kernelab.records.build import BuildRecord
from kernelab.records.check import CheckRecord
from kernelab.records.compare import ComparedPair, CompareRecord
from kernelab.records.layout import Layout
from kernelab.records.record import R, StaleRecord, read_record, replacing, write_record, write_text
from kernelab.records.search import ConfirmRecord, SearchRecord, SearchRow, Winner, read_search
from kernelab.timing.session import Say
from kernelab.timing.step import time_planned

CHECKS_AT_ONCE = 4  # as profiles/default has it
THE_BASE = "the base itself"


@dataclass(frozen=True)
class ConfirmStep:
    """What the step reads and writes.

    plan, name   which search of the plan
    load         the plan with some settings laid over config.yaml
    layout       the results that the search is in
    digests      of the plan
    root         the project's folder
    """

    plan: Plan
    name: str
    load: Callable[[Mapping[str, Any]], Plan]
    layout: Layout
    digests: Digests
    root: Path = Path()

    @property
    def own(self) -> Layout:
        """The results folder of the confirmation."""
        return confirmation(self.layout, self.name)


def confirmation(layout: Layout, name: str) -> Layout:
    """The results folder that holds a search's confirmation: its builds, checks, samples and verdicts."""
    return Layout(layout.search(name).with_suffix(""), layout.device.name)


def confirm_search(
    step: ConfirmStep,
    *,
    say: Say = print,
    check: Callable[..., CheckRecord] = check_planned,
    time: Callable[..., Any] = time_planned,
) -> ConfirmRecord:
    """Compare the best of a search with its base, and write <name>.confirmed.json.

    Args:
        step: which search.
        say: told in a line what happens.
        check, time: the steps of those names, in place of the real ones.

    Raises:
        UserError: there is no GPU in the plan, or the search is missing, damaged or of other settings.
        BrokenMachine: the machine, not a configuration, is at fault.
    """
    plan, name = step.plan, step.name
    planned = plan.searches[name]
    if plan.device.kind != "gpu":
        raise UserError(
            f"confirm {name}: needs a GPU, but the plan's device is {plan.device.id} (config.yaml: device)"
        )
    read_record(step.layout.search_record(name), SearchRecord, step.digests.search(name))
    base_digest = step.digests.of_build(planned.base_build)
    best = winners(read_search(step.layout.search(name)), planned.confirm, base_digest)
    challengers = [row for row in best if row.build_digest != base_digest]
    found = _compared(step, planned, challengers, say, check, time) if challengers else {}
    record = ConfirmRecord(
        digest=step.digests.confirm(name),
        name=name,
        device=plan.device.id,
        base=planned.base.name,
        problem=planned.problem,
        winners=[_winner(row, found.get(row.build_digest)) for row in best],
    )
    write_record(step.layout.confirmed(name), record)
    return record


def winners(rows: Sequence[SearchRow], most: int, base_digest: str) -> list[SearchRow]:
    """The best rows of a search, by rank: `most` of them, and the base where it ranks before the last of these."""
    best: list[SearchRow] = []
    for row in sorted((r for r in rows if r.rank is not None), key=lambda r: r.rank or 0):
        if sum(other.build_digest != base_digest for other in best) == most:
            break
        best.append(row)
    return best


def _compared(
    step: ConfirmStep,
    planned: PlannedSearch,
    challengers: Sequence[SearchRow],
    say: Say,
    check: Callable[..., CheckRecord],
    time: Callable[..., Any],
) -> dict[str, ComparedPair]:
    """The verdict on every configuration, by the digest of its build."""
    plan = step.load(confirm_overrides(planned, [row.levels for row in challengers]))
    (experiment,) = plan.experiments
    own, digests = step.own, Digests(plan, step.root)
    # First, so that a folder that is left half-made says what it is of.
    write_text(own.plan, plan.model_dump_json(indent=1) + "\n")
    arms = [plan.arms[name] for name in plan.experiments[experiment].arms]
    of_build = {digests.build(arm.build): arm for arm in arms}
    if missing := [row.configuration for row in challengers if row.build_digest not in of_build]:
        raise StaleRecord(
            f"{step.layout.search(step.name)}: {missing[0]} was built from other settings; delete it and run again"
        )
    _build(step, plan, own, digests, arms)
    _check(step, plan, own, digests, check)
    time(plan, experiment, own, digests, say=say, root=step.root)
    compared = compare_experiment(
        plan, experiment, own, digest=digests.compare(experiment), digests=digests, root=step.root
    )
    write_record(own.compare(experiment), compared)
    for line in describe(compared):
        say(line)
    return {digest: pair for digest, arm in of_build.items() if (pair := _pair_of(compared, arm))}


def _pair_of(compared: CompareRecord, arm: Arm) -> ComparedPair | None:
    return next((pair for pair in compared.comparisons if pair.arm == arm.name), None)


def _build(step: ConfirmStep, plan: Plan, own: Layout, digests: Digests, arms: Sequence[Arm]) -> None:
    """Every build of the arms, unless it is current here, or in the results where it can be copied from."""
    for key in dict.fromkeys(arm.build for arm in arms):
        digest = digests.build(key)
        record = own.build_record(key)
        if _current(record, BuildRecord, digest):
            continue
        theirs = step.layout.build_record(key)
        if _current(theirs, BuildRecord, digest):
            for name in (*FILES, theirs.name):  # the record last: whoever finds it finds the others whole
                _copy(step.layout.build(key) / name, own.build(key) / name)
        else:
            build_planned(plan, key, own, digests, step.root, compiled=step.layout)


def _check(
    step: ConfirmStep, plan: Plan, own: Layout, digests: Digests, check: Callable[..., CheckRecord]
) -> None:
    """Every check that the arms and the library's function need, unless it is current here or can be copied."""
    todo = []
    (experiment,) = plan.experiments
    for key, problem, device in wanted_checks(plan, plan.experiment_arms(experiment)):
        digest = digests.check(key, problem, device)
        record, theirs = (layout.check(key, problem, device) for layout in (own, step.layout))
        if _current(record, CheckRecord, digest):
            continue
        if _current(theirs, CheckRecord, digest):
            _copy(theirs, record)
        else:
            todo.append((key, problem, device))
    with ThreadPoolExecutor(CHECKS_AT_ONCE) as pool:
        checks = [pool.submit(check, plan, *what, own, digests, step.root) for what in todo]
        try:
            for done in checks:
                done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # those that wait; the running ones have a limit
            raise


def _current(path: Path, model: type[R], digest: str) -> bool:
    if not path.is_file():
        return False
    try:
        read_record(path, model, digest)
    except UserError:
        return False
    return True


def _copy(source: Path, target: Path) -> None:
    with replacing(target) as temporary:
        shutil.copyfile(source, temporary)


def _winner(row: SearchRow, pair: ComparedPair | None) -> Winner:
    assert row.rank is not None
    assert row.ratio is not None
    ratio = pair.ratio if pair else None
    note = "; ".join(part for part in (*pair.notes, pair.reason) if part) if pair else THE_BASE
    return Winner(
        configuration=row.configuration,
        settings=row.levels,
        rank=row.rank,
        search_ratio=row.ratio,
        verdict=pair.verdict if pair else "identical_code",
        ratio=ratio.value if ratio else None,
        ratio_low=ratio.low if ratio else None,
        ratio_high=ratio.high if ratio else None,
        note=note,
    )
