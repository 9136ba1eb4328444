from __future__ import annotations

from cuxray.parse import ptxasv

from kernelab.build.resources import Resources, parse_resources

# NVRTC 12.9 for sm_86; nvcc prints the same, with blanks in place of "ptxas         ."
LOG = """\
a.cu(2): warning #177-D: variable "zz" was declared but never referenced
ptxas info    : 32 bytes gmem, 16 bytes cmem[3], 8 bytes cmem[4]
ptxas info    : Compiling entry function 'k2' for 'sm_86'
ptxas info    : Function properties for k2
ptxas         .     448 bytes stack frame, 752 bytes spill stores, 640 bytes spill loads
ptxas info    : Used 64 registers, used 1 barriers, 448 bytes cumulative stack size, 364 bytes cmem[0]
ptxas info    : Compile time = 26.648 ms
ptxas info    : Compiling entry function 'k1' for 'sm_86'
ptxas info    : Function properties for k1
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 32 registers, 512 bytes smem, 364 bytes cmem[0], 8 bytes cmem[2]
ptxas info    : Function properties for _Z5heavyfi
    16 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads
"""


def test_each_entry_has_its_own_figures() -> None:
    assert parse_resources(LOG) == {
        "k2": Resources(64, 448, 752, 640, 0, 1),
        "k1": Resources(32, 0, 0, 0, 512, 0),
    }


def test_agrees_with_cuxray() -> None:
    theirs = ptxasv.parse(LOG)
    for name, ours in parse_resources(LOG).items():
        assert ours.registers == theirs[name].regs
        assert ours.static_shared_bytes == theirs[name].smem
        assert (ours.spill_store_bytes, ours.spill_load_bytes) == (
            theirs[name].spill_stores,
            theirs[name].spill_loads,
        )


def test_a_log_without_a_report_has_no_entries() -> None:
    assert parse_resources("a.cu(1): error: expected a ;\n") == {}
