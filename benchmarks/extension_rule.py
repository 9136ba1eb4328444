"""What an extension costs: the interval after going on because it was too wide, under two rules.

    PYTHONPATH=workflow python benchmarks/extension_rule.py

`pooled` takes the spread of all twelve processes (11 degrees of freedom), as if twelve had been planned;
`stein` that of the first six alone (5 degrees), which decided to go on (Stein 1945): the package's rule.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kernelab.statistics.estimate import student_quantile
from kernelab.statistics.policy import VerdictPolicy

SPREADS = (0.002, 0.003, 0.004, 0.005, 0.006, 0.007, 0.008, 0.010)
"""Standard deviations of a process's median log ratio."""


def errors(
    medians: NDArray[np.float64], spread: float, policy: VerdictPolicy
) -> tuple[float, dict[str, tuple[float, float]]]:
    """Share extended, and per rule (false "interval excludes 1", false "within the margin" at the margin).

    medians: standard normal, shape (trials, extended_processes).
    """
    first, last = policy.processes, policy.extended_processes
    stage, every = spread * medians[:, :first], spread * medians
    stage_error = stage.std(axis=1, ddof=1) / math.sqrt(first)
    extended = student_quantile(first - 1, 1 - policy.alpha / 2) * stage_error > policy.extend_above
    mean = np.where(extended, every.mean(axis=1), stage.mean(axis=1))
    finals = {
        "pooled": (every.std(axis=1, ddof=1), last - 1),
        "stein": (stage.std(axis=1, ddof=1), first - 1),
    }
    rates = {}
    for rule, (deviation, degrees) in finals.items():
        found = []
        for tail in (policy.alpha / 2, policy.alpha):
            early = student_quantile(first - 1, 1 - tail) * stage_error
            late = student_quantile(degrees, 1 - tail) * deviation / math.sqrt(last)
            found.append(np.where(extended, late, early))
        inside = np.abs(mean + policy.log_margin) + found[1] < policy.log_margin
        rates[rule] = (float((np.abs(mean) > found[0]).mean()), float(inside.mean()))
    return float(extended.mean()), rates


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trials", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    policy = VerdictPolicy()
    medians = np.random.default_rng(options.seed).standard_normal((options.trials, policy.extended_processes))
    print("per cent: excludes 1 when equal | inside the margin at the margin")
    print(f"{'spread':>7}{'extended':>10}{'pooled':>9}{'stein':>7} |{'pooled':>8}{'stein':>7}")
    for spread in SPREADS:
        extended, rates = errors(medians, spread, policy)
        (pooled, pooled_inside), (stein, stein_inside) = rates["pooled"], rates["stein"]
        figures = (pooled, stein, pooled_inside, stein_inside)
        one, two, three, four = (100.0 * figure for figure in figures)
        print(f"{100 * spread:7.2f}{100 * extended:10.1f}{one:9.2f}{two:7.2f} |{three:8.2f}{four:7.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
