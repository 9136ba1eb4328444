from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelab.build.source import source_closure, source_digest, text_digest, tokens
from kernelab.errors import UserError

KERNEL = r"""#pragma once
#include "common/tile.cuh"
#ifndef BM
#define BM 128 // rows
#endif
#define ROW(i) ((i) * BM)
#define LONG(a) \
  a + 1
/* a block
   comment */
extern "C" __global__ void __launch_bounds__(128, 1) sgemm(const float *__restrict__ A, float *C, int n) {
  float v = A[threadIdx.x] * 1.5e-3f + 0x1Fu; // "not a string"
  const char *text = "a // string, \" quoted";
  const char *raw = R"x(/* raw */ ")x";
  char quote = '\'', slash = '/';
  if (n >>= 1; n != 1'000) { C[ROW(n)] = -v; }
  asm volatile("bar.sync 0;" ::: "memory");
}
"""

BLANKS = [" ", "  ", "\t", "/* x */", "/* 'it\"s */", " \\\n ", " \\\r\n"]
LINE_BLANKS = ["\n", ' // it\'s "odd" /* \n', "\n\n/* a\nb */\n", "// ends \\\n in a splice\n"]


def _lines(text: str) -> list[list[str]]:
    """The tokens of `text`, with each directive on a line of its own as in the source."""
    lines: list[list[str]] = [[]]
    for token in tokens(text):
        if token.startswith("#directive"):
            lines.append([token])
        elif token == "\n":
            lines.append([])
        else:
            lines[-1].append(token)
    return lines


def _spelled(lines: list[list[str]], rng: random.Random) -> str:
    out = []
    for line in lines:
        directive = bool(line) and line[0].startswith("#directive")
        glued = bool(line) and line[0] == "#directive("
        for i, token in enumerate(line):
            if i == 0 and directive:
                out.append("\n#")
                continue
            out.append(token)
            if glued and i == 2:  # `#define ROW(`: nothing may come between
                continue
            out.append(rng.choice(BLANKS if directive else BLANKS + LINE_BLANKS))
        out.append("\n")
    return "".join(out)


@settings(max_examples=100)
@given(st.randoms(use_true_random=False))
def test_comments_and_layout_never_move_the_digest(rng: random.Random) -> None:
    assert text_digest(_spelled(_lines(KERNEL), rng)) == text_digest(KERNEL)


@settings(max_examples=100)
@given(st.randoms(use_true_random=False), st.sampled_from(["replace", "drop", "double"]))
def test_any_changed_token_moves_the_digest(rng: random.Random, edit: str) -> None:
    lines = _lines(KERNEL)
    places = [(i, j) for i, line in enumerate(lines) for j, t in enumerate(line) if t[0] != "#"]
    i, j = rng.choice(places)
    if edit == "replace":
        lines[i][j] = "other"
    elif edit == "drop":
        del lines[i][j]
    else:
        lines[i].insert(j, lines[i][j])
    assert text_digest(_spelled(lines, rng)) != text_digest(KERNEL)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a + +b", "a ++b"),
        ("#define F(x) 1\n", "#define F (x) 1\n"),
        ("#define A 1\n2", "#define A 1 2"),
        ("int ab;", "int a b;"),
        ("in\\\nt a;", "in t a;"),
        ('"a//b"', '"a'),
        ("1'000", "1 000"),
        ('R"(a  b)"', 'R"(a b)"'),
        ('"a  b"', '"a b"'),
        ("#if A\nx\n#endif", "#if A x\n#endif"),
        # what can see its own layout is hashed as bytes
        ("int a = __LINE__;", "\nint a = __LINE__;"),
        ("#define S(x) #x\nS(a+b)", "#define S(x) #x\nS(a + b)"),
    ],
)
def test_texts_that_mean_different_things_differ(one: str, other: str) -> None:
    assert text_digest(one) != text_digest(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a+b", "a /* x */ + b // y"),
        ("x // a \\\n still a comment\ny", "x y"),
        ('#define X "/*"\nint a;', '#define X "/*" // y\n\nint   a;'),
        ("#error don't\nint a;", "#error don't\nint /* ' */ a;"),
        ("#define A 1 /* over\ntwo lines */ + 2\nA", "#define A 1 + 2\nA"),
        ("a \\\n b", "a b"),
        ("\ta;\r\nb;\r\n", "a;\nb;\n"),
    ],
)
def test_texts_that_mean_the_same_agree(one: str, other: str) -> None:
    assert text_digest(one) == text_digest(other)


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_closure_follows_quoted_includes_once_and_in_order(tmp_path: Path) -> None:
    source = _write(tmp_path / "a.cu", '#include "common/b.cuh"\n#include <nowhere.h>\n#include "c.cuh"\n')
    _write(tmp_path / "common/b.cuh", '#pragma once\n#include "../c.cuh"\n// #include "ghost.cuh"\n')
    _write(tmp_path / "c.cuh", '/* #include "ghost.cuh" */ int c;\n')
    assert [p.name for p in source_closure(source)] == ["a.cu", "b.cuh", "c.cuh"]


def test_include_dirs_come_after_the_folder_of_the_includer(tmp_path: Path) -> None:
    source = _write(tmp_path / "k/a.cu", '#include "near.cuh"\n#include "far.cuh"\n')
    _write(tmp_path / "k/near.cuh", "")
    _write(tmp_path / "lib/near.cuh", "")
    far = _write(tmp_path / "lib/far.cuh", "")
    assert source_closure(source, [tmp_path / "lib"]) == (source, tmp_path / "k/near.cuh", far)


def test_missing_include_names_both_files(tmp_path: Path) -> None:
    source = _write(tmp_path / "a.cu", '#include "gone.cuh"\n')
    with pytest.raises(UserError, match=r'a\.cu: #include "gone\.cuh"'):
        source_closure(source)


def test_missing_source_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"a\.cu: cannot be read: No such file") as raised:
        source_digest(tmp_path / "a.cu")
    assert "\n" not in str(raised.value)


def test_digest_covers_headers_and_sees_edits_in_the_same_process(tmp_path: Path) -> None:
    source = _write(tmp_path / "a.cu", '#include "b.cuh"\n')
    header = _write(tmp_path / "b.cuh", "int b = 1;\n")
    before = source_digest(source)
    os.utime(header, (1, 1))
    assert source_digest(source) == before  # touched only
    _write(header, "int b = 1; // a comment\n")
    assert source_digest(source) == before
    _write(header, "int b = 2;\n")
    assert source_digest(source) != before


def test_include_cycle_ends(tmp_path: Path) -> None:
    source = _write(tmp_path / "a.cu", '#include "b.cuh"\n')
    _write(tmp_path / "b.cuh", '#pragma once\n#include "a.cu"\n')
    assert len(source_closure(source)) == 2


def test_an_indented_directive_is_a_directive():
    """`#pragma unroll` before a loop is indented; it must not make the file look as if it could see its own layout."""
    loop = "void f()\n{\n    #pragma unroll\n    for (;;) g();\n}\n"
    assert "#" not in tokens(loop)
    assert text_digest(loop) == text_digest("// a comment\n" + loop.replace("    #pragma", "\t# pragma"))
    assert text_digest(loop) != text_digest(loop.replace("unroll", "unroll 4"))
    assert text_digest(loop) != text_digest(loop.replace("    #pragma unroll\n", ""))


@pytest.mark.parametrize("text", ["#define S(x) \\\n  #x\n", "#define S(x) \\\n#x\n", "  #define S(x) #x\n"])
def test_a_macro_that_makes_strings_is_seen_behind_a_continued_line(text):
    assert text_digest(text) != text_digest("// a comment\n" + text)


def test_an_indented_include_is_followed(tmp_path):
    _write(tmp_path / "a.cu", 'void f();\n  #include "b.cuh"\n')
    _write(tmp_path / "b.cuh", "int x;\n")
    assert [path.name for path in source_closure(tmp_path / "a.cu")] == ["a.cu", "b.cuh"]
