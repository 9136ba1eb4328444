"""What compute-sanitizer and the emulated device say of the same planted faults and of their clean twins."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from against_hardware.bare_launches import DONE, BareArray, BareLaunch
from against_hardware.fault import TWINS, SanitizedFault, Twin
from against_hardware.memory_faults import INITCHECK, MEMCHECK
from against_hardware.order_faults import RACECHECK, SYNCCHECK
from kernelab.build.compiler import compile_source
from kernelab.build.toolchain import Toolchain
from kernelab.device.emulated import GlobalMemory, Hazard, Launch, Module, emulate, parse_ptx
from kernelab.errors import UserError

FAULTS: tuple[SanitizedFault, ...] = (*MEMCHECK, *RACECHECK, *INITCHECK, *SYNCCHECK)

TARGET = Path(__file__).with_name("bare_launches.py")
LIMIT_S = 25.0
FIRST_PORT, PORTS_EACH = 49152, 16
INSTRUCTION_LIMIT = 100_000
USUAL_PLACES = (
    "/usr/local/cuda/bin/compute-sanitizer",
    "/usr/local/cuda/compute-sanitizer/compute-sanitizer",
)

NO_VERDICT = "no verdict"
NOT_DONE = "not done"
BARRIER_ERROR = "barrier_error"
DEVICE_EXCEPTION = "device_exception"
SAME_AS: dict[str, tuple[str, ...]] = {
    "cp_async_not_waited": ("race_shared",),
    "barrier_divergence": (BARRIER_ERROR,),
    "invalid_barrier": (BARRIER_ERROR, DEVICE_EXCEPTION),
    "invalid_mask": (BARRIER_ERROR,),
}
"""What a tool says for a kind of hazard, where that is not the kind itself."""

_EXCEPTION = re.compile(
    r"^.*CUDA_ERROR_(?:ILLEGAL_|MISALIGNED_|INVALID_PC|INVALID_ADDRESS_SPACE|HARDWARE_|LAUNCH_FAILED|ASSERT).*$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Said:
    """What a tool said of one launch. kinds: in the emulated device's words; line: the first report, or why there is none."""

    kinds: tuple[str, ...]
    line: str


@dataclass(frozen=True)
class HazardRow:
    """One row of hazards.csv. `sanitizer` and `emulator` are kinds, `clean` or `no verdict`."""

    fault: str
    tool: str
    twin: str
    sanitizer: str
    emulator: str
    agree: bool
    explanation: str
    sanitizer_line: str
    emulator_line: str


def find_sanitizer() -> str:
    """The path of compute-sanitizer.

    Raises:
        UserError: it is not installed.
    """
    found = shutil.which("compute-sanitizer")
    usual = [place for place in USUAL_PLACES if os.access(place, os.X_OK)]
    if found or usual:
        return found or usual[0]
    raise UserError(
        "compute-sanitizer is neither on PATH nor under /usr/local/cuda; it comes with the CUDA toolkit"
    )


def parse_report(text: str) -> Said:
    """The kinds of fault in the words of compute-sanitizer.

    Text without a summary is no verdict, and neither is silence about a program that did not get to its end.
    """
    lines = [line for line in text.splitlines() if line.strip("= ") and "COMPUTE-SANITIZER" not in line]
    if "SUMMARY:" not in text or "Internal Sanitizer Error" in text:
        return Said((NO_VERDICT,), " / ".join(lines[-3:]) or "it said nothing")
    found: dict[str, str] = {}
    for block in re.split(r"^========= (?=\S)", text, flags=re.MULTILINE)[1:]:
        if kind := _kind(block):
            found.setdefault(kind, " ".join(part.strip(" =") for part in block.splitlines()[:4]).strip())
    if not found and (error := _EXCEPTION.search(text)):
        # The kernel died of something that the tool has no words for.
        found[DEVICE_EXCEPTION] = error[0].strip(" =")
    if not found and DONE not in text:
        return Said((NO_VERDICT,), " / ".join(lines[-3:]))
    return Said(tuple(found), next(iter(found.values()), ""))


def _kind(block: str) -> str:
    first = block.partition("\n")[0]
    if match := re.match(r"Invalid __(global|shared|local)__ (?:read|write|atomic)", first):
        return "misaligned" if "misaligned" in block else f"out_of_bounds_{match[1]}"
    if "Race reported between" in first:
        return "race_shared"
    if "Uninitialized __global__" in first:
        return "uninitialised_read"
    return BARRIER_ERROR if "Barrier error detected" in first else ""


def agree(said: Said, hazards: Sequence[str], twin: Twin) -> bool:
    """Whether the tool and the emulated device say the same: a kind in common, or both nothing."""
    if NO_VERDICT in said.kinds:
        return False
    ours = {word for kind in hazards for word in SAME_AS.get(kind, (kind,))}
    if twin == "clean":
        return not said.kinds and not ours
    return bool(ours & set(said.kinds))


def compare_verdicts(folder: Path, toolchain: Toolchain, arch: str, workers: int) -> list[HazardRow]:
    """Run every twin under its tool and on the emulated device.

    Args:
        folder: for the cubin, the jobs and the arrays.
        toolchain, arch: what to compile with, and for.
        workers: processes of compute-sanitizer at a time.

    Raises:
        UserError: the faults do not compile, or compute-sanitizer is not installed.
    """
    sanitizer = find_sanitizer()
    cubin, module = compile_faults(folder, toolchain, arch)
    cases = [(fault, twin) for fault in FAULTS for twin in TWINS]
    jobs = [_write_job(folder, cubin, fault, twin) for fault, twin in cases]
    with ThreadPoolExecutor(workers) as pool:
        reports = list(
            pool.map(
                lambda number: watch(
                    sanitizer, cases[number][0].tool, jobs[number], FIRST_PORT + PORTS_EACH * number
                ),
                range(len(jobs)),
            )
        )
    rows = []
    for number, ((fault, twin), said) in enumerate(zip(cases, reports, strict=True)):
        # Once more, with the machine to itself; but a kernel that hangs would hang again.
        if NO_VERDICT in said.kinds and not said.line.startswith(NOT_DONE):
            said = watch(sanitizer, fault.tool, jobs[number], FIRST_PORT + PORTS_EACH * number)
        rows.append(judged(fault, twin, said, emulated_hazards(module, fault, twin)))
    return rows


def compile_faults(folder: Path, toolchain: Toolchain, arch: str) -> tuple[Path, Module]:
    """The faults as a cubin, and the PTX that it was made of.

    Raises:
        UserError: they do not compile.
    """
    source = folder / "faults.cu"
    source.write_text("\n".join(fault.text(twin) for fault in FAULTS for twin in TWINS))
    made = compile_source(source, arch=arch, toolchain=toolchain)
    if made.cubin is None:
        raise UserError(f"the planted faults do not compile: {made.error}")
    cubin = folder / "faults.cubin"
    cubin.write_bytes(made.cubin)
    return cubin, parse_ptx(made.ptx)


def judged(fault: SanitizedFault, twin: Twin, said: Said, hazards: Sequence[Hazard]) -> HazardRow:
    """The row of one twin."""
    kinds = list(dict.fromkeys(hazard.kind for hazard in hazards))
    agreed = agree(said, kinds, twin)
    if twin == "planted":
        agreed = agreed and fault.kind in kinds
    unseen = twin == "planted" and not said.kinds and fault.kind in kinds and fault.unseen
    return HazardRow(
        fault=fault.name,
        tool=fault.tool,
        twin=twin,
        sanitizer=" ".join(said.kinds) or "clean",
        emulator=" ".join(kinds) or "clean",
        agree=agreed or bool(unseen),
        explanation=unseen or "",
        sanitizer_line=said.line,
        emulator_line=str(hazards[0]) if hazards else "",
    )


def emulated_hazards(module: Module, fault: SanitizedFault, twin: Twin) -> list[Hazard]:
    """What the emulated device finds in one twin."""
    memory = GlobalMemory()
    arguments: list[int | float] = []
    for name, value in fault.arguments.items():
        if isinstance(value, np.ndarray):
            arguments.append(memory.allocate(name, value, initialised=name not in fault.uninitialised))
        else:
            arguments.append(0 if value is None else value)
    launch = Launch(
        fault.entry(twin), (fault.grid, 1, 1), (fault.block, 1, 1), arguments, fault.dynamic_shared
    )
    return list(emulate(module, launch, memory, instruction_limit=INSTRUCTION_LIMIT).hazards)


def bare_launch(folder: Path, cubin: Path, fault: SanitizedFault, twin: Twin) -> BareLaunch:
    """One twin for bare_launches.py; the arrays' contents are written to the folder. Nothing is read back."""
    arrays: dict[str, BareArray] = {}
    arguments = []
    for name, value in fault.arguments.items():
        if isinstance(value, np.ndarray):
            contents = ""
            if name not in fault.uninitialised:
                file = folder / f"{fault.entry(twin)}.{name}"
                value.tofile(file)
                contents = str(file)
            arrays[name] = BareArray(value.nbytes, contents, "")
            arguments.append(f"array:{name}")
        elif value is None:
            arguments.append(f"bytes:{bytes(8).hex()}")
        else:
            scalar = np.float32(value) if isinstance(value, float) else np.int32(value)
            arguments.append(f"bytes:{scalar.tobytes().hex()}")
    return BareLaunch(
        cubin=str(cubin),
        entry=fault.entry(twin),
        grid=(fault.grid, 1, 1),
        block=(fault.block, 1, 1),
        dynamic_shared=fault.dynamic_shared,
        arrays=arrays,
        arguments=tuple(arguments),
    )


def _write_job(folder: Path, cubin: Path, fault: SanitizedFault, twin: Twin) -> Path:
    job = folder / f"{fault.entry(twin)}.json"
    job.write_text(json.dumps([asdict(bare_launch(folder, cubin, fault, twin))]))
    return job


def watch(sanitizer: str, tool: str, job: Path, port: int) -> Said:
    """Run one job under one tool, and read what it says; a hung kernel is killed and is no verdict.

    Args:
        port: the first of PORTS_EACH that this run may use: several run at a time.
    """
    command = [
        sanitizer,
        *("--tool", tool),
        *("--port", str(port)),
        *("--max-connections", str(PORTS_EACH)),
        *("--show-backtrace", "no"),
        *("--print-limit", "4"),
        *(sys.executable, str(TARGET), str(job)),
    ]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, "LC_ALL": "C"},
        start_new_session=True,
    )
    try:
        text, _ = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return Said((NO_VERDICT,), f"{NOT_DONE} after {LIMIT_S:g} s")
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=5)
    return parse_report(text)
