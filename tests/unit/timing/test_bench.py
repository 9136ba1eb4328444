"""The bench on a session made of NumPy: what is loaded, shared, restored and checked again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelab.device.cuda_faults import KernelFault
from kernelab.device.nvml import Reading as CardReading
from kernelab.device.stopwatch import Sampled
from kernelab.errors import UserError
from kernelab.operation.compare import compare
from kernelab.timing import bench as bench_module
from kernelab.timing.bench import INPUT_SEED, OTHER_SEED, GpuBench
from kernelab.timing.faults import ArmFault
from kernelab.timing.groups import Member
from kernelab.timing.job import BuiltArm

from .conftest import CATALOGUE, CONFIG, Project

OPERATION = """
import numpy as np
def reference(problem, arrays):
    result = problem["a"] * arrays["x"].astype(np.float64)
    return {"y": result + arrays["y"] if "y" in arrays else result}
def cublas(problem, arrays):
    raise ImportError("no cuBLAS")
"""
MEMBER = Member("02_fast/default@small", "02_fast/default@small", "base")


class Arrays(dict[str, np.ndarray]):  # type: ignore[type-arg]
    def __init__(
        self, buffers: Mapping[str, Any], outputs: tuple[str, ...], inputs: Mapping[str, Any]
    ) -> None:
        super().__init__({name: np.empty(buffer.shape, np.float32) for name, buffer in buffers.items()})
        self._outputs = outputs
        self.guards: list[str] = []
        self.upload(inputs)

    def upload(self, inputs: Mapping[str, Any]) -> None:
        self.given = dict(inputs)
        for name in set(self) - set(self._outputs):
            self[name][:] = inputs[name]
        self.reset_outputs()

    def reset_outputs(self) -> None:
        for name in self._outputs:
            if name in self.given:
                self[name][:] = self.given[name]
            else:
                self[name].view(np.uint32)[:] = 0xFFFFFFFF

    def outputs(self) -> dict[str, np.ndarray]:  # type: ignore[type-arg]
        return {name: self[name].copy() for name in self._outputs}

    def damaged_guards(self) -> list[str]:
        return self.guards


class Arm:
    kernels = 1

    def __init__(self, launch: Callable[[], None]) -> None:
        self.launch = launch

    def damaged_guards(self) -> list[str]:
        return []


class Session:
    """A session whose only kernel is y = a x, or what a test makes of it."""

    def __init__(self) -> None:
        self.made: list[Arrays] = []
        self.kernel: Callable[[Arrays], None] = lambda arrays: np.multiply(arrays["x"], 2, out=arrays["y"])
        self.waits = 0

    def arrays(
        self, buffers: Mapping[str, Any], outputs: tuple[str, ...], inputs: Mapping[str, Any]
    ) -> Arrays:
        self.made.append(Arrays(buffers, outputs, inputs))
        return self.made[-1]

    def load(self, program: Any, cubin: bytes, arrays: Arrays) -> Arm:
        if cubin == b"other card":
            raise KernelFault("launch_error", "the cubin is for another architecture")
        return Arm(lambda: self.kernel(arrays))

    def load_library(self, factory: Any, problem: Any, arrays: Arrays) -> Arm:
        try:
            return Arm(factory(problem, arrays))
        except ImportError as error:
            raise UserError(str(error)) from None

    def synchronize(self, limit_s: float) -> None:
        self.waits += 1


class Stopwatch:
    def __init__(self, session: Session) -> None:
        self.taken: list[tuple[str, int, bool]] = []

    def cold(self, launch: Callable[[], None], launches: int, limit_s: float, restore: object) -> Sampled:
        self.taken.append(("cold", launches, restore is not None))
        return Sampled(1.0, 1500.0, True)

    def hot(self, launch: Callable[[], None], launches: int, limit_s: float, restore: object) -> Sampled:
        self.taken.append(("hot", launches, restore is not None))
        raise KernelFault("timeout", "still running", sticky=True)


class Nvml:
    def __init__(self, throttle: tuple[str, ...] | None = ()) -> None:
        self.throttle = throttle

    def reading(self) -> CardReading:
        return CardReading(power_w=600.0, temperature_c=60.0, throttle=self.throttle)


@pytest.fixture
def session() -> Session:
    return Session()


@pytest.fixture
def make(
    project: Project, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., GpuBench]:
    monkeypatch.setattr(bench_module, "Stopwatch", Stopwatch)
    (tmp_path / "k.cubin").write_bytes(b"code")
    (tmp_path / "other.cubin").write_bytes(b"other card")

    def bench(cubin: str = "k.cubin", throttle: tuple[str, ...] | None = ()) -> GpuBench:
        (project.root / "kernels/scale/operation.py").write_text(OPERATION)
        plan = project.plan()
        builds = {key: BuiltArm(cubin=str(tmp_path / cubin), sass_sha256=key) for key in plan.builds}
        return GpuBench(
            plan,
            builds,
            session,  # type: ignore[arg-type]
            Nvml(throttle),  # type: ignore[arg-type]
            root=project.root,
            references=tmp_path / "references",
        )

    return bench


Make = Callable[..., GpuBench]


def test_all_arms_of_a_problem_share_the_same_arrays(make: Make, session: Session) -> None:
    bench = make()
    bench.load(MEMBER)
    bench.load(Member("02_fast/V=2@small", "02_fast/V=2@small", "arm"))
    bench.load(Member(MEMBER.name + "#aa", MEMBER.arm, "aa"))
    assert len(session.made) == 1
    bench.load(Member("02_fast/default@big", "02_fast/default@big", "base"))
    assert len(session.made) == 2
    (big, small) = bench.input_facts()
    assert (big.problem, small.problem) == ("big", "small")
    assert big.inputs_sha256["x"] != small.inputs_sha256["x"]


def test_a_right_kernel_passes_the_check_on_other_inputs(make: Make, session: Session) -> None:
    bench = make()
    bench.load(MEMBER)
    timed = session.made[0]["x"].copy()
    assert bench.check_again(MEMBER) == ""
    assert (session.made[0]["x"] != timed).any()
    assert INPUT_SEED != OTHER_SEED


def test_a_kernel_that_remembers_its_output_is_wrong(make: Make, session: Session) -> None:
    bench = make()
    bench.load(MEMBER)
    bench.launch_once(MEMBER)
    remembered = session.made[0]["y"].copy()
    session.kernel = lambda arrays: np.copyto(arrays["y"], remembered)
    assert "other inputs" in bench.check_again(MEMBER)


def test_a_kernel_that_skips_its_work_is_wrong(make: Make, session: Session) -> None:
    bench = make()
    bench.load(MEMBER)
    session.kernel = lambda arrays: None
    assert "wrote nothing" in bench.check_again(MEMBER)


def test_writes_outside_are_a_memory_fault(make: Make, session: Session) -> None:
    bench = make()
    bench.load(MEMBER)
    session.made[0].guards = ["y: 4 bytes past its end"]
    with pytest.raises(ArmFault, match="4 bytes past its end") as caught:
        bench.check_again(MEMBER)
    assert caught.value.status == "memory_fault"


def test_right_bytes_are_judged_once_a_run_and_others_every_time(
    make: Make, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[str] = []

    def counted(name: str, *rest: Any) -> Any:
        judged.append(name)
        return compare(name, *rest)

    monkeypatch.setattr(bench_module, "compare", counted)
    first = make()
    first.load(MEMBER)
    twin = Member(MEMBER.name + "#aa", MEMBER.arm, "aa")
    first.load(twin)
    assert first.check_again(MEMBER) == first.check_again(twin) == ""
    assert judged == ["y"]
    second = make()
    second.load(MEMBER)
    monkeypatch.setattr(bench_module, "make_reference", lambda *_: pytest.fail("it is computed once a run"))
    assert second.check_again(MEMBER) == ""
    assert judged == ["y"]
    session.kernel = lambda arrays: np.multiply(arrays["x"], 3, out=arrays["y"])
    assert second.check_again(MEMBER) != ""
    assert second.check_again(MEMBER) != ""
    assert judged == ["y"] * 3


def test_an_output_that_is_read_is_restored_before_each_sample(
    make: Make, project: Project, session: Session
) -> None:
    project.write(
        catalogue=CATALOGUE.replace(
            "y: {shape: [n], role: output}", "y: {shape: [n], role: output, read_when: a > 1}"
        )
    )
    bench = make()
    bench.load(MEMBER)
    bench.sample(MEMBER, 3)
    assert bench._stopwatch.taken == [("cold", 3, True)]  # type: ignore[attr-defined]
    session.kernel = lambda arrays: np.add(arrays["y"], 2 * arrays["x"], out=arrays["y"])
    assert bench.check_again(MEMBER) == ""


def test_the_l2_level_chooses_the_kind_of_sample_and_faults_are_the_arms(
    make: Make, project: Project
) -> None:
    project.write(CONFIG.replace("vary: {V: [1, 2, 4]}", "vary: {l2: [cold, hot]}"))
    bench = make()
    hot = "02_fast/default@big,l2=hot"
    member = Member(hot, hot, "arm")
    bench.load(member)
    assert bench.method(member) == ("hot", 1)
    with pytest.raises(ArmFault, match="still running") as caught:
        bench.sample(member, 5)
    assert caught.value.status == "timeout"
    assert bench._stopwatch.taken == [("hot", 5, False)]  # type: ignore[attr-defined]


def test_code_for_another_card_and_a_missing_library_are_the_arms(make: Make) -> None:
    with pytest.raises(ArmFault, match="another architecture"):
        make("other.cubin").load(MEMBER)
    library = Member("00_library/default@small", "00_library/default@small", "reference")
    with pytest.raises(ArmFault, match="no cuBLAS"):
        make().load(library)


@pytest.mark.parametrize(
    ("reasons", "text"),
    [(None, ""), ((), "none"), (("sw_power_cap", "hw_slowdown"), "sw_power_cap+hw_slowdown")],
)
def test_the_cards_state_tells_unread_from_none(
    make: Make, reasons: tuple[str, ...] | None, text: str
) -> None:
    state = make(throttle=reasons).state()
    assert (state.power_w, state.temperature_c, state.throttle) == (600.0, 60.0, text)
