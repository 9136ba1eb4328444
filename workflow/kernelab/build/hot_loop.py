"""Which loop is hot, and what it is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from kernelab.build.loops import Loop, find_loops
from kernelab.build.sass import Instruction

_WIDTHS = {opcode: opcode.lower() for opcode in ("LDS", "STS", "LDG", "STG", "LDGSTS", "LDL", "STL")}

_CLASSES = {
    "ffma": "FFMA FFMA2 FFMA32I",
    "fp32": "FADD FADD2 FADD32I FMUL FMUL2 FMUL32I FMNMX FMNMX3 FSEL FSET FSETP FCHK FSWZADD MUFU",
    "fp16_fp64": "HADD2 HFMA2 HMUL2 HMNMX2 HSET2 HSETP2 DADD DFMA DMUL DSETP",
    "tensor": "HMMA IMMA DMMA BMMA QMMA OMMA HGMMA IGMMA QGMMA",
    "integer": "IADD IADD3 IADD32I IMAD IMAD32I IMNMX IABS ISETP ISCADD LEA LOP LOP3 LOP32I SHF SHL SHR "
    "POPC FLO BREV BMSK SGXT VIADD VIADDMNMX VIMNMX VIMNMX3 VABSDIFF I2F I2FP F2I F2F I2I F2FP PLOP3 IDP",
    "move": "MOV MOV32I SEL PRMT SHFL S2R CS2R P2R R2P R2UR VOTE VOTEU MATCH REDUX S2UR",
    "shared": "LDS STS LDSM STSM ATOMS",
    "global": "LDG STG LD ST RED REDG ATOM ATOMG LDGSTS CCTL",
    "local": "LDL STL",
    "constant": "LDC LDCU",
    "control": "BRA BRX JMP JMX CALL RET EXIT BSSY BSYNC BREAK BMOV YIELD NOP NANOSLEEP KILL",
    "sync": "BAR B2R DEPBAR LDGDEPBAR WARPSYNC SYNCS MEMBAR ERRBAR FENCE ARRIVES ELECT ACQBULK",
}
_CLASS_OF = {opcode: name for name, opcodes in _CLASSES.items() for opcode in opcodes.split()}

# FP32 lanes of one of an SM's four schedulers, by compute capability (CUDA programming guide, throughput of
# native arithmetic instructions: 64 FP32 results a clock and SM on 7.5 and 8.0, 128 on the others).
_LANES = {"sm_75": 16, "sm_80": 16}


@dataclass(frozen=True)
class Mix:
    """What a stretch of code is made of, as static counts of instructions.

    `classes` counts by kind (ffma, fp32, integer, move, uniform, shared, global, ...), `opcodes` by opcode
    without modifiers, `widths` memory instructions by opcode and bits a thread (`lds_128`).
    """

    instructions: int
    ffma: int
    ffma_share_pct: float
    sts_share_pct: float
    classes: dict[str, int]
    opcodes: dict[str, int]
    widths: dict[str, int]


@dataclass(frozen=True)
class HotLoop:
    """The hot loop: the address of its first instruction, its mix, and how many loops the entry has.

    `bound_pct_of_peak`: no schedule of this loop can pass this share of the card's FP32 peak; see
    `issue_bound_pct`. None where the loop holds no FFMA.
    """

    start: int
    loops: int
    bound_pct_of_peak: float | None
    mix: Mix


def find_hot_loop(listing: Sequence[Instruction], arch: str) -> HotLoop | None:
    """The innermost loop that does most of the arithmetic, or None where there is no loop.

    Rule: among the loops that hold at least four fifths of the FFMAs of the loop that holds most, the
    shortest. Without an FFMA in any loop: among the innermost loops, the longest.
    """
    loops = find_loops(listing)
    if not loops:
        return None
    ffmas = [_ffma(loop.instructions) for loop in loops]
    if max(ffmas):
        candidates = [loop for loop, n in zip(loops, ffmas, strict=True) if n >= 0.8 * max(ffmas)]
        hot = min(candidates, key=lambda loop: len(loop.instructions))
    else:
        hot = max(_innermost(loops), key=lambda loop: len(loop.instructions))
    mix = count_mix(hot.instructions)
    return HotLoop(hot.start, len(loops), issue_bound_pct(mix, arch), mix)


def count_mix(instructions: Sequence[Instruction]) -> Mix:
    """The static mix of a stretch of code."""
    opcodes = Counter(i.base for i in instructions)
    classes: Counter[str] = Counter()
    widths: Counter[str] = Counter()
    for instruction in instructions:
        classes[_class(instruction)] += 1
        name = _WIDTHS.get(instruction.base)
        if name:
            widths[f"{name}_{_width(instruction)}"] += 1
    total = len(instructions)
    return Mix(
        instructions=total,
        ffma=opcodes["FFMA"] + opcodes["FFMA2"] + opcodes["FFMA32I"],
        ffma_share_pct=_percent(classes["ffma"], total),
        sts_share_pct=_percent(opcodes["STS"], total),
        classes=dict(sorted(classes.items())),
        opcodes=dict(sorted(opcodes.items())),
        widths=dict(sorted(widths.items())),
    )


def issue_bound_pct(mix: Mix, arch: str) -> float | None:
    """A ceiling on the share of FP32 peak that a loop of this mix can reach, in percent; None without FFMAs.

    Each of the four schedulers of an SM issues one warp instruction a clock. With 32 FP32 lanes (sm_86, 89,
    90, 100, 120) an FFMA takes one issue slot and one pass of the lanes, so the ceiling is the FFMA share.
    With 16 lanes (sm_75, sm_80) an FFMA holds the lanes for two clocks, in the second of which another
    instruction may issue: the ceiling is twice the share, 100 at most. An FFMA2 (sm_100 and on) does the work
    of two FFMAs in one slot.
    """
    if not mix.ffma:
        return None
    work = mix.ffma + mix.opcodes.get("FFMA2", 0)
    passes = work * 32 // _LANES.get(arch, 32)
    return _percent(passes, max(mix.instructions, passes))


def _class(instruction: Instruction) -> str:
    base = instruction.base
    if base == "IMAD" and ".MOV" in instruction.opcode:
        return "move"
    known = _CLASS_OF.get(base)
    if known:
        return known
    return "uniform" if base.startswith("U") else "other"


def _width(instruction: Instruction) -> int:
    for modifier in instruction.opcode.split(".")[1:]:
        if modifier in ("128", "64", "256"):
            return int(modifier)
        if modifier in ("U8", "S8"):
            return 8
        if modifier in ("U16", "S16"):
            return 16
    return 32


def _ffma(instructions: Sequence[Instruction]) -> int:
    return sum(i.base.startswith("FFMA") for i in instructions)


def _innermost(loops: Sequence[Loop]) -> list[Loop]:
    starts = {loop.start for loop in loops}
    inner = [
        loop
        for loop in loops
        if not any(i.address in starts and i.address != loop.start for i in loop.instructions)
    ]
    return inner or list(loops)


def _percent(part: int, whole: int) -> float:
    return round(100.0 * part / whole, 3) if whole else 0.0
