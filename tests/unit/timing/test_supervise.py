"""Real processes with made-up behaviour: what the parent makes of a worker that hangs, dies or is done."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernelab.errors import UserError
from kernelab.timing import supervise
from kernelab.timing.faults import ArmFault
from kernelab.timing.job import Job, ProcessResult, Sizes
from kernelab.timing.supervise import run_process

from .conftest import CARD, Project

SAY = """
import json, os, signal, sys, time
job = json.loads(sys.stdin.buffer.read())
def say(**line): os.write(1, (json.dumps(line) + "\\n").encode())
def on(member, limit=30.0): say(step="sample", member=member, limit_s=limit)
"""


@pytest.fixture
def job(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    monkeypatch.setattr(supervise, "GRACE_S", 0.2)
    return Job(
        root=str(project.root),
        plan=project.plan(),
        session="s1",
        process=0,
        seed=1,
        groups=[],
        builds={},
        budget_s=1.0,
        sizes=None,
        references=str(tmp_path),
        result=str(tmp_path / "result.json"),
    )


def worker(body: str) -> list[str]:
    return [sys.executable, "-c", SAY + body]


def pids_of(tmp_path: Path) -> int:
    return int((tmp_path / "pid").read_text())


def gone(pid: int) -> bool:
    for _ in range(50):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def test_a_worker_that_is_done_hands_its_result_over(job: Job) -> None:
    result = ProcessResult(
        seed=1,
        warmup_s=0.5,
        steady=True,
        sizes=Sizes(rounds=3, launches={}, strides={}),
        rows=[],
        wrong={},
        card=CARD,
        driver="",
        cuda_runtime="",
        cupy="",
        cublas="",
        inputs=[],
    )
    Path(job.references, "r.json").write_text(result.model_dump_json())
    body = "import shutil\non('a')\nprint('noise', file=sys.stderr)\nshutil.copy(job['references'] + '/r.json', job['result'])"
    assert run_process(job, worker(body)) == result


def test_an_old_result_is_never_taken_for_a_new_one(job: Job) -> None:
    Path(job.result).write_text("{}")
    with pytest.raises(UserError, match=r"exit 0\): it said nothing"):
        run_process(job, worker("on('a')"))


def test_a_hung_launch_is_killed_with_its_children_and_blamed(job: Job, tmp_path: Path) -> None:
    body = f"""
import subprocess
child = subprocess.Popen(["sleep", "60"])
open({str(tmp_path / "pid")!r}, "w").write(str(child.pid))
on("b", 0.3)
time.sleep(60)
"""
    begun = time.monotonic()
    with pytest.raises(ArmFault, match=r"not done after 0\.3 s") as caught:
        run_process(job, worker(body))
    assert (caught.value.member, caught.value.status) == ("b", "timeout")
    assert time.monotonic() - begun < 10
    assert gone(pids_of(tmp_path))


def test_announcements_renew_the_limit(job: Job) -> None:
    with pytest.raises(UserError, match="exit 0"):
        run_process(job, worker("for _ in range(4):\n    on('a', 1.0)\n    time.sleep(0.4)"))


def test_a_fault_is_handed_on_and_a_worker_that_stays_is_ended(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervise, "REAP_S", 0.3)
    body = "say(member='c', status='memory_fault', note='illegal address')\ntime.sleep(60)"
    with pytest.raises(ArmFault, match="illegal address") as caught:
        run_process(job, worker(body))
    assert (caught.value.member, caught.value.status) == ("c", "memory_fault")


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT])
def test_a_crash_is_the_arms(job: Job, number: signal.Signals) -> None:
    with pytest.raises(ArmFault, match=number.name) as caught:
        run_process(job, worker(f"on('a')\nos.kill(os.getpid(), {int(number)})"))
    assert (caught.value.member, caught.value.status) == ("a", "launch_error")


def test_a_kill_from_outside_is_the_machines(job: Job) -> None:
    with pytest.raises(UserError, match="failed"):
        run_process(job, worker("on('a')\nos.kill(os.getpid(), signal.SIGKILL)"))


def test_a_broken_machine_says_its_last_line(job: Job) -> None:
    with pytest.raises(UserError, match=r"NVIDIA Test failed \(exit 4\): no memory: out of it"):
        run_process(job, worker("on('a')\nprint('x\\nno memory: out of it', file=sys.stderr)\nsys.exit(4)"))


def test_a_worker_that_never_speaks_is_the_machines(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervise, "START_S", 0.3)
    with pytest.raises(UserError, match="hung at 'start'"):
        run_process(job, worker("time.sleep(60)"))


def test_noise_among_the_announcements_is_passed_over(job: Job) -> None:
    with pytest.raises(UserError, match="exit 0"):
        run_process(job, worker("os.write(1, b'\\xff{}[]\\nhello\\n')\non('a')"))


def test_a_worker_does_not_outlive_an_interrupt(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(process: object) -> None:
        while not (tmp_path / "pid").is_file():
            time.sleep(0.05)
        raise KeyboardInterrupt

    monkeypatch.setattr(supervise, "_watch", interrupted)
    path = str(tmp_path / "pid")
    body = f"open({path + '.new'!r}, 'w').write(str(os.getpid()))\nos.rename({path + '.new'!r}, {path!r})\ntime.sleep(60)"
    with pytest.raises(KeyboardInterrupt):
        run_process(job, worker(body))
    assert gone(pids_of(tmp_path))


def test_a_worker_does_not_outlive_a_parent_that_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    child = f"""
import os, time
from kernelab.timing.worker import die_with_the_parent
die_with_the_parent()
open({str(path) + ".new"!r}, "w").write(str(os.getpid()))
os.rename({str(path) + ".new"!r}, {str(path)!r})
time.sleep(60)
"""
    parent = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {child!r}], start_new_session=True).wait()"
    environment = os.environ | {"PYTHONPATH": str(Path(supervise.__file__).parents[2])}
    with subprocess.Popen([sys.executable, "-c", parent], env=environment) as process:
        try:
            for _ in range(200):
                if path.is_file():
                    break
                time.sleep(0.05)
        finally:
            process.kill()
    assert gone(pids_of(tmp_path))


def test_the_real_worker_without_a_gpu_says_so_in_one_line(job: Job) -> None:
    if os.path.exists("/dev/nvidia0"):
        pytest.skip("there is a GPU here")
    with pytest.raises(UserError, match=r"exit 4\): the GPU GPU-00000000.* is not here"):
        run_process(job)
