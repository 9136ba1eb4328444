"""One build: compile a kernel, read everything that can be read without a GPU, and write the four files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kernelab.build.compiler import Compilation, compile_source
from kernelab.build.cubin import Cubin
from kernelab.build.hot_loop import HotLoop, Mix, count_mix, find_hot_loop
from kernelab.build.identity import sass_sha256
from kernelab.build.ptx import ControlFacts, parse_ptx
from kernelab.build.resources import Resources, parse_resources
from kernelab.build.sass import disassemble, parse_sass
from kernelab.build.source import source_digest
from kernelab.build.toolchain import Toolchain, identity
from kernelab.records.record import write_bytes

FILES = ("kernel.cubin", "kernel.ptx", "kernel.sass")


@dataclass(frozen=True)
class Entry:
    """What is known of one `__global__` function of a build. `mix` is of the whole entry."""

    control: ControlFacts
    resources: Resources
    constant_bytes: int
    sass_sha256: str
    mix: Mix
    hot_loop: HotLoop | None

    def to_json(self) -> dict[str, Any]:
        """Flat, as in build.json: control facts and resources side by side, then the mixes."""
        control = asdict(self.control)
        hot = None
        if self.hot_loop:
            hot = {**asdict(self.hot_loop), **asdict(self.hot_loop.mix)}
            del hot["mix"]
        return {
            **asdict(self.resources),
            **control,
            "constant_bytes": self.constant_bytes,
            "sass_sha256": self.sass_sha256,
            **asdict(self.mix),
            "hot_loop": hot,
        }


@dataclass(frozen=True)
class Build:
    """A finished build. `status` is `ok` or `compile_error`; without `ok` there are no entries and no
    files."""

    status: str
    arch: str
    toolchain: dict[str, str]
    defines: dict[str, str]
    options: tuple[str, ...]
    source: str
    source_sha256: str
    compilation: Compilation
    sass: str
    entries: dict[str, Entry]

    def to_json(self) -> dict[str, Any]:
        """What build.json holds, but for the schema version and the settings digest, which `records` adds."""
        return {
            "status": self.status,
            "note": self.compilation.error,
            "source": self.source,
            "source_sha256": self.source_sha256,
            "arch": self.arch,
            "toolchain": self.toolchain,
            "defines": self.defines,
            "options": list(self.options),
            "command": list(self.compilation.command),
            "log": self.compilation.log,
            "seconds": round(self.compilation.seconds, 4),
            "entries": {name: entry.to_json() for name, entry in self.entries.items()},
        }


def build_kernel(
    source: Path,
    *,
    arch: str,
    toolchain: Toolchain,
    defines: Mapping[str, str] | None = None,
    options: Sequence[str] = (),
    include_dirs: Sequence[Path] = (),
    compiled: Compilation | None = None,
) -> Build:
    """Compile `source`, unless it is `compiled` already, and analyse every entry of it.

    Raises:
        UserError: a file or a tool is missing, or the toolchain does not know the architecture. A source that
            does not compile raises nothing: its status is `compile_error`.
    """
    compilation = compiled or compile_source(
        source, arch=arch, toolchain=toolchain, defines=defines, options=options, include_dirs=include_dirs
    )
    sass = disassemble(compilation.cubin, toolchain.disassembler) if compilation.cubin else ""
    return Build(
        status="ok" if compilation.ok else "compile_error",
        arch=arch,
        toolchain=identity(toolchain),
        defines=dict(defines or {}),
        options=tuple(options),
        source=source.name,
        source_sha256=source_digest(source, include_dirs),
        compilation=compilation,
        sass=sass,
        entries=_entries(compilation, sass, arch) if compilation.cubin else {},
    )


def write_build(build: Build, folder: Path) -> None:
    """Write kernel.cubin, kernel.ptx and kernel.sass, each whole or not at all; empty for a compile error."""
    contents = (build.compilation.cubin or b"", build.compilation.ptx.encode(), build.sass.encode())
    for name, data in zip(FILES, contents, strict=True):
        write_bytes(folder / name, data)


def _entries(compilation: Compilation, sass: str, arch: str) -> dict[str, Entry]:
    assert compilation.cubin is not None
    cubin = Cubin(compilation.cubin)
    listings = parse_sass(sass)
    resources = parse_resources(compilation.log)
    entries = {}
    for name, control in parse_ptx(compilation.ptx).entries.items():
        listing = listings[name]
        entries[name] = Entry(
            control=control,
            resources=resources[name],
            constant_bytes=cubin.constant_bytes(name),
            sass_sha256=sass_sha256(cubin, name, listing, resources[name]),
            mix=count_mix(listing),
            hot_loop=find_hot_loop(listing, arch),
        )
    return entries
