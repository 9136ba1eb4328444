"""The digest of an operation's Python: what an edit must move, and what must not."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelab.digests import python_digest
from kernelab.errors import UserError

SOURCE = "import numpy as np\n\n\ndef reference(problem, arrays):\n    return {'C': arrays['A'] * 2}\n"


def digest(folder: Path, text: str) -> str:
    path = folder / "operation.py"
    path.write_text(text)
    return python_digest(path)


def test_it_is_the_same_under_every_python(tmp_path: Path) -> None:
    """Records made on one machine are read on another: this figure is that of Python 3.11, 3.12 and later."""
    assert digest(tmp_path, SOURCE)[:16] == "a353e971b06e1c75"


@pytest.mark.parametrize(
    "text",
    [
        SOURCE.replace("import", "# a comment\nimport"),
        SOURCE.replace("'C'", '"C"'),
        SOURCE.replace("    return", "\n    return").replace("* 2", "*  2"),
    ],
)
def test_comments_and_layout_do_not_count(tmp_path: Path, text: str) -> None:
    assert digest(tmp_path, text) == digest(tmp_path, SOURCE)


@pytest.mark.parametrize(
    "text", [SOURCE.replace("2", "3"), SOURCE.replace("2", "2.0"), SOURCE.replace("'A'", "'B'")]
)
def test_another_meaning_counts(tmp_path: Path, text: str) -> None:
    assert digest(tmp_path, text) != digest(tmp_path, SOURCE)


def test_what_is_no_python_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"operation\.py: not valid Python"):
        digest(tmp_path, "def (")
