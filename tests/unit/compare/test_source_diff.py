from __future__ import annotations

from pathlib import Path

import pytest

from kernelab.compare.source_diff import preprocessed, token_diff

ROOT = Path(__file__).parents[3]


def text(root: Path, source: str, **defines: str) -> list[str]:
    (root / "k.cu").write_text(source)
    return preprocessed(root / "k.cu", defines)


@pytest.mark.parametrize(
    ("source", "defines", "expected"),
    [
        ("#ifndef A\n#define A 1\n#endif\nint a = A;", {}, ["int a = 1 ;"]),
        ("#ifndef A\n#define A 1\n#endif\nint a = A;", {"A": "7"}, ["int a = 7 ;"]),
        ("#if A == 2\nint two;\n#elif A\nint some;\n#else\nint none;\n#endif", {"A": "2"}, ["int two ;"]),
        ("#if A == 2\nint two;\n#elif A\nint some;\n#else\nint none;\n#endif", {"A": "5"}, ["int some ;"]),
        ("#if A == 2\nint two;\n#elif A\nint some;\n#else\nint none;\n#endif", {"A": "0"}, ["int none ;"]),
        ("#if defined(A) && !defined B\nint a;\n#endif\nint z;", {"A": "1"}, ["int a ;", "int z ;"]),
        ("#if defined(A) && !defined B\nint a;\n#endif\nint z;", {"A": "1", "B": "1"}, ["int z ;"]),
        ("#ifdef A\n#if B\nint b;\n#endif\n#else\nint c;\n#endif", {}, ["int c ;"]),
        ("#define A B\n#define B A\nint A;", {}, ["int A ;"]),  # a macro that meets itself stays
        ("#define A 1\n#undef A\nint A;", {}, ["int A ;"]),
        ("int a; // A\nint /* b */ c;", {"A": "1"}, ["int a ;", "int c ;"]),
        ("for (int i = 0; i < N; i++) a[i];", {"N": "4"}, ["for ( int i = 0 ; i < 4 ; i ++ ) a [ i ] ;"]),
        ("#if __CUDA_ARCH__ >= 800\nint new_;\n#endif", {}, []),
        ("#if UNKNOWN_FUNCTION(3)\nint shown;\n#endif", {}, ["int shown ;"]),
    ],
)
def test_preprocessing(tmp_path: Path, source: str, defines: dict[str, str], expected: list[str]) -> None:
    assert text(tmp_path, source, **defines) == expected


def test_includes_stand_in_place_and_pragma_once_holds(tmp_path: Path) -> None:
    (tmp_path / "h.cuh").write_text("#pragma once\nint h = A;\n")
    assert text(tmp_path, '#define A 3\n#include "h.cuh"\n#include "h.cuh"\nint k;') == [
        "int h = 3 ;",
        "int k ;",
    ]


def test_comments_and_layout_are_no_difference(tmp_path: Path) -> None:
    one = text(tmp_path, "int a=1; // one\nint b;")
    assert (
        token_diff(one, text(tmp_path, "int a = 1;\n/* two */ int   b;"))
        == "the preprocessed sources are equal"
    )


def test_a_diff_shows_both_sides_and_counts(tmp_path: Path) -> None:
    one, two = text(tmp_path, "int a;\nint b = 1;\nint c;"), text(tmp_path, "int a;\nint b = 2;\nint c;")
    assert token_diff(one, two).splitlines() == ["5 tokens go, 5 come", "-int b = 1 ;", "+int b = 2 ;"]


def test_a_long_diff_is_cut_and_says_so(tmp_path: Path) -> None:
    many = text(tmp_path, "".join(f"int a{i};\n" for i in range(100)))
    lines = token_diff([], many, most=10).splitlines()
    assert len(lines) == 12
    assert lines[-1] == "... 90 more statements"


def test_the_published_accident_is_visible_in_the_source() -> None:
    """BETA_DISPATCH=2 of 13_final drops the second launch bound, and the diff shows it."""
    kernel = ROOT / "kernels/sgemm/13_final.cu"
    defines = {"MIN_BLOCKS": "1", "BETA_READ": "0"}
    diff = token_diff(*(preprocessed(kernel, defines | {"BETA_DISPATCH": level}) for level in ("1", "2")))
    assert '-extern "C" __global__ void LAUNCH_BOUNDS ( NT ) sgemm' in diff
    assert '+extern "C" __global__ void __launch_bounds__ ( NT ) sgemm' in diff
