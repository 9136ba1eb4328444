"""Find and describe the compilers and the disassembler of this machine.

Two toolchains: `nvrtc` (NVIDIA's run-time compiler, pinned as a wheel, no system CUDA needed) and `nvcc` (a
system CUDA toolkit). Both are followed by one disassembler, nvdisasm.

A `Tool` is found without importing anything heavy and without reading large files: a wheel's RECORD already
carries the SHA-256 of each of its files, and a system tool is stamped by path, size and modification time. So
`find_toolchain(...).fingerprint` may be asked for at every parse of the Snakefile (under 2 ms). `describe`
does the slow part, once, for results/toolchain.json.
"""

from __future__ import annotations

import base64
import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from kernelab.errors import UserError

TOOLCHAINS = ("nvrtc", "nvcc")

NVRTC_WHEELS = ("nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvrtc")
NVDISASM_WHEEL = "nvidia-cuda-nvdisasm"


@dataclass(frozen=True)
class Tool:
    """One program or library.

    `stamp` says which file it is, cheaply: the wheel's own hash of it (the same on every machine), or path,
    size and modification time of a file that no wheel owns. `version` is empty where only running the tool
    would tell.
    """

    name: str
    path: Path
    version: str
    stamp: str


@dataclass(frozen=True)
class Toolchain:
    """A compiler and the disassembler that reads what it makes."""

    name: str
    compiler: Tool
    disassembler: Tool

    @property
    def fingerprint(self) -> str:
        """Changes whenever the compiler or the disassembler does; 16 hexadecimal digits."""
        parts = [self.name]
        for tool in (self.compiler, self.disassembler):
            parts += [tool.name, tool.version, tool.stamp]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


@lru_cache(maxsize=8)
def find_toolchain(name: str) -> Toolchain:
    """The toolchain called `name`, `nvrtc` or `nvcc`, with its disassembler.

    Raises:
        UserError: no such toolchain, or a part of it is not installed.
    """
    if name == "nvrtc":
        compiler = _find_nvrtc()
    elif name == "nvcc":
        compiler = _find_nvcc()
    else:
        raise UserError(f"toolchain '{name}' is unknown: choose one of {', '.join(TOOLCHAINS)}")
    return Toolchain(name, compiler, _find_nvdisasm())


def identity(toolchain: Toolchain) -> dict[str, str]:
    """What build.json says of the toolchain: nothing in it depends on where the tools are installed.

    Costs one run of the tool (15 ms) where no wheel tells its version.
    """
    return {
        "name": toolchain.name,
        "compiler": f"{toolchain.compiler.name} {_version(toolchain.compiler)}",
        "disassembler": f"{toolchain.disassembler.name} {_version(toolchain.disassembler)}",
    }


def describe(toolchain: Toolchain) -> dict[str, Any]:
    """The full description, for results/toolchain.json: `identity`, hashes of the files, and the
    architectures.

    Reads every byte of the tools (about 0.3 s).
    """
    parts = [*_program_files(toolchain.compiler), toolchain.disassembler.path]
    return {
        **identity(toolchain),
        "fingerprint": toolchain.fingerprint,
        "architectures": list(supported_architectures(toolchain)),
        "files": {part.name: _sha256(part) for part in parts},
    }


@lru_cache(maxsize=8)
def supported_architectures(toolchain: Toolchain) -> tuple[str, ...]:
    """What the compiler makes machine code for, as `sm_86`, ascending."""
    if toolchain.name == "nvcc":
        text = _run([str(toolchain.compiler.path), "--list-gpu-code"])
        return tuple(line for line in text.split() if line.startswith("sm_"))
    library = ctypes.CDLL(str(toolchain.compiler.path))
    count = ctypes.c_int()
    library.nvrtcGetNumSupportedArchs(ctypes.byref(count))
    archs = (ctypes.c_int * count.value)()
    library.nvrtcGetSupportedArchs(archs)
    return tuple(f"sm_{arch}" for arch in archs)


def toolkit_root(nvcc: Path) -> Path:
    """The folder of the CUDA toolkit that an nvcc belongs to."""
    return nvcc.parent.parent


def tool_environment(temporary: str | os.PathLike[str]) -> dict[str, str]:
    """The environment for a child tool: messages in English, temporary files in a folder of its own."""
    return {**os.environ, "LC_ALL": "C", "TMPDIR": str(temporary)}


def _find_nvrtc() -> Tool:
    for wheel in NVRTC_WHEELS:
        tool = _from_wheel("nvrtc", wheel, re.compile(r"libnvrtc\.so\.\d+$"))
        if tool:
            return tool
    for folder in _library_folders():
        for library in sorted(folder.glob("libnvrtc.so.[0-9]*"), key=lambda p: (len(p.name), p.name)):
            version = re.search(r"\.so\.(\d+(?:\.\d+)*)$", library.resolve().name)
            return Tool("nvrtc", library, version.group(1) if version else "", _stamp(library))
    raise UserError(
        "toolchain nvrtc: libnvrtc is not installed: "
        "`pip install nvidia-cuda-nvrtc-cu12`, or set `toolchain: nvcc`"
    )


def _find_nvcc() -> Tool:
    found = shutil.which("nvcc")
    candidates = [Path(found)] if found else []
    candidates += [root / "bin" / "nvcc" for root in _cuda_roots()]
    for candidate in candidates:
        if candidate.is_file():
            path = _behind_wrapper(candidate)
            stamps = [_stamp(part) for part in _nvcc_parts(path)]
            return Tool("nvcc", path, "", ";".join(stamps))
    raise UserError(
        "toolchain nvcc: nvcc is neither on PATH nor under CUDA_HOME: "
        "install a CUDA toolkit, or set `toolchain: nvrtc`"
    )


def _find_nvdisasm() -> Tool:
    tool = _from_wheel("nvdisasm", NVDISASM_WHEEL, re.compile(r"/nvdisasm$"))
    if tool and os.access(tool.path, os.X_OK):
        return tool
    found = shutil.which("nvdisasm")
    candidates = [Path(found)] if found else []
    candidates += [root / "bin" / "nvdisasm" for root in _cuda_roots()]
    for candidate in candidates:
        if candidate.is_file():
            path = candidate.resolve()
            return Tool("nvdisasm", path, "", _stamp(path))
    raise UserError(
        "nvdisasm is not installed: `pip install nvidia-cuda-nvdisasm`, or put a CUDA toolkit on PATH"
    )


def _from_wheel(name: str, wheel: str, file: re.Pattern[str]) -> Tool | None:
    """A file of an installed wheel, by its RECORD. importlib.metadata would do, but importing it costs 20
    ms."""
    prefix = wheel.replace("-", "_") + "-"
    for entry in sys.path:
        for record in Path(entry or ".").glob(f"{prefix}[0-9]*.dist-info/RECORD"):
            for line in record.read_text().splitlines():
                path, _, rest = line.partition(",")
                if file.search(path) and (Path(entry) / path).is_file():
                    version = record.parent.name.removeprefix(prefix).removesuffix(".dist-info")
                    digest = rest.partition(",")[0].removeprefix("sha256=")
                    raw = base64.urlsafe_b64decode(digest + "=" * (-len(digest) % 4))
                    return Tool(name, Path(entry) / path, version, raw.hex())
    return None


def _cuda_roots() -> list[Path]:
    named = [os.environ[key] for key in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(key)]
    # A toolkit that is named is the one that is meant, also where it is not there.
    return [Path(root) for root in [*named, sys.prefix, *([] if named else ["/usr/local/cuda"])]]


def _library_folders() -> list[Path]:
    folders = [Path(entry) for entry in os.environ.get("LD_LIBRARY_PATH", "").split(":") if entry]
    for root in _cuda_roots():
        folders += [root / "lib64", root / "lib", root / "targets" / "x86_64-linux" / "lib"]
    return [*folders, Path("/usr/lib/x86_64-linux-gnu"), Path("/usr/lib64")]


def _behind_wrapper(path: Path) -> Path:
    """The real nvcc where `path` is a small shell script that runs it: an upgrade would not change the
    script."""
    path = path.resolve()
    if path.stat().st_size < 4096:
        target = re.search(r"exec\s+\"?(/\S*?/nvcc)\b", path.read_text(errors="replace"))
        if target and Path(target.group(1)).is_file():
            return Path(target.group(1)).resolve()
    return path


def _nvcc_parts(nvcc: Path) -> list[Path]:
    root = toolkit_root(nvcc)
    parts = [nvcc, root / "bin" / "ptxas", root / "bin" / "cudafe++", root / "nvvm" / "bin" / "cicc"]
    return [part for part in parts if part.is_file()]


def _program_files(tool: Tool) -> list[Path]:
    return _nvcc_parts(tool.path) if tool.name == "nvcc" else [tool.path.resolve()]


def _stamp(path: Path) -> str:
    status = path.stat()
    return f"{path}:{status.st_size}:{status.st_mtime_ns}"


@lru_cache(maxsize=8)
def _version(tool: Tool) -> str:
    if tool.version:
        return tool.version
    if tool.name == "nvrtc":
        library = ctypes.CDLL(str(tool.path))
        major, minor = ctypes.c_int(), ctypes.c_int()
        library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        return f"{major.value}.{minor.value}"
    found = re.search(r"\bV(\d+\.\d+\.\d+)", _run([str(tool.path), "--version"]))
    return found.group(1) if found else "unknown"


def _run(command: list[str]) -> str:
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60, env=environment, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise UserError(f"`{' '.join(command)}` failed: {error}: reinstall the tool") from error
    return done.stdout


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
