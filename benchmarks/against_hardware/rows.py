"""Counters of one launch on both devices: which metric of ncu each is, and why the two may differ. Pure."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelab.build.sass import Instruction
from kernelab.device.emulated import Counters, SiteCounters
from kernelab.profile.columns import INSTRUCTIONS, SHARED
from kernelab.records.profile import ProfiledKernel

TOLERANCE = 0.01

_GLOBAL = "pipe_lsu_mem_global_op"
_COPY = ("ldgsts_cache_access", "ldgsts_cache_bypass")
METRICS: dict[str, tuple[tuple[str, ...], ...]] = {
    "global_load_requests": ((f"l1tex__t_requests_{_GLOBAL}_ld.sum",),),
    "global_load_sectors": ((f"l1tex__t_sectors_{_GLOBAL}_ld.sum",),),
    "global_store_requests": ((f"l1tex__t_requests_{_GLOBAL}_st.sum",),),
    "global_store_sectors": ((f"l1tex__t_sectors_{_GLOBAL}_st.sum",),),
    "global_copy_requests": (
        (f"l1tex__t_requests_{_GLOBAL}_ldgsts.sum",),
        tuple(f"l1tex__t_requests_{_GLOBAL}_{how}.sum" for how in _COPY),
    ),
    "global_copy_sectors": (
        (f"l1tex__t_sectors_{_GLOBAL}_ldgsts.sum",),
        tuple(f"l1tex__t_sectors_{_GLOBAL}_{how}.sum" for how in _COPY),
    ),
    "shared_load_requests": (("smsp__inst_executed_op_shared_ld.sum",),),
    "shared_load_wavefronts": ((f"{SHARED}_op_ld.sum",),),
    "shared_store_requests": (("smsp__inst_executed_op_shared_st.sum",),),
    "shared_store_wavefronts": ((f"{SHARED}_op_st.sum",),),
    "shared_wavefronts": ((f"{SHARED}.sum",),),
    "instructions": ((INSTRUCTIONS,),),
}
"""Of each counter: alternatives, each a sum of ncu's metrics; the first that the card has all of is taken."""

OTHER_ISA = "not comparable: the emulator counts PTX instructions, ncu those of SASS"
NO_METRIC = "ncu has no such metric on this card"
NEVER_WRONG = (OTHER_ISA, NO_METRIC)
SASS_KINDS = {
    "LDG": "global_load",
    "STG": "global_store",
    "LDGSTS": "global_copy",
    "LDS": "shared_load",
    "STS": "shared_store",
}
SHARED_LOADS, SHARED_STORES = "shared_load_wavefronts", "shared_store_wavefronts"
NEVER_TRUE = "@!PT"
MOST_MERGED = 4  # a 128-bit access holds four of 32 bits

_PTX_ACCESS = re.compile(r"(?:^|[\s{;])(ld|st)((?:\.[\w:]+)+)\s")
_PTX_COPY = re.compile(r"cp\.async\.c[ag]\.shared[\w:.]*\s[^;]*?\],\s*(\d+)")

Widths = Mapping[str, Mapping[int, int]]
"""Instructions in the text of an entry, by kind of access (`global_load`) and by bytes of a thread."""


@dataclass(frozen=True)
class Code:
    """What the text of an entry says. idle_lds: LDS of SASS that no thread executes (@!PT)."""

    ptx: Widths
    sass: Widths
    idle_lds: int
    warps: int


@dataclass(frozen=True)
class CounterRow:
    """One row of counters.csv. `ratio` is emulated over measured; both 0 is 1. An empty explanation needs none."""

    kernel: str
    problem: str
    counter: str
    emulated: int
    measured: float | None
    ratio: float | None
    explanation: str
    agrees: bool


def access_kind(site: SiteCounters) -> str:
    """Such as `global_load`; a cp.async is `global_copy` where it reads and `shared_copy` where it writes."""
    return f"{site.space}_{'copy' if site.opcode.startswith('cp.async') else site.kind}"


def counted(counters: Counters) -> dict[str, int]:
    """The counters of METRICS, and those of the writes of cp.async (shared_copy_...)."""
    found: Counter[str] = Counter()
    for site in counters.sites:
        kind = access_kind(site)
        found[f"{kind}_requests"] += site.requests
        found[f"{kind}_sectors"] += site.sectors
        found[f"{kind}_wavefronts"] += site.wavefronts
        found["shared_wavefronts"] += site.wavefronts
    found["instructions"] = sum(counters.mix.values())
    return {name: int(found[name]) for name in (*METRICS, "shared_copy_requests", "shared_copy_wavefronts")}


def code_of(ptx: str, sass: Sequence[Instruction], entry: str, warps: int) -> Code:
    """The facts of an entry's text.

    Args:
        ptx: of the whole build; sass: of the entry.
        warps: of the launch.
    """
    idle = sum(one.base == "LDS" and one.predicate == NEVER_TRUE for one in sass)
    return Code(widths_in_ptx(ptx, entry), widths_in_sass(sass), idle, warps)


def widths_in_ptx(ptx: str, entry: str) -> Widths:
    """The accesses to global and shared memory in an entry of a PTX text."""
    found = re.search(rf"\.entry\s+{re.escape(entry)}\(.*?^}}", ptx, re.DOTALL | re.MULTILINE)
    body = re.sub(r"//[^\n]*", "", found[0]) if found else ""
    widths: dict[str, Counter[int]] = {}
    for match in _PTX_ACCESS.finditer(body):
        parts = match[2].split(".")
        space = next((one for one in ("global", "shared") if one in parts or f"{one}::cta" in parts), None)
        size = re.fullmatch(r"[bfus](\d+)", parts[-1])
        if space and size:
            vector = next((int(part[1]) for part in parts if part in ("v2", "v4")), 1)
            kind = f"{space}_{'load' if match[1] == 'ld' else 'store'}"
            widths.setdefault(kind, Counter())[vector * int(size[1]) // 8] += 1
    for match in _PTX_COPY.finditer(body):
        widths.setdefault("global_copy", Counter())[int(match[1])] += 1
    return {kind: dict(sorted(counts.items())) for kind, counts in widths.items()}


def widths_in_sass(sass: Sequence[Instruction]) -> Widths:
    """The same of machine code, without what no thread executes."""
    widths: dict[str, Counter[int]] = {}
    for one in sass:
        kind = SASS_KINDS.get(one.base)
        if kind and one.predicate != NEVER_TRUE:
            parts = one.opcode.split(".")
            bits = next(
                (int(p) for p in ("128", "64", "16", "8") if not {p, f"U{p}", f"S{p}"}.isdisjoint(parts)), 32
            )
            widths.setdefault(kind, Counter())[bits // 8] += 1
    return {kind: dict(sorted(counts.items())) for kind, counts in widths.items()}


def measured_counter(counter: str, kernel: ProfiledKernel) -> float | None:
    """A counter in ncu's report; None where the card has none of its metrics."""
    for choice in METRICS[counter]:
        values = [kernel.metrics[name].value for name in choice if name in kernel.metrics]
        if len(values) == len(choice):
            return sum(values)
    return None


def compare_counters(
    kernel: str, problem: str, emulated: Mapping[str, int], measured: ProfiledKernel, code: Code
) -> list[CounterRow]:
    """The rows of one launch. `emulated`: as from `counted`."""
    rows = []
    for counter in METRICS:
        ours, theirs = emulated[counter], measured_counter(counter, measured)
        within = theirs is not None and close(ours, theirs)
        explanation = "" if within else explain(counter, emulated, theirs, code)
        if not within and not explanation and counter == "shared_wavefronts":
            explanation = _by_remainder(emulated, measured)
        if counter == "instructions" and theirs is not None:
            explanation = OTHER_ISA
        ratio = None if theirs is None else quotient(ours, theirs)
        agrees = within or bool(explanation)
        rows.append(CounterRow(kernel, problem, counter, ours, theirs, ratio, explanation, agrees))
    return rows


def _by_remainder(emulated: Mapping[str, int], measured: ProfiledKernel) -> str:
    """The card's total of shared wavefronts also holds what is neither a load nor a store of shared memory.

    A kernel without shared memory has some too: rung 01 has two a warp.
    """
    known = {
        name: measured_counter(name, measured) for name in (SHARED_LOADS, SHARED_STORES, "shared_wavefronts")
    }
    loads, stores, total = known.values()
    if loads is None or stores is None or total is None:
        return ""
    return remainder(
        emulated[SHARED_LOADS],
        loads,
        emulated[SHARED_STORES],
        stores,
        total,
        emulated["shared_copy_wavefronts"],
    )


def remainder(
    our_loads: float, loads: float, our_stores: float, stores: float, total: float, copies: float
) -> str:
    """What is left of the card's total, where its loads and stores are those emulated; empty where they are not."""
    if not close(our_loads, loads) or not close(our_stores, stores):
        return ""
    copied = f" (the emulator counts {copies:.0f} for the writes of cp.async)" if copies else ""
    return f"loads and stores agree; the card's total holds {total - loads - stores:.0f} more that are neither{copied}"


def quotient(ours: float, theirs: float) -> float:
    """Emulated over measured; 1 where both are 0, infinity where only the card has none."""
    if theirs:
        return ours / theirs
    return 1.0 if ours == 0 else math.inf


def close(ours: float, theirs: float) -> bool:
    """Within 1% of what was measured."""
    return abs(ours - theirs) <= TOLERANCE * abs(theirs)


def explain(counter: str, emulated: Mapping[str, int], measured: float | None, code: Code) -> str:
    """Why a counter differs by more than 1%, by rule; empty where no rule holds."""
    if measured is None:
        return NO_METRIC
    return (
        _by_copies(counter, emulated, measured)
        or _by_idle_loads(counter, emulated, measured, code)
        or _by_widths(counter, emulated, measured, code)
    )


def _by_copies(counter: str, emulated: Mapping[str, int], measured: float) -> str:
    """cp.async both reads global and writes shared memory: one instruction, LDGSTS, that ncu may file elsewhere."""
    space, _, _ = counter.partition("_")
    column = counter.rpartition("_")[2]
    share = emulated.get(f"{space}_copy_{column}", 0)
    included = counter in (f"{space}_copy_{column}", f"{space}_{column}")
    what = f"{share} {column} of LDGSTS (cp.async)"
    if share and included and close(emulated[counter] - share, measured):
        return f"ncu does not count the {what} here"
    if share and not included and close(emulated[counter] + share, measured):
        return f"ncu counts the {what} here too"
    return ""


def _by_idle_loads(counter: str, emulated: Mapping[str, int], measured: float, code: Code) -> str:
    """Before an LDGSTS ptxas puts LDS instructions that no thread executes, and that are counted as executed."""
    excess = measured - emulated[counter]
    if counter != "shared_load_requests" or not code.idle_lds or excess <= 0 or excess % code.warps:
        return ""
    return f"ptxas added {code.idle_lds} LDS that no thread executes (@!PT): {excess / code.warps:.0f} more of each warp"


def _by_widths(counter: str, emulated: Mapping[str, int], measured: float, code: Code) -> str:
    """ptxas may make one wide access of several narrow ones, four at most; ncu counts what it made."""
    if not emulated[counter] <= MOST_MERGED * measured <= MOST_MERGED**2 * emulated[counter]:
        return ""
    kinds = (
        ("shared_load", "shared_store") if counter == "shared_wavefronts" else (counter.rpartition("_")[0],)
    )
    opcodes = {kind: opcode for opcode, kind in SASS_KINDS.items()}
    changed = [
        f"{opcodes[kind]} of {_shown(code.sass[kind])} bytes for PTX of {_shown(code.ptx[kind])}"
        for kind in kinds
        if kind in code.sass and kind in code.ptx and set(code.sass[kind]) != set(code.ptx[kind])
    ]
    return f"ptxas changed the widths: {'; '.join(changed)}" if changed else ""


def _shown(widths: Mapping[int, int]) -> str:
    return ", ".join(f"{count} x {width}" for width, count in widths.items())
