"""`python -m kernelab predict` in a project of its own."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest

import kernelab
from kernelab.cli.main import main
from kernelab.predict.model import PARTS

SCAFFOLD = Path(kernelab.__file__).parent / "scaffold"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(SCAFFOLD / "kernels", tmp_path / "kernels")
    shutil.copy(SCAFFOLD / "config.yaml", tmp_path / "config.yaml")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(kernelab.__file__).parents[1]))
    return tmp_path


def test_arms_come_out_with_the_fastest_first(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "--csv", "out.csv"]) == 0
    with (project / "out.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) >= 2
    times = [float(row["predicted_ms"]) for row in rows]
    assert times == sorted(times)
    for row, total in zip(rows, times, strict=True):
        assert sum(float(row[f"{name}_ms"]) for name in PARTS) == pytest.approx(total, rel=0.02)
        assert row["note"] == ""
    # Adding vectors moves 12 bytes for each of 2 operations: memory is all that counts.
    assert {row["bound"] for row in rows} == {"bandwidth"}
    assert capfd.readouterr().out.startswith("out.csv: ")
    # Nothing is compiled twice, and the order is the same again.
    assert main(["predict", "--top", "1"]) == 0
    assert rows[0]["configuration"] in capfd.readouterr().out.replace("\n", "")


def test_a_source_that_does_not_compile_stands_last_and_says_why(project: Path) -> None:
    (project / "kernels" / "axpy" / "axpy_vector.cu").write_text("this is no CUDA")
    assert main(["predict", "axpy", "axpy_vector", "--csv", "out.csv"]) == 0
    with (project / "out.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["rank"] for row in rows] == ["1", ""]
    assert "error" in rows[1]["note"]
    assert rows[1]["predicted_ms"] == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["axpi"], "axpi: no kernel, experiment or search; did you mean axpy?"),
        (["axpy", "--card", "RTX 9999"], "--card RTX 9999: in no table of cards"),
        (["axpy", "--card", "H200"], 'add --override \'{"arch": "sm_90"}\''),
    ],
)
def test_mistakes_are_one_line(
    project: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert main(["predict", *arguments]) == 1
    error = capfd.readouterr().err
    assert said in error
    assert error.count("\n") == 1
