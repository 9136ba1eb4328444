from __future__ import annotations

from collections.abc import Callable

from kernelab.build.loops import find_loops
from kernelab.build.sass import Instruction

Listing = Callable[[str], list[Instruction]]


def _spans(listing: Listing, text: str) -> list[tuple[int, int]]:
    return [(loop.start, len(loop.instructions)) for loop in find_loops(listing(text))]


def test_nested_loops(listing: Listing) -> None:
    text = """
    MOV R0, R1
    IADD3 R1         // 0x10 outer
    FFMA R2          // 0x20 inner
    @P0 BRA 0x20
    IADD3 R3
    @P1 BRA 0x10
    EXIT
    BRA 0x70         // the padding after the end is not a loop
    """
    assert _spans(listing, text) == [(0x10, 5), (0x20, 2)]


def test_a_loop_of_one_block_needs_more_than_one_instruction(listing: Listing) -> None:
    assert _spans(listing, "FFMA R0\nBRA 0x0") == [(0, 2)]
    assert _spans(listing, "EXIT\nBRA 0x10") == []


def test_code_moved_out_of_line_is_not_a_loop(listing: Listing) -> None:
    text = """
    FFMA R0
    BRA.DIV UR4, 0x50   // to the code behind the end
    FFMA R1             // 0x20
    EXIT
    NOP
    WARPSYNC.COLLECTIVE R2, 0x70
    SHFL R3
    BRA 0x20            // comes back, upwards
    """
    assert _spans(listing, text) == []


def test_out_of_line_code_within_a_loop_belongs_to_it(listing: Listing) -> None:
    text = """
    MOV R0
    FFMA R0             // 0x10 header
    @P0 BRA 0x50        // a rare case, moved behind the end
    @P1 BRA 0x10        // 0x30
    EXIT
    STL R1              // 0x50
    BRA 0x30
    """
    (loop,) = find_loops(listing(text))
    assert [i.opcode for i in loop.instructions] == ["FFMA", "BRA", "BRA", "STL", "BRA"]


def test_conditional_branches_without_a_predicate_fall_through(listing: Listing) -> None:
    text = """
    FFMA R0
    BRA.U UP0, 0x0
    FFMA R1
    BRA P0, 0x20
    EXIT
    """
    assert _spans(listing, text) == [(0, 2), (0x20, 2)]


def test_a_loop_in_a_called_function_is_found(listing: Listing) -> None:
    text = """
    CALL.REL.NOINC 0x20
    EXIT
    FFMA R0             // 0x20, reached by CALL alone
    @P0 BRA 0x20
    RET.REL.NODEC R20
    """
    assert _spans(listing, text) == [(0x20, 2)]


def test_empty_listing(listing: Listing) -> None:
    assert find_loops([]) == []
