"""Source and machine code side by side."""

from __future__ import annotations

from kernelab.report.code import Run, runs_of, sass_side_by_side, source_side_by_side

SASS = """\
\t.section\t.text.first,"ax"
        /*0000*/ MOV R1, R2 ;
.L_x_0:
        /*0010*/ LDS.128 R4, [R1] ;
        /*0020*/ FFMA R8, R4, R5, R8 ;
        /*0030*/ FFMA R9, R4, R6, R9 ;
        /*0040*/ @P0 BRA `(.L_x_0) ;
        /*0050*/ EXIT ;
        /*0060*/ NOP ;
\t.section\t.text.second,"ax"
        /*0000*/ EXIT ;
"""


def test_runs_mark_the_hot_loop_and_drop_the_padding() -> None:
    assert runs_of(SASS, "first", "sm_86") == [
        Run("MOV", 1, False),
        Run("LDS.128", 1, True),
        Run("FFMA", 2, True),
        Run("BRA", 1, True),
        Run("EXIT", 1, False),
    ]
    assert runs_of(SASS, "second", "sm_86") == [Run("EXIT", 1, False)]
    assert runs_of(SASS, "absent", "sm_86") == []


def test_equal_stretches_are_counted_and_differences_are_marked() -> None:
    base = [Run(f"OP{i}", 1, True) for i in range(20)] + [Run("LDS.128", 4, True)]
    arm = [*base[:-1], Run("LDS.64", 8, True)]
    view = sass_side_by_side(base, arm, most=100)
    assert view.lines[0].skipped == 18
    assert [line.base.text for line in view.lines[1:3] if line.base] == ["OP18", "OP19"]
    last = view.lines[-1]
    assert last.base is not None
    assert last.arm is not None
    assert (last.base.text, last.base.changed, last.arm.text, last.arm.changed, last.arm.hot) == (
        "LDS.128 \u00d74",
        True,
        "LDS.64 \u00d78",
        True,
        True,
    )
    assert view.left_out == 0


def test_long_views_say_what_they_leave_out() -> None:
    base = [Run(f"A{i}", 1, False) for i in range(50)]
    arm = [Run(f"B{i}", 1, False) for i in range(50)]
    view = sass_side_by_side(base, arm, most=10)
    assert (len(view.lines), view.left_out) == (10, 40)


def test_the_token_diff_is_paired() -> None:
    view = source_side_by_side(
        "3 tokens go, 4 come\n-int a ;\n-int b ;\n+int c ;\n-x ;\n+y ;\n... 7 more statements"
    )
    assert view.note == "3 tokens go, 4 come"
    assert [(line.base and line.base.text, line.arm and line.arm.text) for line in view.lines] == [
        ("int a ;", "int c ;"),
        ("int b ;", None),
        ("x ;", "y ;"),
    ]
    assert view.left_out == 7
