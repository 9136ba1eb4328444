"""Control facts of an arm: what the author decided, read from what was made and measured, never from the config.

A fact has a readable name, a value, and the name of the control that a variable must hold to move it. Launch facts
come from the PTX (as build.json keeps them) and from the planned launches; build facts from the compile command and
the toolchain's own identity; problem, input bytes and environment from the timing record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kernelab.operation.launches import LaunchConfig
from kernelab.records.build import BuildRecord, EntryRecord

NONE = "none"


@dataclass(frozen=True)
class Fact:
    """One control fact. `control`: grid, block, threads, min_blocks, max_registers, shared, launches, source, options,
    arch, toolchain, problem, inputs, data, l2, environment, or `macro` and the macro's name."""

    value: str
    control: str


Facts = Mapping[str, Fact]


@dataclass(frozen=True)
class Evidence:
    """What is known of an arm, for its facts.

    build        None for a library function
    launches     at its problem; empty for a library function, or where CUDA would refuse them
    problem      values of the operation's variables, as they were timed (or are planned, where nothing was timed)
    inputs       sha256 of the inputs' bytes by array, where they were made
    environment  of the session that timed it: driver, libraries, clocks, switches; empty where nothing was timed
    """

    build: BuildRecord | None
    launches: Sequence[LaunchConfig]
    problem: Mapping[str, int | float]
    data: str
    l2: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


def control_facts(evidence: Evidence) -> dict[str, Fact]:
    """Every control fact of an arm, by name, in a fixed order."""
    facts: dict[str, Fact] = {}
    if evidence.build is not None:
        facts |= _launch_facts(evidence.build, evidence.launches)
        facts |= _build_facts(evidence.build)
    facts |= {name: Fact(_number(value), "problem") for name, value in evidence.problem.items()}
    facts["data"] = Fact(evidence.data, "data")
    facts["l2"] = Fact(evidence.l2, "l2")
    facts |= {
        f"bytes of {name}": Fact(digest[:16], "inputs") for name, digest in sorted(evidence.inputs.items())
    }
    facts |= {name: Fact(value, "environment") for name, value in sorted(evidence.environment.items())}
    return facts


def _launch_facts(build: BuildRecord, launches: Sequence[LaunchConfig]) -> dict[str, Fact]:
    facts = {"launches": Fact(str(len(launches)), "launches")} if launches else {}
    # Counted from the end: the last launch of a sequence is its main one, whatever prepares it.
    for back, launch in enumerate(reversed(launches)):
        where = "" if back == 0 else f"{back} before the last: "
        entry = build.entries.get(launch.entry)
        facts[f"{where}grid"] = Fact(_extent(launch.grid), "grid")
        facts[f"{where}block"] = Fact(_extent(launch.block), "block")
        facts[f"{where}dynamic shared"] = Fact(f"{launch.dynamic_shared} B", "shared")
        if entry is not None:
            facts |= {f"{where}{name}": fact for name, fact in _entry_facts(entry).items()}
    return facts


def _entry_facts(entry: EntryRecord) -> dict[str, Fact]:
    return {
        "threads (.maxntid)": Fact(_extent(entry.maxntid), "threads"),
        "threads (.reqntid)": Fact(_extent(entry.reqntid), "threads"),
        "min_blocks (.minnctapersm)": Fact(_number(entry.min_blocks), "min_blocks"),
        "max_registers (.maxnreg)": Fact(_number(entry.max_registers), "max_registers"),
        "cluster": Fact(_extent(entry.cluster), "grid"),
        "static shared": Fact(f"{entry.static_shared_bytes} B", "shared"),
    }


def _build_facts(build: BuildRecord) -> dict[str, Fact]:
    options, macros, arch = _command(build)
    facts = {
        "source": Fact(f"{build.source} {build.source_sha256[:16]}", "source"),
        "options": Fact(" ".join(options) or NONE, "options"),
        "arch": Fact(arch.rstrip("af"), "arch"),
        # sm_90a is sm_90, with what a kernel declares that it uses (arch_specific in the catalogue).
        "features": Fact("of this architecture alone" if arch.endswith(("a", "f")) else NONE, "source"),
    }
    facts |= {
        part: Fact(build.toolchain.get(part, NONE), "toolchain")
        for part in ("name", "compiler", "disassembler")
    }
    facts["toolchain"] = facts.pop("name")
    return facts | {f"macro {name}": Fact(value, f"macro {name}") for name, value in sorted(macros.items())}


def _command(build: BuildRecord) -> tuple[list[str], dict[str, str], str]:
    """The options, macros and architecture of the command that ran; of the settings, where none did."""
    if not build.command:
        return list(build.options), dict(build.defines), build.arch
    options, macros, arch = [], {}, NONE
    words = iter(build.command[1:])
    for word in words:
        if word == "-o":
            next(words, None)
        elif word.startswith("-D"):
            name, _, value = word[2:].partition("=")
            macros[name] = value
        elif word.startswith("-arch="):
            arch = word.removeprefix("-arch=")
        elif word.startswith("-") and word != "-cubin":
            options.append(word)
        elif not word.endswith(".cu"):
            options.append(word)  # the value of an option before it, as in `-Xptxas -O1`
    return options, macros, arch


def _extent(value: Sequence[int] | None) -> str:
    return NONE if value is None else "x".join(str(size) for size in (*value, 1, 1)[:3])


def _number(value: int | float | None) -> str:
    return NONE if value is None else str(value)
