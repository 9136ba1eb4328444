"""build.json: how a kernel was compiled and what its machine code is made of."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from kernelab.records.record import Record


class CodeMix(BaseModel):
    """Static counts of a stretch of SASS. `widths` counts memory instructions by opcode and bits a thread (lds_128)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    instructions: int
    ffma: int
    ffma_share_pct: float
    sts_share_pct: float
    classes: dict[str, int]
    opcodes: dict[str, int]
    widths: dict[str, int]


class HotLoopRecord(CodeMix):
    """The hot loop. `bound_pct_of_peak`: no schedule of it can pass this share of the FP32 peak."""

    start: int
    loops: int
    bound_pct_of_peak: float


class EntryRecord(CodeMix):
    """One `__global__` function: resources (bytes, registers a thread), control facts from the PTX, SASS identity."""

    registers: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    static_shared_bytes: int
    barriers: int
    constant_bytes: int
    maxntid: tuple[int, ...] | None
    reqntid: tuple[int, ...] | None
    min_blocks: int | None
    max_registers: int | None
    cluster: tuple[int, ...] | None
    parameters: tuple[str, ...]
    sass_sha256: str
    hot_loop: HotLoopRecord | None


class BuildRecord(Record):
    """`status` is ok, compile_error, or not_built (the toolchain is not on this machine). `note` says why."""

    version: ClassVar[int] = 1

    kernel: str
    variant: str
    status: str
    note: str
    source: str
    source_sha256: str
    arch: str
    toolchain: dict[str, str]
    defines: dict[str, str]
    options: tuple[str, ...]
    command: tuple[str, ...]
    log: str
    seconds: float
    entries: dict[str, EntryRecord]


class CompilationRecord(Record):
    """compilation.json: what one run of a compiler left, under the digest of the build that it was for.

    `text_sha256` is of the sources as they were, comments and all; `files` gives the SHA-256 of each file beside the
    record, so that one which was cut short is not believed.
    """

    version: ClassVar[int] = 1

    ok: bool
    log: str
    error: str
    command: tuple[str, ...]
    seconds: float
    text_sha256: str
    files: dict[str, str]
