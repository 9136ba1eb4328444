"""Control codes and operands, against nvdisasm's text of real machine code."""

from __future__ import annotations

import struct

import pytest
from predicted_builds import Catalogue, Listing

from kernelab.build.cubin import Cubin
from kernelab.build.sass import disassemble, parse_sass
from kernelab.predict.code import NONE, Read, decode
from kernelab.predict.machine import WRITE_BACK
from kernelab.predict.microcode import bits, translate

KEY = "08_warptiling/default"


def test_the_bits_say_what_the_text_says(catalogue: Catalogue) -> None:
    """nvdisasm prints reuse flags, and no other part of the control code: they show that the fields are where we look."""
    data = catalogue.compiled(KEY).cubin
    assert data is not None
    cubin = Cubin(data)
    listing = parse_sass(disassemble(data, catalogue.toolchain.disassembler))["sgemm"]
    steps = decode(cubin, "sgemm", listing)
    code = cubin.data(".text.sgemm")
    flagged = 0
    for address, step in steps.items():
        if step.instruction.base != "FFMA":
            continue
        (high,) = struct.unpack_from("<Q", code, address + 8)
        assert sum(1 << read.slot for read in step.reads if read.kept) == high >> 58 & 7
        flagged += any(read.kept for read in step.reads)
    assert flagged > 500
    loads = [step for step in steps.values() if step.instruction.base in ("LDS", "LDG")]
    # A load's latency is not fixed: of those that are waited for together, the last one sets a scoreboard.
    used = {step.sets for step in loads} - {NONE}
    assert used
    assert all(any(step.waits >> board & 1 for step in steps.values()) for board in used)
    assert all(step.stall > 0 for step in loads)


def test_operands_keep_their_slots(listing: Listing) -> None:
    class Code:
        def data(self, section: str) -> bytes:
            return bytes(16 * 4)

    text = """
        FFMA R0, R1.reuse, R2, -R3
        FFMA R0, R1, c[0x0][0x160], R3.reuse
        ISETP.NE.AND P0, PT, R4, RZ, PT
        LDS.128 R4, [R8+0x10]
    """
    steps = list(decode(Code(), "k", listing(text)).values())  # type: ignore[arg-type]
    assert steps[0].reads == (Read(0, 1, True), Read(1, 2, False), Read(2, 3, False))
    assert steps[1].reads == (Read(0, 1, False), Read(2, 3, True))
    assert steps[2].reads == (Read(0, 4, False),)
    assert steps[3].reads == ()


def test_what_is_kept_is_not_read_again(listing: Listing) -> None:
    class Code:
        def data(self, section: str) -> bytes:
            return bytes(16 * 3)

    text = """
        FFMA R0, R2.reuse, R4, R0
        FFMA R6, R2, R8, R6
        FFMA R7, R2, R9, R7
    """
    micro = translate(decode(Code(), "k", listing(text)).values(), {})  # type: ignore[arg-type]
    assert [m.kept for m in micro] == [(3, 0), (2, 0), (1, 2)]
    assert [m.cold for m in micro] == [(3, 0), (3, 0), (1, 2)]
    assert [m.keeps for m in micro] == [True, False, False]


def test_a_listing_of_other_code_is_refused(listing: Listing) -> None:
    class Code:
        def data(self, section: str) -> bytes:
            return bytes(16)

    with pytest.raises(ValueError, match="0x10"):
        decode(Code(), "k", listing("NOP\nNOP"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("opcode", "bits_a_thread"),
    [
        ("LDS", 32),
        ("LDS.128", 128),
        ("LDG.E.64", 64),
        ("LDSM.16.M88", 32),
        ("LDSM.16.MT88.2", 64),
        ("LDSM.16.M88.4", 128),
        ("STSM.16.M88", 32),
        ("STSM.16.MT88.4", 128),
    ],
)
def test_how_much_an_instruction_moves(opcode: str, bits_a_thread: int) -> None:
    assert bits(opcode) == bits_a_thread


def test_loads_from_shared_memory_are_told_by_kind_and_width(listing: Listing) -> None:
    class Code:
        def data(self, section: str) -> bytes:
            return bytes(16 * 6)

    text = """
        LDS R4, [R8]
        LDS.U.128 R4, [R8]
        LDSM.16.M88.4 R4, [R8]
        STS.128 [R8], R4
        LDG.E.128 R4, [R8]
        FFMA R0, R1, R2, R3
    """
    micro = translate(decode(Code(), "k", listing(text)).values(), {})  # type: ignore[arg-type]
    assert [m.loads for m in micro] == [("LDS", 32), ("LDS", 128), ("LDSM", 128), None, None, None]
    assert all(m.loads in WRITE_BACK for m in micro if m.loads)
