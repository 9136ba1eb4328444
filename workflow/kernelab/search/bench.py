"""The card of a search: arms that come one at a time, judged where their outputs lie. Lives in a worker process only."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from kernelab.device.cuda_faults import translated
from kernelab.device.judge import Judge
from kernelab.device.nvml import Monitor
from kernelab.search.job import AGAIN, BASE, Contender, SearchJob
from kernelab.timing.bench import GpuBench, blaming_the_arm
from kernelab.timing.faults import ArmFault
from kernelab.timing.groups import Member
from kernelab.timing.job import BuiltArm
from kernelab.timing.measure import Reading

if TYPE_CHECKING:
    from kernelab.device.cuda import Session

MOST_LOADED = 256
"""Members that stay loaded; beyond it, or where memory runs short, the one that was used longest ago makes room."""

FREE_SHARE = 0.15


class SearchBench(GpuBench):
    """See heat.HeatBench; loading and sampling are those of an experiment.

    Args:
        job: the plan, the base, and where the reference is kept.
        session: the card.
        monitor: NVML, for its state.

    The inputs are on the card, and the float64 reference beside them, when it is made.

    Raises:
        UserError: operation.py fails, or its reference cannot judge.
    """

    def __init__(self, job: SearchJob, session: Session, monitor: Monitor) -> None:
        super().__init__(job.plan, {}, session, monitor, root=Path(job.root), references=Path(job.references))
        place = self._place(job.base)
        self._arrays = place.arrays
        reference = self._reference(job.base, dict(place.arrays.given), "timed")
        self._kept: frozenset[str] = frozenset()
        self._judge = Judge(session, place.arrays, reference, self._operation(job.base).operation.tolerance)

    def begin(self, names: Collection[str]) -> None:
        self._kept = frozenset((BASE, AGAIN, *names))

    def admit(self, contender: Contender) -> None:
        self._arms[contender.arm.name] = contender.arm
        self._builds[contender.build.key] = contender.build
        self._built[contender.build.key] = BuiltArm(cubin=contender.cubin, sass_sha256="")

    def load(self, member: Member) -> None:
        while self._loaded and (len(self._loaded) >= MOST_LOADED or self._short_of_memory()):
            if not self._drop_oldest():
                break
        super().load(member)

    def loaded(self, member: Member) -> bool:
        return member.name in self._loaded

    def check(self, member: Member) -> str:
        with blaming_the_arm(), translated():
            self._arrays.reset_outputs()
        self.launch_once(member)
        return self._judged(member)

    def sample_judged(self, member: Member, launches: int) -> tuple[Reading, str]:
        reading = self._sampled(member, launches, self._arrays.reset_outputs)
        return reading, self._judged(member)

    def _judged(self, member: Member) -> str:
        """What is wrong with the last launch.

        Raises:
            ArmFault: it wrote where it must not; the process is of no more use then.
        """
        arm = self._loaded[member.name]
        with blaming_the_arm():
            judged = self._judge.judge(arm.guarded, arm.damaged_guards)
        if judged.damaged:
            raise ArmFault("memory_fault", f"writes outside {judged.damaged[0]}")
        if judged.changed:
            raise ArmFault("wrong_result", f"changed its input {judged.changed[0]}")
        return judged.wrong

    def _short_of_memory(self) -> bool:
        free, total = self._session.memory()
        return free < FREE_SHARE * total

    def _drop_oldest(self) -> bool:
        """Unload the member that was loaded longest ago and is not needed now; False where there is none."""
        for name in self._loaded:
            if name not in self._kept:
                self._session.synchronize(self.limit_s)
                self._loaded.pop(name).unload()
                return True
        return False
