"""Is the machine code on disk the code that its record describes? A stale or swapped cubin would make every fact a lie."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from kernelab.build.cubin import Cubin
from kernelab.build.identity import sass_sha256
from kernelab.build.ptx import parse_ptx
from kernelab.build.resources import parse_resources
from kernelab.build.sass import parse_sass
from kernelab.records.build import BuildRecord


def code_faults(folder: Path, build: BuildRecord) -> tuple[str, ...]:
    """What in a build's folder contradicts its record, one phrase each.

    Files that are absent or empty (a snapshot keeps only records; a compile error has none) are not judged.
    """
    faults: list[str] = []
    ptx = _read(folder / "kernel.ptx").decode(errors="replace")
    if ptx:
        try:
            found = parse_ptx(ptx).entries
        except ValueError as error:
            return (f"kernel.ptx of {build.kernel}/{build.variant} cannot be read: {error}",)
        for name, entry in build.entries.items():
            said = {
                key: getattr(entry, key)
                for key in ("maxntid", "reqntid", "min_blocks", "max_registers", "cluster")
            }
            facts = asdict(found[name]) if name in found else {}
            for key, value in said.items():
                if facts.get(key) != value:
                    faults.append(
                        f"kernel.ptx of {build.kernel}/{build.variant} says {key} {facts.get(key)} of {name}, "
                        f"but build.json {value}: one of them is stale"
                    )
    cubin, sass = _read(folder / "kernel.cubin"), _read(folder / "kernel.sass").decode(errors="replace")
    if cubin and sass:
        faults += _cubin_faults(cubin, sass, build)
    return tuple(faults)


def _cubin_faults(cubin: bytes, sass: str, build: BuildRecord) -> list[str]:
    where = f"kernel.cubin of {build.kernel}/{build.variant}"
    try:
        image = Cubin(cubin)
        listings, resources = parse_sass(sass), parse_resources(build.log)
        hashes = {
            name: sass_sha256(image, name, listings[name], resources[name])
            for name in build.entries
            if name in listings and name in resources and name in image.entries
        }
    except (ValueError, KeyError, IndexError) as error:
        return [f"{where} cannot be read: {error}"]
    return [
        f"{where} is stale: its {name} hashes to {hashes.get(name, 'nothing')[:12]}, but build.json says {entry.sass_sha256[:12]}"
        for name, entry in build.entries.items()
        if hashes.get(name) != entry.sass_sha256
    ]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
