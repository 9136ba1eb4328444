"""The lock of a card, with real processes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kernelab.device.lock import ENVIRONMENT, card_lock, lock_folder
from kernelab.errors import UserError

UUID = "GPU-01234567-89ab-cdef-0123-456789abcdef"
HOLD = f"""
import sys
from kernelab.device.lock import card_lock
with card_lock("{UUID}"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "locks"))
    return tmp_path / "locks"


@contextmanager
def holder() -> Iterator[subprocess.Popen[bytes]]:
    workflow = str(Path(__file__).parents[3] / "workflow")
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": workflow},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def test_a_second_holder_is_told_who_has_it() -> None:
    with holder() as process, pytest.raises(UserError) as error, card_lock(UUID, wait_s=0.2):
        pass
    assert re.search(rf"{UUID} is in use by process {process.pid} \(\S+\)", str(error.value))


def test_another_card_is_another_lock() -> None:
    with holder(), card_lock(UUID.replace("0", "f"), wait_s=0):
        pass


def test_a_killed_holder_leaves_the_lock_free() -> None:
    with holder() as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        with card_lock(UUID, wait_s=1):
            pass


def test_it_waits_for_the_holder() -> None:
    with holder() as process:
        assert process.stdin is not None
        started = time.monotonic()
        process.stdin.close()
        with card_lock(UUID, wait_s=10):
            assert time.monotonic() - started < 10


def test_an_inheriting_process_keeps_it_after_its_parent_lets_go() -> None:
    with card_lock(UUID) as descriptor:
        heir = subprocess.Popen(["sleep", "30"], pass_fds=(descriptor,))
    try:
        with pytest.raises(UserError, match="in use"), card_lock(UUID, wait_s=0):
            pass
    finally:
        heir.kill()
        heir.wait()
    with card_lock(UUID, wait_s=1):
        pass


def test_other_users_can_lock_whatever_the_umask(folder: Path) -> None:
    old = os.umask(0o077)
    try:
        with card_lock(UUID):
            pass
    finally:
        os.umask(old)
    assert folder.stat().st_mode & 0o7777 == 0o1777
    (file,) = folder.iterdir()
    assert file.stat().st_mode & 0o777 == 0o666


def test_a_link_in_place_of_the_file_is_refused(folder: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (lock_folder() / f"{UUID}.lock").symlink_to(victim)
    with pytest.raises(UserError), card_lock(UUID):
        pass
    assert victim.read_text() == "precious"


def test_a_folder_that_cannot_be_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        monkeypatch.setenv(ENVIRONMENT, str(path))
        with pytest.raises(UserError, match=ENVIRONMENT) as error:
            lock_folder()
        assert "\n" not in str(error.value)
