"""How often is the verdict wrong? The comparison's own rule on simulated timing sessions with a known truth.

    PYTHONPATH=workflow python benchmarks/calibration.py --trials 2000 --csv calibration.csv

Each setting plays whole sessions, sample by sample: processes, mirrored rounds in random order, arms, clocks,
and hands the log ratios to `kernelab.compare`. Nothing of the rule is written again here. Exit status 1
when a target is missed and `--check` is given.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kernelab.compare.verdict import Comparison, Kind, Note, Session, Verdict, judge
from kernelab.statistics.estimate import Estimate, estimate_medians, extension, student_quantile
from kernelab.statistics.policy import QUICK, VerdictPolicy

Array = NDArray[np.float64]

STANDARD = VerdictPolicy()

TRUE_EFFECT = math.log(1.01)
"""The planted effect: an arm that takes 1% more time, exactly the margin."""

ROUNDS = 20
SAMPLE_S = 0.003
"""A sample of one arm, flush included; a round of n arms takes 2 n of them."""

FALSE = 0.06
"""Target: at most this share of false "different", and of false "equivalent" at the true effect."""
POWER = 0.99
"""Target: at least this share of true 1% effects found."""


@dataclass(frozen=True)
class Setting:
    """The noise of one kind of machine. Standard deviations and sizes are fractions of the time.

    noise       of each sample, independent
    placement   of each arm in each process: where its code and buffers fell, constant over the process
    two_state   placement takes one of two values, +- this, at even odds
    drift       clock drift over a process, shared by all arms: a warm-up decay of this size with a random
                sign and time constant, plus a random walk that ends about as far away
    saw         clock steps of this size with a period of 1 to 3 rounds and a random phase
    spikes      the share of samples that an interruption makes 5% longer
    arms        arms besides the base and its second name
    """

    name: str
    noise: float = 0.001
    placement: float = 0.0
    two_state: float = 0.0
    drift: float = 0.0
    saw: float = 0.0
    spikes: float = 0.0
    arms: int = 1
    policy: VerdictPolicy = STANDARD
    powered: bool = True
    """Whether the power target applies: it does wherever the noise is of a size that real cards show."""


SETTINGS = (
    Setting("white noise 0.1%"),
    Setting("white noise 0.5%", noise=0.005),
    Setting("clock drift 1%", noise=0.002, drift=0.01),
    Setting("clock drift 3%", noise=0.002, drift=0.03),
    Setting("placement 0.1%", noise=0.002, placement=0.001),
    Setting("placement 0.2%", noise=0.002, placement=0.002),
    Setting("placement 0.3%", noise=0.002, placement=0.003),
    Setting("all: 0.3%, drift 2%, placement 0.2%", noise=0.003, drift=0.02, placement=0.002),
    Setting("two-state placement +-0.25%", noise=0.002, two_state=0.0025),
    Setting("clock steps 1%", noise=0.002, saw=0.01, placement=0.001),
    Setting("spikes 5% of samples", noise=0.002, spikes=0.05, placement=0.002),
    Setting("five levels, placement 0.2%", noise=0.002, placement=0.002, arms=5),
    Setting("beyond: placement 0.45%", noise=0.002, placement=0.0045, powered=False),
    Setting("beyond: placement 0.6%", noise=0.002, placement=0.006, powered=False),
    Setting("quick, placement 0.1%", noise=0.002, placement=0.001, policy=QUICK, powered=False),
    Setting("quick, placement 0.2%", noise=0.002, placement=0.002, policy=QUICK, powered=False),
)


@dataclass
class Tally:
    """Counts over the trials of one setting; a family of several levels counts once where any level errs."""

    trials: int = 0
    extended: int = 0
    false_different: int = 0  # identical arms: the verdict says that they differ
    excludes_one: int = 0  # identical arms: the 95% interval alone (after Holm) says so
    pooled_excludes_one: int = 0  # identical arms: a t interval over pooled rounds says so
    equivalent: int = 0  # identical arms: the verdict is `equivalent` (of the first level)
    unstable: int = 0  # identical arms: the verdict is `unstable`
    power: int = 0  # true 1%: the difference is found, in the right direction (of the first level)
    false_equivalent: int = 0  # true 1%: the verdict places it inside the margin (of the first level)
    covered: int = 0  # true 1%: the 95% interval of the first level holds the truth
    half_width: float = 0.0  # sum

    def rate(self, field: str) -> float:
        return float(getattr(self, field)) / self.trials


def medians_and_pool(setting: Setting, trials: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Simulated sessions of identical arms.

    Returns per-process medians of log ratios to the base, shape (trials, processes, arms + 1) with the A/A
    control last, and the first arm's t statistic over the pooled rounds of the first stage, shape (trials,).
    """
    processes, arms = setting.policy.extended_processes, setting.arms + 2
    shape = (trials, processes, ROUNDS, 2 * arms)
    order = rng.random((trials, processes, ROUNDS, arms)).argsort(axis=-1)
    order = np.concatenate([order, order[..., ::-1]], axis=-1)
    log_time = setting.noise * rng.standard_normal(shape) + _clock(setting, shape, rng)
    if setting.spikes:
        log_time += math.log(1.05) * (rng.random(shape) < setting.spikes)
    by_arm = np.empty((trials, processes, ROUNDS, arms, 2))
    for visit, half in enumerate((slice(0, arms), slice(arms, None))):
        np.put_along_axis(by_arm[..., visit], order[..., half], log_time[..., half], axis=-1)
    means = by_arm.mean(axis=-1)
    means += setting.placement * rng.standard_normal((trials, processes, 1, arms))
    if setting.two_state:
        means += setting.two_state * rng.choice([-1.0, 1.0], (trials, processes, 1, arms))
    ratios = means[..., 1:] - means[..., :1]
    pool = ratios[:, : setting.policy.processes, :, 0].reshape(trials, -1)
    pooled = pool.mean(axis=1) / (pool.std(axis=1, ddof=1) / math.sqrt(pool.shape[1]))
    return np.median(ratios, axis=2), pooled


def _clock(setting: Setting, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Minus the log of the clock at every sample, shared by whichever arm runs there."""
    trials, processes, rounds, visits = shape
    lead = (trials, processes, 1)
    at = np.linspace(0.0, 1.0, rounds * visits)
    clock = np.zeros((trials, processes, rounds * visits))
    if setting.drift:
        size = setting.drift * rng.standard_normal(lead)
        clock += size * np.exp(-at / rng.uniform(0.1, 1.0, lead))
        clock += np.cumsum(setting.drift / math.sqrt(at.size) * rng.standard_normal(clock.shape), axis=-1)
    if setting.saw:
        period = rng.uniform(1.0, 3.0, lead) * visits
        clock += setting.saw * ((np.arange(at.size) / period + rng.random(lead)) % 1.0 < 0.5)
    return clock.reshape(shape)


def play(setting: Setting, trials: int, rng: np.random.Generator, tally: Tally) -> None:
    """Adds `trials` sessions to the tally: each judged as it is, and again with every arm 1% slower."""
    medians, pooled = medians_and_pool(setting, trials, rng)
    limit = student_quantile(setting.policy.processes * ROUNDS - 1, 1.0 - setting.policy.alpha / 2.0)
    tally.pooled_excludes_one += int((np.abs(pooled) > limit).sum())
    for session in medians:
        processes = setting.policy.processes
        first = [_estimate(session[:processes, arm], setting) for arm in range(session.shape[1])]
        if extension(first, setting.policy).needed:
            processes = setting.policy.extended_processes
            tally.extended += 1
        _judge_both(session[:processes], setting, tally)
    tally.trials += trials


def _estimate(medians: Array, setting: Setting) -> Estimate:
    return estimate_medians(medians.tolist(), setting.policy, rounds=ROUNDS * len(medians))


def _judge_both(session: Array, setting: Setting, tally: Tally) -> None:
    # One round a process, holding its median: the estimate is the same and the loop ten times faster.
    aa = session[:, -1:].tolist()
    sessions = {"s": Session(aa=aa, throttled=None)}

    def verdicts(effect: float) -> list[Verdict]:
        names = [str(arm) for arm in range(setting.arms)]
        comparisons = [
            Comparison(name, "s", (session[:, i : i + 1] + effect).tolist()) for i, name in enumerate(names)
        ]
        return list(judge(comparisons, sessions, setting.policy).values())

    null, slow = verdicts(0.0), verdicts(TRUE_EFFECT)
    alpha = setting.policy.alpha
    tally.false_different += any(verdict.direction != 0 for verdict in null)
    tally.excludes_one += any(verdict.p_value is not None and verdict.p_value < alpha for verdict in null)
    tally.equivalent += null[0].kind is Kind.EQUIVALENT
    tally.unstable += null[0].kind is Kind.UNSTABLE
    tally.power += slow[0].direction > 0
    tally.false_equivalent += slow[0].kind in (Kind.EQUIVALENT, Kind.WITHIN_MARGIN)
    found = slow[0].time
    assert found is not None
    tally.covered += math.log(found.low) <= TRUE_EFFECT <= math.log(found.high)
    tally.half_width += found.half_width


def clock_notes(trials: int, rng: np.random.Generator) -> dict[str, float]:
    """How often `clock_mediated` is noted where the arm's clock is 1% lower, and where its code is slower."""
    policy, noise, placement = STANDARD, 0.002 / math.sqrt(2 * ROUNDS), 0.002
    rates = {}
    for label, clock_effect, code_effect in (("clock", TRUE_EFFECT, 0.0), ("code", 0.0, TRUE_EFFECT)):
        noted = 0
        for _ in range(trials):
            cycles, aa = placement * math.sqrt(2.0) * rng.standard_normal((2, policy.processes))
            shift = clock_effect + noise * math.sqrt(2.0) * rng.standard_normal(policy.processes)
            cycles += code_effect
            comparison = Comparison("a", "s", (cycles + shift)[:, None].tolist(), cycles[:, None].tolist())
            verdict = judge([comparison], {"s": Session(aa[:, None].tolist(), None)}, policy)["a"]
            noted += Note.CLOCK_MEDIATED in verdict.notes
        rates[label] = noted / trials
    return rates


COLUMNS: tuple[tuple[str, str, Callable[[Tally], float]], ...] = (
    ("differ", "false_different", lambda t: t.rate("false_different")),
    ("excl 1", "interval_excludes_1", lambda t: t.rate("excludes_one")),
    ("pooled", "pooled_rounds_exclude_1", lambda t: t.rate("pooled_excludes_one")),
    ("equiv", "equivalent_when_identical", lambda t: t.rate("equivalent")),
    ("unstab", "unstable_when_identical", lambda t: t.rate("unstable")),
    ("power", "power_at_1pct", lambda t: t.rate("power")),
    ("f.equiv", "false_equivalent_at_1pct", lambda t: t.rate("false_equivalent")),
    ("covers", "coverage_of_95pct_interval", lambda t: t.rate("covered")),
    ("extend", "extended", lambda t: t.rate("extended")),
    ("+-95%", "mean_half_width", lambda t: t.half_width / t.trials),
)


def misses(setting: Setting, tally: Tally) -> list[str]:
    """The targets that this setting misses by more than two standard errors of the simulation."""
    limits = {"false_different": FALSE, "excludes_one": FALSE, "false_equivalent": FALSE}
    found = []
    for field, limit in limits.items():
        if tally.rate(field) > limit + 2.0 * math.sqrt(limit * (1.0 - limit) / tally.trials):
            found.append(f"{field} {tally.rate(field):.2%}, target at most {limit:.0%}")
    if setting.powered and tally.rate("power") < POWER - 2.0 * math.sqrt(
        POWER * (1.0 - POWER) / tally.trials
    ):
        found.append(f"power {tally.rate('power'):.2%}, target at least {POWER:.0%}")
    return found


def run(settings: Sequence[Setting], trials: int, seed: int) -> list[tuple[Setting, Tally]]:
    """Plays every setting, each from a seed of its own, in blocks that stay small in memory."""
    results = []
    for number, setting in enumerate(settings):
        rng = np.random.default_rng([seed, number])
        tally = Tally()
        for block in itertools.repeat(500, -(-trials // 500)):
            play(setting, min(block, trials - tally.trials), rng, tally)
        results.append((setting, tally))
    return results


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trials", type=int, default=2000, help="sessions a setting")
    parser.add_argument("--seed", type=int, default=20240229)
    parser.add_argument("--csv", type=Path, help="write the table here")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a target is missed")
    options = parser.parse_args(arguments)
    if options.trials < 1:
        parser.error("--trials must be at least 1")

    started = time.monotonic()
    results = run(SETTINGS, options.trials, options.seed)
    print(f"{options.trials} sessions a setting, {ROUNDS} rounds a process, seed {options.seed}; per cent")
    print(f"{'setting':38}" + "".join(f"{short:>8}" for short, _, _ in COLUMNS))
    failed = []
    for setting, tally in results:
        print(f"{setting.name:38}" + "".join(f"{100 * value(tally):8.2f}" for _, _, value in COLUMNS))
        failed += [f"{setting.name}: {miss}" for miss in misses(setting, tally)]
    notes = clock_notes(options.trials, np.random.default_rng([options.seed, len(SETTINGS)]))
    print(
        f"clock_mediated: {notes['clock']:.2%} where clocks made the 1%, {notes['code']:.2%} where code did"
    )
    print("\n".join(f"MISSED {line}" for line in failed) or "every target met", end="")
    print(f" ({time.monotonic() - started:.0f} s)")
    if options.csv:
        with options.csv.open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(["setting", "trials", *(name for _, name, _ in COLUMNS)])
            for setting, tally in results:
                writer.writerow(
                    [setting.name, tally.trials, *(f"{value(tally):.6f}" for _, _, value in COLUMNS)]
                )
    return 1 if failed and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
