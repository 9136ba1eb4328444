"""What a checking process's words and its end are taken for. Pure: the transcripts are written here."""

from __future__ import annotations

import signal

import pytest

from kernelab.check.arm import results_of
from kernelab.check.job import CheckJob, Done, Progress, Refusal, Result, Stage
from kernelab.check.process import Transcript, _events
from kernelab.errors import BrokenMachine, UserError
from kernelab.plan.catalogue import Kernel, Operation
from kernelab.records.check import SEVERITY, CheckedProblem, gravest

OPERATION = Operation.model_validate(
    {
        "name": "scale",
        "title": "y = x",
        "problem": {"n": "int"},
        "arrays": {"x": {"shape": ["n"], "role": "input"}, "y": {"shape": ["n"], "role": "output"}},
        "arguments": ["n", "x", "y"],
        "flops": "n",
        "bytes": "8*n",
        "tolerance": {"absolute": 1e-3, "relative": 1e-2, "frobenius": 1e-5},
        "checks": {"a": {"n": 1}},
    }
)
KERNEL = Kernel.model_validate(
    {"idea": "i", "source": "k.cu", "launches": [{"entry": "e", "grid": ["ceil_div(n, 2)"], "block": 32}]}
)
OK = CheckedProblem(status="ok", correct=True)


def job(device: str = "gpu") -> CheckJob:
    return CheckJob.model_validate(
        {
            "device": device,
            "uuid": "GPU-0",
            "folder": "/kernels/scale",
            "operation": OPERATION,
            "kernel_name": "k",
            "kernel": KERNEL,
            "levels": {},
            "library": "",
            "cubin": "/c",
            "ptx": "/p",
            "problems": {"a": {"n": 1}, "b": {"n": 2}, "c": {"n": 3}},
            "seed": 1,
        }
    )


def ended(*events: object, returncode: int = 0, overran: bool = False, stderr: str = "") -> Transcript:
    return Transcript(tuple(events), returncode, overran, stderr)  # type: ignore[arg-type]


def at(problem: str, stage: Stage) -> Progress:
    return Progress(problem=problem, stage=stage)


def test_job_and_events_survive_the_pipe() -> None:
    assert CheckJob.model_validate_json(job().model_dump_json()) == job()
    said = (at("a", "run"), Result(problem="a", result=OK), Refusal(kind="user_error", message="x"), Done())
    text = "".join(event.model_dump_json() + "\n" for event in said)
    assert _events(text.encode()) == said
    # The last line of a killed process may be cut off; whatever else is printed there is none of ours.
    assert _events(b"noise\n" + text[:-8].encode()) == said[:-1]


def test_all_problems_in_the_jobs_order() -> None:
    results = [Result(problem=name, result=OK) for name in ("c", "a", "b")]
    assert list(results_of(job(), ended(*results, Done()), 9)) == ["a", "b", "c"]


def test_a_hang_in_the_kernel_is_a_timeout_and_the_rest_is_not_measured() -> None:
    results = results_of(
        job(), ended(Result(problem="a", result=OK), at("b", "run"), overran=True, returncode=-9), 9
    )
    assert {name: result.status for name, result in results.items()} == {
        "a": "ok",
        "b": "timeout",
        "c": "not_measured",
    }
    assert "9 s" in results["b"].note
    assert results["c"].note == "not run: the check ended at b"


def test_a_slow_emulation_is_no_timeout() -> None:
    results = results_of(job("emulated"), ended(at("a", "run"), overran=True, returncode=-9), 9)
    assert results["a"].status == "not_measured"
    assert "did not end in 9 s" in results["a"].note


@pytest.mark.parametrize("stage", ["start", "inputs", "reference"])
def test_a_hang_outside_the_kernel_is_no_status(stage: Stage) -> None:
    with pytest.raises(UserError, match=r"check\.limit_s"):
        results_of(job(), ended(at("a", stage), overran=True, returncode=-9), 9)


def test_a_crash_in_the_launch_is_a_launch_error() -> None:
    results = results_of(job(), ended(at("a", "run"), returncode=-signal.SIGSEGV), 9)
    assert results["a"].status == "launch_error"
    assert "SIGSEGV" in results["a"].note


@pytest.mark.parametrize(
    ("stage", "returncode", "device"),
    [
        ("run", -signal.SIGKILL, "gpu"),  # the kernel's out-of-memory killer, or an operator
        ("run", 1, "gpu"),
        ("reference", -signal.SIGSEGV, "gpu"),
        ("run", -signal.SIGSEGV, "emulated"),
        ("start", 1, "gpu"),
    ],
)
def test_an_end_that_says_nothing_of_the_kernel_is_a_broken_machine(
    stage: Stage, returncode: int, device: str
) -> None:
    transcript = ended(at("a", stage), returncode=returncode, stderr="Traceback\nImportError: no module")
    with pytest.raises(BrokenMachine, match="ImportError: no module"):
        results_of(job(device), transcript, 9)


def test_refusals_are_raised_as_what_they_are() -> None:
    with pytest.raises(UserError, match="mend it"):
        results_of(job(), ended(Refusal(kind="user_error", message="mend it"), Done()), 9)
    with pytest.raises(BrokenMachine, match="no memory"):
        results_of(job(), ended(Refusal(kind="broken_machine", message="no memory"), Done()), 9)


def test_a_ruined_context_ends_the_check() -> None:
    fault = CheckedProblem(status="memory_fault", note="illegal address")
    results = results_of(job(), ended(Result(problem="a", result=fault, stopped=True), Done()), 9)
    assert [result.status for result in results.values()] == ["memory_fault", "not_measured", "not_measured"]
    assert results["b"].note == "not run: the check ended at a"


def test_gravest() -> None:
    assert gravest([]) == "ok"
    assert gravest(["ok", "wrong_result", "hazard"]) == "wrong_result"
    assert gravest(["not_measured", "ok"]) == "not_measured"
    assert gravest(reversed(SEVERITY)) == "compile_error"
