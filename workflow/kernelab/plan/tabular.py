"""results/plan.csv: the plan for people, one row per arm of an experiment and one per comparison."""

from __future__ import annotations

import csv
import io

from kernelab.plan.arms import Arm, Plan

COLUMNS = (
    "experiment",
    "design",
    "row",
    "arm",
    "base_arm",
    "variable",
    "base_level",
    "level",
    "composite",
    "build",
    "settings",
    "note",
)


def plan_csv(plan: Plan) -> str:
    """The text of plan.csv: rows `arm` say what an experiment needs, rows `comparison` which variable differs."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n", restval="")
    writer.writeheader()
    for experiment in plan.experiments.values():
        common = {"experiment": experiment.name, "design": experiment.design}
        for name in (*experiment.arms, *experiment.references):
            arm = plan.arms[name]
            row = "reference" if name in experiment.references else "arm"
            writer.writerow(
                common
                | {
                    "row": row,
                    "arm": name,
                    "build": arm.build,
                    "settings": settings_text(arm),
                    "note": arm.excluded,
                }
            )
        for comparison in experiment.comparisons:
            writer.writerow(
                common
                | {
                    "row": "comparison",
                    "arm": comparison.arm,
                    "base_arm": comparison.base,
                    "variable": comparison.variable,
                    "base_level": comparison.base_level,
                    "level": comparison.level,
                    "composite": str(comparison.composite).lower(),
                }
            )
    return out.getvalue()


def settings_text(arm: Arm) -> str:
    """Every variable of an arm with its level: kernel=13_final BM=128 ..."""
    return " ".join(f"{name}={level or 'none'}" for name, level in arm.settings.items())
