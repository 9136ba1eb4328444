"""Fills a folder with the wheels that a machine without a network needs, and prints how to install them there.

    python envs/wheelhouse.py --python 3.12 --cuda 13 --have there.txt --dest .whl

The versions and hashes are those of the locks. `--have` names a file of what is already there: the output of
`pip freeze`, or names alone, separated by commas, spaces or lines. Needs pip, setuptools and packaging (the
project's venv has them); a package that PyPI carries as source alone is built here, and must be pure Python.
With --sources it is brought as it is, along with the tools that build it, so that `make` there finds every hash.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.markers import Marker
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename

ENVS = Path(__file__).resolve().parent
LOCKS = {"12": "gpu-cuda12", "13": "gpu-cuda13", "none": "base"}
# The wheels of other platform names that a glibc runs, newest first; pip matches the names exactly.
LEGACY = ("manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64")
PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)\s*(?:;\s*(?P<marker>[^\\]+))?")
HASH = re.compile(r"--hash=(sha256:[0-9a-f]{64})")


class WheelhouseError(Exception):
    """What stops the work, in one line."""


@dataclass(frozen=True)
class Pin:
    """One package of a lock: its name, version, marker (or an empty text) and hashes."""

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]

    def requirement(self) -> str:
        """The pin as a line of a requirements file, without its marker."""
        return " ".join([f"{self.name}=={self.version}", *(f"--hash={digest}" for digest in self.hashes)])


def read_lock(text: str) -> Iterator[Pin]:
    """The pins of a lock's text."""
    logical = text.replace("\\\n", " ")
    for line in logical.splitlines():
        if match := PIN.match(line):
            marker = re.split(r"\s--hash=", match["marker"] or "")[0].strip()
            yield Pin(match["name"], match["version"], marker, tuple(HASH.findall(line)))


def read_names(text: str) -> set[str]:
    """The package names in a pip freeze, a pip list, or a list of names, in canonical spelling."""
    names = set()
    for line in text.splitlines():
        line = line.partition("#")[0].strip()
        # In a pip list a version follows the name; in a list of names every word is one.
        words = (
            re.split(r"[,\s]+", line) if "," in line or "==" in line or " " not in line else [line.split()[0]]
        )
        names |= {re.split(r"[=<>!~@;\[]", word)[0].rstrip(".") for word in words}
    return {canonicalize_name(name) for name in names if name}


def select(pins: list[Pin], python: str, skip: set[str]) -> list[Pin]:
    """The pins that a Linux machine with this Python needs, but for the names in `skip`."""
    environment = {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "sys_platform": "linux",
        "platform_machine": "x86_64",
        "platform_system": "Linux",
        "os_name": "posix",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
    }
    wanted: dict[str, Pin] = {}
    for pin in pins:
        name = canonicalize_name(pin.name)
        if name not in skip and (not pin.marker or Marker(pin.marker).evaluate(environment)):
            wanted[name] = pin
    return list(wanted.values())


def platforms(glibc: str) -> list[str]:
    """The platform tags that a machine with this glibc accepts, as pip's --platform wants them, newest first."""
    major, minor = (int(part) for part in glibc.split("."))
    tags = [f"manylinux_{major}_{level}_x86_64" for level in range(minor, 4, -1)]
    return [*tags, *LEGACY, "linux_x86_64"]


def supported_tags(python: str, glibc: str) -> set[Tag]:
    """The wheel tags that a machine with this Python and this glibc installs."""
    major, minor = (int(part) for part in python.split("."))
    named = platforms(glibc)
    interpreter = f"cp{major}{minor}"
    return {
        *cpython_tags((major, minor), platforms=named),
        *compatible_tags((major, minor), interpreter, named),
    }


def fetch(pins: list[Pin], python: str, glibc: str, dest: Path, sources: bool = False) -> None:
    """Put one wheel (or with `sources`, where there is none, one source) for each pin into `dest`; others there are removed.

    Raises:
        WheelhouseError: a package has neither a fitting wheel nor a pure source, or pip failed.
    """
    dest.mkdir(parents=True, exist_ok=True)
    _remove_others(pins, supported_tags(python, glibc), dest)
    missing = [pin for pin in pins if not _have(pin, dest)]
    tags = [argument for tag in platforms(glibc) for argument in ("--platform", tag)]
    target = ["--only-binary=:all:", "--python-version", python, "--implementation", "cp", *tags]
    if missing and _pip("download", missing, dest, target):
        # pip stops at the first that fails; those without a wheel are found one at a time.
        for pin in missing:
            if not _have(pin, dest) and _pip("download", [pin], dest, target):
                _download_source(pin, dest) if sources else _build(pin, dest)


def files(dest: Path) -> list[Path]:
    """The wheels and sources in a folder."""
    return sorted([*dest.glob("*.whl"), *dest.glob("*.tar.gz")])


def _download_source(pin: Pin, dest: Path) -> None:
    print(f"{pin.name}=={pin.version}: no wheel for that machine; taking its source", flush=True)
    if failure := _pip("download", [pin], dest, ["--no-binary=:all:", "--no-build-isolation"]):
        raise WheelhouseError(f"{pin.name}=={pin.version}: could not be fetched: {failure}")


def _build(pin: Pin, dest: Path) -> None:
    print(f"{pin.name}=={pin.version}: no wheel for that machine; building its source", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        if failure := _pip("wheel", [pin], Path(folder), ["--no-build-isolation"]):
            raise WheelhouseError(f"{pin.name}=={pin.version}: could not be fetched or built: {failure}")
        for wheel in Path(folder).glob("*.whl"):
            if not wheel.name.endswith("-none-any.whl"):
                raise WheelhouseError(
                    f"{pin.name}=={pin.version}: its source has compiled parts; build it on the other machine"
                )
            (dest / wheel.name).write_bytes(wheel.read_bytes())


def _pip(verb: str, pins: list[Pin], dest: Path, arguments: list[str]) -> str:
    """Run pip; returns its last line of complaint where it failed, else an empty text."""
    with tempfile.TemporaryDirectory() as folder:
        requirements = Path(folder) / "requirements.txt"
        requirements.write_text("".join(f"{pin.requirement()}\n" for pin in pins), encoding="utf-8")
        command = [sys.executable, "-m", "pip", verb, "--quiet", "--disable-pip-version-check", "--no-input"]
        command += ["--no-deps", "--require-hashes", "-r", str(requirements)]
        command += ["--wheel-dir" if verb == "wheel" else "--dest", str(dest), *arguments]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    if done.returncode == 0:
        return ""
    return (done.stderr.strip().splitlines() or ["pip failed without a word"])[-1]


def _have(pin: Pin, dest: Path) -> bool:
    return any(_matches(pin, file) for file in files(dest))


def _matches(pin: Pin, file: Path) -> bool:
    name, version = (
        parse_wheel_filename(file.name)[:2] if file.suffix == ".whl" else parse_sdist_filename(file.name)
    )
    return name == canonicalize_name(pin.name) and str(version) == pin.version


def _remove_others(pins: list[Pin], supported: set[Tag], dest: Path) -> None:
    """Two versions of one package would stop the whole installation."""
    for file in files(dest):
        digest = f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"
        # A wheel that was built here has no hash in the lock.
        built = file.name.endswith("-none-any.whl")
        owned = [pin for pin in pins if _matches(pin, file) and (built or digest in pin.hashes)]
        fits = file.suffix != ".whl" or parse_wheel_filename(file.name)[3] & supported
        if not owned or not fits:
            file.unlink()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--python", default="3.12", metavar="X.Y", help="Python of the other machine (default: 3.12)"
    )
    parser.add_argument(
        "--cuda", choices=sorted(LOCKS), default="13", help="CUDA major of its driver (default: 13)"
    )
    parser.add_argument(
        "--glibc", default="2.28", metavar="X.Y", help="its C library, `ldd --version` (default: 2.28)"
    )
    parser.add_argument(
        "--add", action="append", default=[], metavar="LOCK", help="a further lock: dev, search, slurm"
    )
    parser.add_argument(
        "--have", action="append", type=Path, default=[], metavar="FILE", help="what is there already"
    )
    parser.add_argument(
        "--without", default="", metavar="NAMES", help="names to leave out, separated by commas"
    )
    parser.add_argument(
        "--keep", default="", metavar="NAMES", help="names to bring although --have lists them"
    )
    parser.add_argument(
        "--sources", action="store_true", help="for `make` on the other machine, which checks every hash"
    )
    parser.add_argument("--dest", type=Path, default=Path(".whl"), help="the folder (default: .whl)")
    return parser.parse_args()


def main() -> int:
    """The command line; returns the exit status."""
    arguments = _arguments()
    try:
        pins: list[Pin] = []
        for lock in (LOCKS[arguments.cuda], *arguments.add, *(["build"] if arguments.sources else [])):
            pins += read_lock((ENVS / f"{lock}.lock").read_text(encoding="utf-8"))
        skip = {name for file in arguments.have for name in read_names(file.read_text(encoding="utf-8"))}
        skip = (skip - read_names(arguments.keep)) | read_names(arguments.without)
        wanted = select(pins, arguments.python, skip)
        fetch(wanted, arguments.python, arguments.glibc, arguments.dest, arguments.sources)
    except OSError as error:
        print(f"wheelhouse: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    except WheelhouseError as error:
        print(f"wheelhouse: {error}", file=sys.stderr)
        return 1
    total = sum(file.stat().st_size for file in files(arguments.dest))
    print(
        f"{arguments.dest}: {len(wanted)} packages, {total / 1e6:.1f} MB. On the other machine, in the project's folder:"
    )
    if arguments.sources:
        print(f"  PIP_NO_INDEX=1 PIP_FIND_LINKS={arguments.dest} make table")
    else:
        install = f"python3 -m pip install --no-index --no-deps --target SITE {arguments.dest}/*.whl"
        print(f"  {install} && export PYTHONPATH=$PWD/workflow:SITE")
    return 0


if __name__ == "__main__":
    sys.exit(main())
