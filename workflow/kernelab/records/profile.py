"""profile/<kernel>/<variant>/<problem>.json: what Nsight Compute counted in one marked launch of an arm."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from kernelab.records.record import Record

ProfileStatus = Literal[
    "ok", "no_ncu", "no_permission", "nan_counters", "target_crashed", "timeout", "not_profiled"
]


class Metric(BaseModel):
    """A counter and its unit, as the report names it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: float
    unit: str


class ProfiledKernel(BaseModel):
    """One kernel of the launch's sequence, in order: its name and every number that the report holds of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    metrics: dict[str, Metric]


class ProfileRecord(Record):
    """The profile of one arm.

    status    ok; no_ncu, no_permission, nan_counters, target_crashed, timeout: why there are no counters;
              not_profiled: the arm itself was refused by build or check
    note      one line; for a failure, with the fix
    values    the ncu_* columns that could be read, by name
    """

    version: ClassVar[int] = 1

    arm: str
    status: ProfileStatus
    note: str
    ncu: str  # its version, empty where there is none
    kernels: list[ProfiledKernel]
    values: dict[str, float]

    def columns(self) -> dict[str, float]:
        """The ncu_* columns for table.csv; those that were not counted are absent."""
        return dict(self.values)
