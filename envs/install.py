"""Makes the project's virtual environment from the hash-pinned locks beside this file.

Run by `make` with the system's Python and nothing but its standard library: makes the venv, installs the locks,
puts workflow/ on the venv's path. What is installed is written down last, so that a second run is instant and
an interrupted one starts again; another Python or another main lock makes the venv anew.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ENVS = Path(__file__).resolve().parent
STATE = "kernelab-installed.json"


class SetupError(Exception):
    """What stops the set-up, as one line that says what to do."""


def driver_cuda() -> tuple[int, int] | None:
    """The newest CUDA that the NVIDIA driver supports, as (major, minor); None where there is no driver."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    version = ctypes.c_int()
    if cuda.cuDriverGetVersion(ctypes.byref(version)) != 0 or version.value == 0:
        return None
    return version.value // 1000, version.value % 1000 // 10


def main_lock(cuda: tuple[int, int] | None) -> str:
    """The lock that suits a driver: base where there is none or it is older than CUDA 12."""
    if cuda is None or cuda[0] < 12:
        return "base"
    return "gpu-cuda13" if cuda[0] >= 13 else "gpu-cuda12"


def check_python() -> None:
    """Raises SetupError where this Python cannot make a venv."""
    try:
        import ensurepip  # noqa: F401  Debian leaves it out of python3 and has it in python3-venv
        import venv  # noqa: F401
    except ImportError:
        package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
        raise SetupError(
            f"{sys.executable} has no venv; on Debian or Ubuntu: apt install {package} (as root), then run make again"
        ) from None


def install(venv: Path, main: str, extras: list[str]) -> bool:
    """Brings the venv to the main lock plus `extras`; returns whether anything was done.

    Raises:
        SetupError: this Python has no venv, a lock is missing, or pip failed.
    """
    python = venv / "bin" / "python"
    wanted = {
        "project": str(ENVS.parent),
        "python": sys.version.split()[0],
        "build": _digest("build"),
        main: _digest(main),
    }
    added = {name: _digest(name) for name in extras}
    state = _state(venv)
    if not python.exists() or any(state.get(key) != value for key, value in wanted.items()):
        check_python()
        state = {}
    missing = [name for name, digest in added.items() if state.get(name) != digest]
    if state and not missing:
        return False

    started = time.monotonic()
    if not state:
        print(
            f"kernelab: {venv}: new environment from envs/{main}.lock, Python {wanted['python']}", flush=True
        )
        if venv.exists():
            shutil.rmtree(venv)
        _run([sys.executable, "-m", "venv", str(venv)], "could not make the venv")
        _pip(python, "build")
        _pip(python, main)
        _put_on_path(python, ENVS.parent / "workflow")
        state = wanted
        _write_state(venv, state)
    for name in missing:
        print(f"kernelab: {venv}: adding envs/{name}.lock", flush=True)
        _pip(python, name)
        state = state | {name: added[name]}
        _write_state(venv, state)
    print(f"kernelab: {venv}: ready after {time.monotonic() - started:.0f} s", flush=True)
    return True


def _digest(lock: str) -> str:
    path = ENVS / f"{lock}.lock"
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise SetupError(f"envs/{lock}.lock: {error.strerror}; check the file out again") from None


def _state(venv: Path) -> dict[str, str]:
    try:
        state = json.loads((venv / STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def _write_state(venv: Path, state: dict[str, str]) -> None:
    temporary = venv / f".{STATE}"
    temporary.write_text(json.dumps(state, indent=1) + "\n", encoding="utf-8")
    os.replace(temporary, venv / STATE)


def _pip(python: Path, lock: str) -> None:
    # A lock is complete, so pip resolves nothing; sources are built with the setuptools of build.lock, not one
    # that pip would fetch unpinned.
    command = [
        str(python),
        "-I",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-input",
    ]
    command += ["--require-hashes", "--no-deps", "--no-build-isolation", "-r", str(ENVS / f"{lock}.lock")]
    _run(
        command,
        f"pip could not install envs/{lock}.lock (its reason is above); without a network, see envs/README.md",
    )


def _put_on_path(python: Path, folder: Path) -> None:
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = subprocess.run(
        [str(python), "-I", "-c", where], check=True, capture_output=True, text=True
    ).stdout.strip()
    Path(site, "kernelab.pth").write_text(f"{folder}\n", encoding="utf-8")


def _run(command: list[str], failure: str) -> None:
    if subprocess.run(command).returncode != 0:
        raise SetupError(failure)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--venv", type=Path, default=Path(".venv"), help="where the venv goes (default: .venv)"
    )
    parser.add_argument(
        "--lock",
        default="auto",
        help="base, gpu-cuda12 or gpu-cuda13 (default: auto, what the NVIDIA driver supports)",
    )
    parser.add_argument(
        "--add", action="append", default=[], metavar="LOCK", help="a further lock: dev, search, slurm"
    )
    return parser.parse_args()


def main() -> int:
    """The command line; returns the exit status."""
    arguments = _arguments()
    lock = arguments.lock
    if lock == "auto":
        cuda = driver_cuda()
        lock = main_lock(cuda)
        if cuda is not None and lock == "base":
            print(
                f"kernelab: the NVIDIA driver supports CUDA {cuda[0]}.{cuda[1]}; for the GPU, install driver 525 or newer"
            )
    try:
        install(arguments.venv, lock, arguments.add)
    except SetupError as error:
        print(f"kernelab: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
