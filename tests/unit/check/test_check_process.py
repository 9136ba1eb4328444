"""The checking process itself, on whatever this machine is: what can be said before any device is used."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from check_project import OPERATION, CheckProject

from kernelab.check.arm import check_arm, make_job
from kernelab.check.job import Refusal
from kernelab.check.process import converse
from kernelab.device.identify import EMULATED
from kernelab.device.lock import ENVIRONMENT, card_lock
from kernelab.errors import UserError
from kernelab.plan.arms import Device
from kernelab.records.build import BuildRecord
from kernelab.records.check import CheckRecord
from kernelab.records.record import read_record, write_record

ABSENT = Device(
    id="no-card", kind="gpu", name="no card", arch="sm_86", uuid="GPU-00000000-0000-0000-0000-000000000000"
)


@pytest.fixture(autouse=True)
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "locks"))


def project(tmp_path: Path, device: Device = ABSENT) -> CheckProject:
    made = CheckProject(tmp_path, device)
    build = tmp_path / "build"
    build.mkdir()
    for name in ("kernel.cubin", "kernel.ptx"):
        (build / name).write_text("not code")
    return made


def refusal(made: CheckProject) -> str:
    out = made.root / "results" / "x.json"
    with pytest.raises(UserError) as error:
        check_arm(made.plan(), "right/default", "small", made.root / "build", out, "d", made.root)
    assert not out.exists()
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_card_that_is_not_here_is_the_users_to_mend(tmp_path: Path) -> None:
    assert re.search(
        rf"the GPU {ABSENT.uuid} is not here \(.*\); look at CUDA_VISIBLE_DEVICES", refusal(project(tmp_path))
    )


def test_a_broken_operation_is_said_in_one_line(tmp_path: Path) -> None:
    made = project(tmp_path)
    made.operation("print('to standard output')\nraise RuntimeError('no reference today')\n")
    assert refusal(made) == "kernels/axpby/operation.py: line 2: RuntimeError: no reference today"


def test_what_the_user_prints_does_not_disturb_the_conversation(tmp_path: Path) -> None:
    made = project(tmp_path)
    made.operation("import os\nprint('{')\nos.write(1, b'noise\\n')\nreference = 3\n")
    job = make_job(made.plan(), "right/default", "small", made.root / "build", made.root)
    transcript = converse(job, 60)
    assert transcript.finished
    (said,) = [event for event in transcript.events if isinstance(event, Refusal)]
    assert "has no function reference" in said.message
    assert "noise" in transcript.stderr


def test_a_hang_outside_the_kernel_is_killed_at_the_limit(tmp_path: Path) -> None:
    made = project(tmp_path)
    made.limit_s = 3.0
    made.operation("import subprocess\nsubprocess.run(['sleep', '1000'])\n")
    started = time.monotonic()
    assert "took more than 3 s; raise check.limit_s" in refusal(made)
    assert time.monotonic() - started < 20


def test_the_process_dies_with_its_parent(tmp_path: Path) -> None:
    made = project(tmp_path)
    pid_file = tmp_path / "pid"
    made.operation(
        f"import os, time\nopen({str(pid_file)!r}, 'w').write(str(os.getpid()))\ntime.sleep(1000)\n"
    )
    job = make_job(made.plan(), "right/default", "small", made.root / "build", made.root)
    (tmp_path / "job.json").write_text(job.model_dump_json())
    script = (
        "import sys\nfrom pathlib import Path\nfrom kernelab.check.job import CheckJob\n"
        "from kernelab.check.process import converse\n"
        "converse(CheckJob.model_validate_json(Path(sys.argv[1]).read_text()), 1000)\n"
    )
    workflow = str(Path(__file__).parents[3] / "workflow")
    parent = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "job.json")], env={**os.environ, "PYTHONPATH": workflow}
    )
    try:
        deadline = time.monotonic() + 30
        while not (pid_file.exists() and pid_file.read_text()) and time.monotonic() < deadline:
            time.sleep(0.05)
        child = int(pid_file.read_text())
    finally:
        parent.kill()
        parent.wait()
    while Path(f"/proc/{child}/status").exists() and time.monotonic() < deadline:
        if "State:\tZ" in Path(f"/proc/{child}/status").read_text():
            break  # dead; whoever adopted it has not reaped it yet
        time.sleep(0.05)
    else:
        assert not Path(f"/proc/{child}").exists()


def test_the_card_is_locked_meanwhile(tmp_path: Path) -> None:
    made = project(tmp_path)
    made.operation(
        f"from kernelab.device.lock import card_lock\nwith card_lock({ABSENT.uuid!r}, wait_s=0):\n    pass\n"
    )
    assert "is in use by process" in refusal(made)
    with card_lock(ABSENT.uuid, wait_s=0):
        pass


@pytest.mark.parametrize(
    ("built", "status"), [("compile_error", "compile_error"), ("not_built", "not_measured")]
)
def test_a_build_without_code_is_a_record(tmp_path: Path, built: str, status: str) -> None:
    made = project(tmp_path)
    build = tmp_path / "build"
    for name in ("kernel.cubin", "kernel.ptx"):
        (build / name).write_bytes(b"")
    facts = {
        "digest": "b",
        "kernel": "right",
        "variant": "default",
        "status": built,
        "note": "line 3: expected a ;",
        "source": "right.cu",
        "source_sha256": "",
        "arch": "sm_86",
        "toolchain": {},
        "defines": {},
        "options": (),
        "command": (),
        "log": "",
        "seconds": 0.0,
        "entries": {},
    }
    write_record(build / "build.json", BuildRecord.model_validate(facts))
    out = tmp_path / "results" / "x.json"
    check_arm(made.plan(), "right/default", "small", build, out, "d", tmp_path)
    record = read_record(out, CheckRecord, "d")
    assert (record.status, record.note, record.problems) == (status, "line 3: expected a ;", {})


def test_a_library_needs_a_gpu(tmp_path: Path) -> None:
    made = project(tmp_path, EMULATED)
    made.library()
    made.operation(OPERATION + "def scal(problem, arrays):\n    raise AssertionError\n")
    record = made.check("00_scal")
    assert (record.status, record.note, record.kernel, record.variant) == (
        "not_measured",
        "scal needs a GPU",
        "00_scal",
        "default",
    )


def test_unknown_builds_and_problems(tmp_path: Path) -> None:
    made = project(tmp_path)
    for key, which, reason in (
        ("wrong/default", "small", "wrong/default: no build of the plan"),
        ("right/default", "huge", "huge: no problem of axpby"),
    ):
        with pytest.raises(UserError, match=reason):
            make_job(made.plan(), key, which, tmp_path / "build", tmp_path)
