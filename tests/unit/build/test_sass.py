from __future__ import annotations

from pathlib import Path

import pytest

from kernelab.build.sass import Instruction, disassemble, parse_sass
from kernelab.build.toolchain import Tool, find_toolchain
from kernelab.errors import UserError

# nvdisasm 13.5 -c -ndf, shortened
TEXT = """\
	.headerflags	@"EF_CUDA_64BIT_ADDRESS EF_CUDA_SM86"
	.elftype	@"ET_EXEC"


//--------------------- .text.k1                  --------------------------
	.section	.text.k1,"ax",@progbits
	.sectionflags	@"SHF_BARRIERS=1"
	.sectioninfo	@"SHI_REGISTERS=32"
	.align	128
        .global         k1
        .size           k1,(.L_x_3 - k1)
        .other          k1,@"STO_CUDA_ENTRY STV_DEFAULT"
k1:
.text.k1:
        /*0000*/                   MOV R1, c[0x0][0x28] ;
.L_x_1:
.L_x_2:
        /*0010*/              @!P0 FFMA.FTZ R2, R3.reuse, R4, R2 ;
        /*0020*/                   LDS.128 R4, [R5+0x10] ;
        /*0030*/               @P0 BRA `(.L_x_1) ;
        /*0040*/              @UP1 UIADD3 UR4, UR4, 0x1, URZ ;
        /*0050*/                   CALL.REL.NOINC `($k1$_Z5heavyfi) ;
        /*0060*/                   EXIT ;
        .type           $k1$_Z5heavyfi,@function
$k1$_Z5heavyfi:
        /*0070*/                   RET.REL.NODEC R20 `(k1) ;
.L_x_3:


//--------------------- .text.k2                  --------------------------
	.section	.text.k2,"ax",@progbits
k2:
.text.k2:
        /*0000*/                   EXIT ;

//--------------------- .nv.constant0.k1          --------------------------
	.section	.nv.constant0.k1,"a",@progbits
	.align	4
.nv.constant0.k1:
        /*0000*/ 	.byte	0x00, 0x00
"""


def test_instructions_by_entry() -> None:
    entries = parse_sass(TEXT)
    assert list(entries) == ["k1", "k2"]
    assert entries["k2"] == [Instruction(0, "", "EXIT", "", None)]
    assert entries["k1"][:4] == [
        Instruction(0x00, "", "MOV", "R1, c[0x0][0x28]", None),
        Instruction(0x10, "@!P0", "FFMA.FTZ", "R2, R3.reuse, R4, R2", None),
        Instruction(0x20, "", "LDS.128", "R4, [R5+0x10]", None),
        Instruction(0x30, "@P0", "BRA", "`(.L_x_1)", 0x10),
    ]


def test_predicates_calls_and_base_opcodes() -> None:
    listing = parse_sass(TEXT)["k1"]
    assert listing[4].predicate == "@UP1"
    assert listing[5].base == "CALL"
    assert listing[5].target == 0x70
    assert [i.base for i in listing if i.opcode == "LDS.128"] == ["LDS"]


def test_bytes_that_are_no_cubin_are_one_line() -> None:
    with pytest.raises(UserError, match=r"nvdisasm .*: nvdisasm fatal") as raised:
        disassemble(b"not a cubin", find_toolchain("nvrtc").disassembler)
    assert "\n" not in str(raised.value)


def test_a_disassembler_that_is_gone_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="reinstall nvidia-cuda-nvdisasm"):
        disassemble(b"", Tool("nvdisasm", tmp_path / "gone", "", ""))
