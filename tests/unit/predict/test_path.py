"""Which instructions a warp runs over and over."""

from __future__ import annotations

from predicted_builds import Listing

from kernelab.predict.path import find_steady_path, straight_path


def test_the_longer_way_through_a_loop_is_what_most_turns_do(listing: Listing) -> None:
    code = listing(
        """
        MOV R0, RZ
        FFMA R1, R2, R3, R1
        @P0 BRA 0x60
        LDG.E R4, [R5]
        STS [R6], R4
        BAR.SYNC 0x0
        @P1 BRA 0x10
        EXIT
        """
    )
    path = find_steady_path(code, "sm_90")
    assert path is not None
    assert path.addresses(1) == [0x10, 0x20, 0x30, 0x40, 0x50, 0x60]
    assert path.code_bytes == 6 * 16


def test_a_wait_for_data_inside_the_loop_is_gone_through_once(listing: Listing) -> None:
    code = listing(
        """
        MOV R0, RZ
        FFMA R1, R2, R3, R1
        SYNCS R0, [R1]
        @P0 BRA 0x20
        FFMA R1, R2, R3, R1
        FFMA R1, R2, R3, R1
        @P1 BRA 0x10
        EXIT
        """
    )
    path = find_steady_path(code, "sm_90")
    assert path is not None
    assert path.addresses(1) == [0x10, 0x20, 0x30, 0x40, 0x50, 0x60]


def test_a_loop_of_arithmetic_belongs_to_the_loop_that_feeds_it(listing: Listing) -> None:
    code = listing(
        """
        MOV R0, RZ
        LDG.E R4, [R5]
        STS [R6], R4
        BAR.SYNC 0x0
        LDS R2, [R6]
        FFMA R1, R2, R3, R1
        @P0 BRA 0x40
        BAR.SYNC 0x0
        @P1 BRA 0x10
        EXIT
        """
    )
    path = find_steady_path(code, "sm_90")
    assert path is not None
    assert path.before == (0x10, 0x20, 0x30)
    assert path.inner == (0x40, 0x50, 0x60)
    assert path.after == (0x70, 0x80)
    assert len(path.addresses(8)) == 5 + 8 * 3


def test_a_loop_that_waits_at_an_mbarrier_is_fed_there(listing: Listing) -> None:
    """A block that goes from tile to tile reads C between them; that belongs to no turn."""
    code = listing(
        """
        MOV R0, RZ
        LDG.E R4, [R5]
        SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R1]
        LDS R2, [R6]
        FFMA R1, R2, R3, R1
        @P0 BRA 0x20
        STG.E [R5], R1
        @P1 BRA 0x10
        EXIT
        """
    )
    path = find_steady_path(code, "sm_90a")
    assert path is not None
    assert path.addresses(1) == [0x20, 0x30, 0x40, 0x50]
    assert path.code_bytes == 4 * 16


def test_code_that_was_moved_behind_the_end_is_part_of_the_way(listing: Listing) -> None:
    code = listing(
        """
        FFMA R1, R2, R3, R1
        BRA 0x50
        FFMA R1, R2, R3, R1
        @P1 BRA 0x0
        EXIT
        LDG.E R4, [R5]
        LDG.E R4, [R5]
        BRA 0x20
        """
    )
    path = find_steady_path(code, "sm_90")
    assert path is not None
    assert path.addresses(1) == [0x0, 0x10, 0x50, 0x60, 0x70, 0x20, 0x30]


def test_without_a_loop_the_path_is_the_longest_way_to_the_exit(listing: Listing) -> None:
    code = listing(
        """
        MOV R0, RZ
        @P0 EXIT
        @P1 BRA 0x40
        STG.E [R2], R0
        EXIT
        BRA 0x50
        """
    )
    assert find_steady_path(code, "sm_90") is None
    assert straight_path(code).addresses(1) == [0x0, 0x10, 0x20, 0x30, 0x40]
