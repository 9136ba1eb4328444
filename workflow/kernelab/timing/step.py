"""The step `time` by what the plan calls things: which arms build and check let through, and which files it writes."""

from __future__ import annotations

from pathlib import Path

from kernelab.digests import Digests
from kernelab.plan.arms import Plan
from kernelab.records.layout import Layout
from kernelab.records.timing import TimingRecord
from kernelab.timing.experiment import TimeStep, time_experiment
from kernelab.timing.gate import Gate
from kernelab.timing.session import Say


def time_planned(
    plan: Plan, experiment: str, layout: Layout, digests: Digests, *, say: Say = print, root: Path = Path()
) -> TimingRecord:
    """Time what is not timed yet of one experiment of a plan.

    Args:
        plan: the plan.
        experiment: which of its experiments.
        layout: where builds and checks are, and where the samples and the record go.
        digests: of the plan.
        say: told in a line what happens.
        root: the project's folder.

    Raises:
        UserError: a record of a build or check is missing or stale; and those of time_experiment.
    """
    arms, gate = plan.experiment_arms(experiment), Gate(plan, layout, digests)
    step = TimeStep(
        plan=plan,
        experiment=experiment,
        builds=gate.built(arms),
        refused=gate.refused(arms),
        root=root,
        samples=layout.samples(experiment),
        record=layout.timing(experiment),
        digest=digests.timing(experiment),
    )
    return time_experiment(step, say=say)
