"""Compile one source to a cubin and its PTX, with either toolchain.

The source and its quoted includes (`source.source_closure`: exactly the files that the digest covers) are
copied to a temporary folder, compiled there under relative names, and the folder's name is then removed from
the PTX, the cubin and the log, so that two machines make the same files. Both outputs come from one compile:
NVRTC gives the PTX that it assembled together with the cubin, and nvcc keeps it.

Line information is always on: the emulator and the profile want `.loc`, and the instructions do not change
(tested). A source that does not compile is data: `Compilation.ok` is False and the log says why.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelab.build.runner import Compiler, make_compiler
from kernelab.build.source import source_closure
from kernelab.build.toolchain import Toolchain, toolkit_root
from kernelab.errors import UserError

TIMEOUT_S = 600.0

# -v makes ptxas report registers, stack and spills in the log
ALWAYS = ("-std=c++17", "-lineinfo", "--ptxas-options=-v")

_ARCH = re.compile(r"sm_\d{2,3}[af]?")
# A cubin stores the name of the folder, and cannot be resized: it has this length on every machine.
_STAGING_LENGTH = 120
_NO_CODE = "error: the compiler made no machine code: is an option for link-time optimisation set?"
_COMPILE_TIME = re.compile(r"^ptxas info\s*: Compile time = .*\n?", re.MULTILINE)
_ERROR_LINE = re.compile(r"^.*(?:\berror\b|\bfatal\b).*$", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True)
class Compilation:
    """What one run of a compiler left.

    `command` is the equivalent nvcc command line (NVRTC has none of its own; the options are the same), with
    paths relative to the working folder. `error` is the first error line of the log, empty when `ok`. `cubin`
    is None and `ptx` empty when not `ok`. `seconds` is wall-clock time, of compiling alone. `lasting` is False
    where another attempt may end otherwise: the compiler crashed, or took too long.
    """

    ok: bool
    cubin: bytes | None
    ptx: str
    log: str
    error: str
    command: tuple[str, ...]
    seconds: float
    lasting: bool = True


def compile_source(
    source: Path,
    *,
    arch: str,
    toolchain: Toolchain,
    defines: Mapping[str, str] | None = None,
    options: Sequence[str] = (),
    include_dirs: Sequence[Path] = (),
    timeout_s: float = TIMEOUT_S,
    compiler: Compiler | None = None,
) -> Compilation:
    """Compile `source` for `arch` (`sm_86`) with `-D` for each of `defines` and the given options.

    `compiler` is one of the toolchain's that runs already, and goes on running; by default one is started for this
    source alone. The files are the same to the byte either way.

    Raises:
        UserError: a file is missing, the toolchain does not know the architecture, or the machine killed the
        compiler.
    """
    if compiler is None:
        with make_compiler(toolchain) as compiler:
            return compile_source(
                source,
                arch=arch,
                toolchain=toolchain,
                defines=defines,
                options=options,
                include_dirs=include_dirs,
                timeout_s=timeout_s,
                compiler=compiler,
            )
    if not _ARCH.fullmatch(arch):
        raise UserError(f"arch '{arch}' is not an architecture: write sm_ and its number, as in sm_86")
    flags = [*ALWAYS, *(f"-D{name}={value}" for name, value in (defines or {}).items()), *options]
    with tempfile.TemporaryDirectory(prefix="kernelab-") as temporary:
        stage = _stage_folder(temporary)
        name, includes = _copy_sources(source, include_dirs, stage)
        start = time.perf_counter()
        outcome = compiler.run(stage, name, arch, [*flags, *includes], timeout_s)
        seconds = time.perf_counter() - start
        ok, log = outcome.ok, outcome.log
        cubin = (stage / "kernel.cubin").read_bytes() if ok else b""
        if ok and not cubin.startswith(b"\x7fELF"):
            ok, log = False, f"{log}\n{_NO_CODE}"
        private = [str(stage)]
        if toolchain.name == "nvcc":
            private.append(str(toolkit_root(toolchain.compiler.path)))
        log = _COMPILE_TIME.sub("", _without_prefixes(log, private)).strip()
        return Compilation(
            ok=ok,
            cubin=_without_paths(cubin, private) if ok else None,
            ptx=_without_prefixes((stage / "kernel.ptx").read_text(), private) if ok else "",
            log=log,
            error="" if ok else first_error(log),
            command=_command(source, arch, flags, include_dirs),
            seconds=seconds,
            lasting=outcome.lasting,
        )


def first_error(log: str) -> str:
    """The first line of a compiler's log that reports an error, or else its first line."""
    found = _ERROR_LINE.search(log)
    return found[0].strip() if found else log.strip().partition("\n")[0]


def _copy_sources(source: Path, include_dirs: Sequence[Path], stage: Path) -> tuple[str, list[str]]:
    """Copy the source and its includes into `stage`; give the source's name there and the -I options."""
    files = [path.absolute() for path in source_closure(source, include_dirs)]
    root = Path(os.path.commonpath([path.parent for path in files]))
    for path in files:
        copy = stage / path.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        os.utime(copy, (0, 0))  # line information stores it
    inside = [os.path.relpath(folder, root) for folder in include_dirs]
    options = [
        f"-I{folder.absolute() if there.startswith('..') else there}"
        for folder, there in zip(include_dirs, inside, strict=True)
    ]
    return str(files[0].relative_to(root)), options


def _stage_folder(temporary: str) -> Path:
    padding = max(_STAGING_LENGTH - len(os.path.realpath(temporary)) - 1, 1)
    stage = Path(os.path.realpath(temporary)) / ("s" * padding)
    stage.mkdir()
    return stage


def _without_prefixes(text: str, private: Sequence[str]) -> str:
    for folder in private:
        text = text.replace(folder + "/", "")
    return text


def _without_paths(cubin: bytes, private: Sequence[str]) -> bytes:
    """The cubin with each private folder's name overwritten by an equally long spelling of `/`."""
    for folder in private:
        neutral = ("/" + "./" * len(folder))[: len(folder)]
        cubin = cubin.replace(folder.encode(), neutral.encode())
    return cubin


def _command(source: Path, arch: str, flags: Sequence[str], include_dirs: Sequence[Path]) -> tuple[str, ...]:
    includes = [f"-I{_shown(folder)}" for folder in include_dirs]
    return ("nvcc", "-cubin", f"-arch={arch}", *flags, *includes, _shown(source), "-o", "kernel.cubin")


def _shown(path: Path) -> str:
    relative = os.path.relpath(path)
    return relative if not relative.startswith("..") else path.name
