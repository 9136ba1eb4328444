"""The step `compare`: one verdict for every comparison of an experiment, from builds, samples, checks and profiles."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

from kernelab.compare.arms import ArmAccount, ArmReader, environment_facts
from kernelab.compare.certificate import issue
from kernelab.compare.controls import Difference, confounds, controlled, differences
from kernelab.compare.designs import factorial_effects, ratio_record, same_question
from kernelab.compare.measured import Measured, judged_comparison
from kernelab.compare.outcomes import moved
from kernelab.compare.source_diff import preprocessed, token_diff
from kernelab.compare.verdict import Comparison as Judged
from kernelab.compare.verdict import Kind, Note, Session, Verdict, judge
from kernelab.device.environment import changed
from kernelab.digests import METHODS, Digests
from kernelab.plan.arms import Comparison, Plan
from kernelab.records.compare import ArmCode, Change, ComparedPair, CompareRecord
from kernelab.records.layout import Layout
from kernelab.records.record import read_record
from kernelab.records.timing import SessionRecord, TimingRecord
from kernelab.statistics.policy import VerdictPolicy
from kernelab.timing.samples import Sample, read_samples

NO_GPU = "no GPU on this machine"
CODE_KINDS = ("kernel", "parameter", "composite", "options", "arch", "toolchain", "steps", "configuration")


def compare_experiment(
    plan: Plan, experiment: str, layout: Layout, *, digest: str, digests: Digests | None, root: Path | None
) -> CompareRecord:
    """Judge one experiment.

    Args:
        plan: the plan.
        experiment: which of its experiments.
        layout: the results.
        digest: of the record.
        digests: what the records must be made from; None takes them as they are.
        root: the project's folder, for the token diffs of sources; None leaves them out.

    Raises:
        UserError: a record is missing, damaged or stale.
    """
    return _Step(plan, experiment, layout, digests, root).record(digest)


class _Step:
    def __init__(
        self, plan: Plan, experiment: str, layout: Layout, digests: Digests | None, root: Path | None
    ) -> None:
        self._plan = plan
        self._planned = plan.experiments[experiment]
        self._layout = layout
        self._root = root
        self._reader = ArmReader(plan, layout, digests)
        self._policy = VerdictPolicy.of_timing(plan.timing)
        self._measured = self._read_timing(digests)
        self._samples_sha256 = _samples_digest(self._measured.samples) if self._measured else ""

    def _read_timing(self, digests: Digests | None) -> Measured | None:
        plan, name = self._plan, self._planned.name
        if plan.device.kind != "gpu" or not plan.timed_comparisons(name):
            return None
        record = read_record(
            self._layout.timing(name), TimingRecord, digests.timing(name) if digests else None
        )
        return Measured(record, read_samples(self._layout.samples(name)))

    def record(self, digest: str) -> CompareRecord:
        accounts = {(c.base, c.arm): self._accounts(c) for c in self._planned.comparisons}
        found = {
            pair: self._differences(c, accounts[pair])
            for c in self._planned.comparisons
            for pair in [(c.base, c.arm)]
        }
        verdicts = self._verdicts(accounts, found)
        effects, effects_note = factorial_effects(self._plan, self._planned, self._measured, self._policy)
        timing = self._measured.record if self._measured else None
        held = {account.arm.name: account for pair in accounts.values() for account in pair}
        return CompareRecord(
            digest=digest,
            experiment=self._planned.name,
            question=self._planned.question,
            design=self._planned.design,
            device=self._plan.device.id,
            card=timing.card.name if timing and timing.card else "",
            method=self._method(),
            conditions={s.id: environment_facts(s) for s in timing.sessions} if timing else {},
            arms={name: self._columns(account) for name, account in held.items()},
            code={name: _code_of(account) for name, account in held.items()},
            comparisons=[
                self._pair(c, accounts[(c.base, c.arm)], found[(c.base, c.arm)], verdicts[(c.base, c.arm)])
                for c in self._planned.comparisons
            ],
            effects=effects,
            effects_note=effects_note,
            same_question=same_question(self._plan, self._planned, verdicts, self._policy),
        )

    def _columns(self, account: ArmAccount) -> dict[str, Any]:
        """The outcomes of an arm, with its time where it was timed."""
        columns = dict(account.outcomes)
        timed = self._measured.record.arms.get(account.arm.name) if self._measured else None
        if timed is not None and timed.time_ms is not None:
            columns["time_ms"] = timed.time_ms
            if timed.reference_ms is not None:
                columns["pct_of_cublas"] = 100.0 * timed.reference_ms / timed.time_ms
        return columns

    def _session(self, comparison: Comparison) -> SessionRecord | None:
        return self._measured.session_of(comparison.base, comparison.arm) if self._measured else None

    def _accounts(self, comparison: Comparison) -> tuple[ArmAccount, ArmAccount]:
        timing, session = (self._measured.record if self._measured else None), self._session(comparison)
        base, arm = (self._plan.arms[name] for name in (comparison.base, comparison.arm))
        return self._reader.account(base, timing, session), self._reader.account(arm, timing, session)

    def _differences(
        self, comparison: Comparison, accounts: tuple[ArmAccount, ArmAccount]
    ) -> list[Difference]:
        base, arm = accounts
        return differences(base.facts, arm.facts, controlled(self._plan, comparison))

    def _verdicts(
        self,
        accounts: Mapping[tuple[str, str], tuple[ArmAccount, ArmAccount]],
        found: Mapping[tuple[str, str], list[Difference]],
    ) -> dict[tuple[str, str], Verdict]:
        judged: list[Judged] = []
        sessions: dict[str, Session] = {}
        for comparison in self._planned.comparisons:
            pair = (comparison.base, comparison.arm)
            base, arm = accounts[pair]
            stray = self._confounds(comparison, accounts[pair], found[pair])
            identical = comparison.kind in CODE_KINDS and _same_work(base, arm)
            name = f"{comparison.base} -> {comparison.arm}"
            if self._measured is None:
                judged.append(Judged(name, confounds=stray, identical_code=identical))
                continue
            item, of_item = judged_comparison(name, self._measured, *pair, stray, identical)
            judged.append(item)
            sessions |= of_item
        verdicts = judge(judged, sessions, self._policy)
        return {(c.base, c.arm): verdicts[f"{c.base} -> {c.arm}"] for c in self._planned.comparisons}

    def _confounds(
        self, comparison: Comparison, accounts: tuple[ArmAccount, ArmAccount], found: Sequence[Difference]
    ) -> tuple[str, ...]:
        phrases = confounds(found, comparison.variable)
        for account in accounts:
            phrases += account.faults
        session = self._session(comparison)
        if session is not None and session.environment_after:
            for name, (before, after) in changed(
                session.environment_before, session.environment_after
            ).items():
                phrases += (f"{name} changed while session {session.id} ran, from {before} to {after}",)
        return tuple(dict.fromkeys(phrases))

    def _pair(
        self,
        comparison: Comparison,
        accounts: tuple[ArmAccount, ArmAccount],
        found: Sequence[Difference],
        verdict: Verdict,
    ) -> ComparedPair:
        base, arm = accounts
        session = self._session(comparison)
        ratio = ratio_record(verdict.time)
        reason = verdict.reason
        if verdict.kind is Kind.NOT_MEASURED:
            reason = self._why_not(comparison, accounts)
        certificate = issue(
            {
                "experiment": self._planned.name,
                "base": comparison.base,
                "arm": comparison.arm,
                "device": self._plan.device.id,
                "session": session.id if session else "none",
            },
            self._method(),
            str(verdict.kind),
            ratio,
            {
                "samples": self._samples_sha256,
                "sessions": [s.model_dump(mode="json") for s in self._measured.record.sessions]
                if self._measured
                else [],
                "base": _bound(base),
                "arm": _bound(arm),
                "confounds": [item.fact for item in found if not item.declared],
            },
        )
        return ComparedPair(
            base=comparison.base,
            arm=comparison.arm,
            variable=comparison.variable,
            kind=comparison.kind,
            base_level=comparison.base_level,
            level=comparison.level,
            composite=comparison.composite,
            problem=arm.arm.problem,
            verdict=str(verdict.kind),
            direction=verdict.direction,
            reason=reason,
            notes=[str(note) for note in verdict.notes] + _hazard(accounts),
            confounds=list(self._confounds(comparison, accounts, found)),
            ratio=ratio,
            cycles=ratio_record(verdict.cycles),
            clock=ratio_record(verdict.clock),
            aa_half_width=verdict.aa_half_width,
            p_value=verdict.p_value,
            levels=verdict.levels,
            processes=verdict.time.processes if verdict.time else 0,
            rounds=verdict.time.rounds if verdict.time else 0,
            session=session.id if session else "",
            base_sass=base.sass,
            arm_sass=arm.sass,
            control_facts_changed=[
                Change(name=item.fact, base=item.base, arm=item.arm, declared=item.declared) for item in found
            ],
            outcomes_changed=[
                Change(name=name, base=before, arm=after)
                for name, before, after in moved(base.outcomes, arm.outcomes)
            ],
            source_diff=self._source_diff(base, arm),
            certificate=certificate.line,
        )

    def _why_not(self, comparison: Comparison, accounts: tuple[ArmAccount, ArmAccount]) -> str:
        for account in accounts:
            if account.status != "ok":
                return f"{account.arm.name}: {account.status}: {account.note}".rstrip(": ")
        if self._measured is None:
            return NO_GPU
        return self._measured.why_not(comparison.base, comparison.arm)

    def _method(self) -> dict[str, str]:
        """How a verdict was reached: verdicts of two methods are not comparable."""
        thresholds = self._policy
        timing = self._plan.timing
        method = {
            "compare": METHODS["compare"],
            "timing": METHODS["timing"],
            "alpha": thresholds.alpha,
            "margin": thresholds.margin,
            "smallest_effect": thresholds.smallest_effect,
            "processes": timing.processes,
            "extend_to": timing.extend_to,
            "half_width": timing.half_width,
            "sample_ms": timing.sample_ms,
            "lock_clocks": timing.lock_clocks,
        }
        if self._measured and self._measured.record.sessions:
            method["stopwatch"] = self._measured.record.sessions[-1].conditions.kernelab_method
        return {name: str(value) for name, value in method.items()}

    def _source_diff(self, base: ArmAccount, arm: ArmAccount) -> str:
        builds = [self._plan.builds[account.arm.build] for account in (base, arm) if account.arm.build]
        if self._root is None or len(builds) < 2 or builds[0] == builds[1]:
            return ""
        texts = []
        for build in builds:
            source = self._root / self._plan.operations[build.operation].folder / build.source
            texts.append(preprocessed(source, {name: str(value) for name, value in build.defines.items()}))
        base_text, arm_text = texts
        return "" if base_text == arm_text else token_diff(base_text, arm_text)


def _hazard(accounts: Sequence[ArmAccount]) -> list[str]:
    return [str(Note.HAZARD)] if any(account.status == "hazard" for account in accounts) else []


def _same_work(base: ArmAccount, arm: ArmAccount) -> bool:
    same_problem = (base.arm.problem, base.arm.data, base.arm.l2) == (
        arm.arm.problem,
        arm.arm.data,
        arm.arm.l2,
    )
    return same_problem and base.code != "" and base.code == arm.code


def _code_of(account: ArmAccount) -> ArmCode:
    build = account.evidence.build
    if build is None:
        return ArmCode(arch="", compiler="", source_sha256="", sass="")
    compiler = build.toolchain.get("compiler", build.toolchain.get("name", ""))
    return ArmCode(arch=build.arch, compiler=compiler, source_sha256=build.source_sha256, sass=account.sass)


def _bound(account: ArmAccount) -> dict[str, Any]:
    return {"code": account.code, "facts": {name: fact.value for name, fact in account.facts.items()}}


def _samples_digest(samples: Sequence[Sample]) -> str:
    total = hashlib.sha256()
    for sample in samples:
        total.update(repr(astuple(sample)).encode())
    return total.hexdigest()
