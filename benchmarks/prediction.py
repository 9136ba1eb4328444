"""Judge `kernelab predict` against measured times: Spearman's correlation with its bootstrap interval, by family and in all.

    PYTHONPATH=workflow python benchmarks/prediction.py results/snapshots/nvidia-h200/table.csv
    PYTHONPATH=workflow python benchmarks/prediction.py .../search/seed_a_space.csv --predictions predicted.csv
    PYTHONPATH=workflow python benchmarks/prediction.py .../search/matrix_loads.csv --configfile frontier.yaml --sample 100

Reads a table.csv (arms; a family is a kernel) or the csv of a search (configurations). What was measured is predicted
here from source, unless --predictions names what `predict --csv` wrote. --ratio judges against a search's `ratio`, the
time over that of the base in the same heat. No GPU.
"""

from __future__ import annotations

import argparse
import csv
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from kernelab.build.cards import Card, default_card
from kernelab.device.identify import identify
from kernelab.errors import UserError
from kernelab.plan.load import load_plan
from kernelab.plan.space import Space
from kernelab.predict.order import Candidate, order
from kernelab.predict.rank import agreement, regret_pct
from kernelab.records.layout import RESULTS, Layout

LIBRARY = "00_cublas"
SEED = 1


def main() -> int:
    """Print one line a family; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("measured", type=Path)
    parser.add_argument("--predictions", type=Path)
    parser.add_argument("--arch", default="sm_90", help="that was measured on (default: sm_90)")
    parser.add_argument(
        "--configfile", type=Path, nargs="*", default=[], help="laid over config.yaml, as of predict"
    )
    parser.add_argument("--problem", help="of a table.csv, only the arms at this problem")
    parser.add_argument(
        "--ratio", action="store_true", help="judge against the column ratio instead of time_ms"
    )
    parser.add_argument(
        "--sample", type=int, help="of the configurations, only so many, drawn at random (seed 1)"
    )
    parser.add_argument("--pairs", action="store_true", help="list every pair, the largest error last")
    arguments = parser.parse_args()
    try:
        measured = read_measured(arguments.measured, "ratio" if arguments.ratio else "time_ms")
        measured = chosen(measured, arguments.problem, arguments.sample)
        predicted = (
            read_predictions(arguments.predictions)
            if arguments.predictions
            else predict(measured, arguments.measured, arguments.arch, arguments.configfile)
        )
    except UserError as error:
        print(f"prediction: {error}", file=sys.stderr)
        return 1
    report(measured, predicted, arguments.pairs)
    return 0


def read_measured(path: Path, column: str = "time_ms") -> dict[str, float]:
    """Times in ms by arm (table.csv) or configuration (a search); an arm of several experiments has the median.
    `column`: time_ms, or ratio of a search.

    Raises:
        UserError: no such file, or it holds no times.
    """
    try:
        with path.open(newline="", encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    times: dict[str, list[float]] = {}
    for row in rows:
        name = row.get("arm") or row.get("configuration") or ""
        if row.get(column) and row.get("kernel") != LIBRARY:
            times.setdefault(name, []).append(float(row[column]))
    if len(times) < 3:
        raise UserError(f"{path}: has {column} of {len(times)} configurations; three at least are needed")
    return {name: float(np.median(values)) for name, values in times.items()}


def chosen(measured: Mapping[str, float], problem: str | None, sample: int | None) -> dict[str, float]:
    """Those at a problem, and of them `sample` drawn with SEED: the same whatever was measured of them.

    Raises:
        UserError: fewer than three are left.
    """
    names = sorted(name for name in measured if problem is None or name.endswith(f"@{problem}"))
    if sample is not None:
        random.Random(SEED).shuffle(names)
        names = names[:sample]
    if len(names) < 3:
        raise UserError(f"--problem, --sample: leave {len(names)} configurations; three at least are needed")
    return {name: measured[name] for name in names}


def read_predictions(path: Path) -> dict[str, float]:
    """What `predict --csv` wrote, in ms by configuration.

    Raises:
        UserError: no such file, or another one.
    """
    try:
        with path.open(newline="", encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream))
        return {row["configuration"]: float(row["predicted_ms"]) for row in rows if row["predicted_ms"]}
    except (OSError, KeyError, ValueError) as error:
        raise UserError(f"{path}: not what `predict --csv` writes ({error})") from None


def predict(
    measured: Mapping[str, float], path: Path, arch: str, config_files: Sequence[Path] = ()
) -> dict[str, float]:
    """Predictions of the measured arms, or of the points of the search that the file is named after."""
    plan = load_plan(Path(), identify, {"arch": arch}, config_files)
    if path.stem in plan.searches:
        points = [p for p in Space.of(plan, path.stem).points() if p.name in measured]
        candidates = [Candidate(p.name, p.build, p.arm) for p in points if p.build and p.arm]
    else:
        arms = [arm for name, arm in plan.arms.items() if name in measured and arm.build]
        candidates = [Candidate(arm.name, plan.builds[arm.build], arm) for arm in arms]
    if not candidates:
        files = ", ".join(["config.yaml", *(file.as_posix() for file in config_files)])
        raise UserError(f"{path}: none of its configurations is in {files}")
    cards = {name: _card(name) for name in {candidate.build.arch for candidate in candidates}}  # sm_90a, too
    found = order(candidates, plan, cards, Layout(RESULTS, "emulated"))
    return {one.name: one.prediction.ms for one in found if one.prediction}


def _card(arch: str) -> Card:
    card = default_card(arch)
    if card is None:
        raise UserError(f"{arch}: no card stands for this architecture")
    return card


def report(measured: Mapping[str, float], predicted: Mapping[str, float], pairs: bool) -> None:
    """Print how the two agree."""
    names = [name for name in measured if name in predicted]
    families: dict[str, list[str]] = {}
    for name in names:
        families.setdefault(name.partition("/")[0] if "/" in name else "", []).append(name)
    groups = {family: members for family, members in families.items() if len(members) >= 3}
    groups = groups if len(groups) > 1 else {}
    for family, members in {**groups, "all": names}.items():
        first, second = [predicted[n] for n in members], [measured[n] for n in members]
        found = agreement(first, second)
        errors = np.log(np.asarray(first) / np.asarray(second))
        print(
            f"{family}: {found.count} configurations, Spearman {found.rho:.3f} [{found.low:.3f}, {found.high:.3f}], "
            f"predicted over measured {np.exp(np.median(errors)):.3f}, spread {100 * errors.std():.1f}%"
        )
    first, second = [predicted[n] for n in names], [measured[n] for n in names]
    tried = [n for n in (1, 5, 10, 20, 50) if n <= len(names)]
    regrets = ", ".join(f"{n}: {regret_pct(first, second, n):.1f}%" for n in tried)
    print(f"the best of the first N is slower than the best of all by: {regrets}")
    left = sorted(set(measured) - set(predicted))
    if left:
        print(
            f"measured and not predicted: {len(left)} ({', '.join(left[:3])}{', ...' if len(left) > 3 else ''})"
        )
    if pairs:
        for name in sorted(names, key=lambda n: abs(np.log(predicted[n] / measured[n]))):
            ratio = predicted[name] / measured[name]
            print(
                f"{name}: measured {measured[name]:.4g} ms, predicted {predicted[name]:.4g}, ratio {ratio:.3f}"
            )


if __name__ == "__main__":
    sys.exit(main())
