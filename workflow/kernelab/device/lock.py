"""One measurement at a time on a card: an advisory lock per GPU UUID that every user of the machine can take.

The kernel drops a flock when its process ends, however it ends, so there is nothing to clean up. The file stays:
removing it would let two processes hold locks on two files of the same name.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kernelab.errors import UserError

ENVIRONMENT = "KERNELAB_LOCK_DIR"
POLL_S = 0.1


def lock_folder() -> Path:
    """The folder of the locks: KERNELAB_LOCK_DIR, or kernelab-locks in the system's temporary folder.

    Made where it is missing, writable for everybody and sticky like /tmp, whatever the umask says.

    Raises:
        UserError: it cannot be made, or is not a folder of everybody's.
    """
    given = os.environ.get(ENVIRONMENT)
    # TMPDIR may be the user's own (Slurm makes one per job); the lock must be the same file for all.
    folder = (
        Path(given)
        if given
        else Path("/tmp" if Path("/tmp").is_dir() else tempfile.gettempdir()) / "kernelab-locks"
    )
    try:
        folder.mkdir(parents=True)
        folder.chmod(0o1777)
    except FileExistsError:
        if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
            raise UserError(
                f"{folder}: is no folder that you can write to; set {ENVIRONMENT} to one, the same for all users"
            ) from None
    except OSError as error:
        raise UserError(
            f"{folder}: {error.strerror}; set {ENVIRONMENT} to a folder that all users can write to"
        ) from None
    return folder


@contextmanager
def card_lock(uuid: str, wait_s: float = 600.0, *, shared: bool = False) -> Iterator[int]:
    """Hold the lock of a card.

    A measurement holds it alone. Checks may share it: they disturb each other's time, not each other's results.

    Yields the descriptor that holds it. A worker that inherits it (`pass_fds`) keeps the card locked for as long as it
    lives, even where its parent is killed.

    Args:
        uuid: of the GPU.
        wait_s: how long to wait for another holder.
        shared: whether others that also share it may hold it at the same time.

    Raises:
        UserError: it did not come free in time (the message names the holder's process where it is known),
            or its file cannot be opened.
    """
    path = lock_folder() / f"{re.sub(r'[^A-Za-z0-9-]', '_', uuid)}.lock"
    descriptor = _open(path)
    try:
        deadline = time.monotonic() + wait_s
        while not _try(descriptor, shared):
            if time.monotonic() >= deadline:
                raise UserError(
                    f"the GPU {uuid} is in use by {_holder(descriptor)} for more than {wait_s:g} s; wait for it ({path})"
                )
            time.sleep(POLL_S)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield descriptor
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    # O_CREAT on another user's file in a sticky folder is refused by fs.protected_regular, so open what is there first.
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    for _ in range(10):
        try:
            return os.open(path, flags)
        except FileNotFoundError:
            with contextlib.suppress(FileExistsError):
                descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
                os.fchmod(descriptor, 0o666)  # the umask must not keep other users out
                return descriptor
        except OSError as error:
            raise UserError(
                f"{path}: {error.strerror}; its owner must let others write to it (chmod 666)"
            ) from None
    raise UserError(f"{path}: comes and goes; do not remove lock files while kernelab runs")


def _try(descriptor: int, shared: bool) -> bool:
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise
    return True


def _holder(descriptor: int) -> str:
    text = os.pread(descriptor, 32, 0).split(b"\n")[0]
    if not text.isdigit():
        return "another kernelab"
    pid = int(text)
    try:
        command = Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        command = ""
    return f"process {pid}" + (f" ({command})" if command else "")
