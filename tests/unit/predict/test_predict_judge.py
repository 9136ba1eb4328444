"""benchmarks/prediction.py reads both kinds of measured table, and says how predictions agree with them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
import prediction

from kernelab.errors import UserError

NAMES = [f"BK=8,TM={n}" for n in range(6)]


def files(folder: Path, measured: list[str]) -> list[str]:
    times = folder / "seed_a_space.csv"
    times.write_text("\n".join(["rank,configuration,status,time_ms,settings", *measured]) + "\n")
    guesses = folder / "predicted.csv"
    rows = [f'{n},"{name}",{10 + n}' for n, name in enumerate(NAMES)]
    guesses.write_text("\n".join(["rank,configuration,predicted_ms", *rows]) + "\n")
    return [str(times), "--predictions", str(guesses)]


def test_a_search_that_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # The order is right but for the first two; one is excluded and has no time, one was never predicted.
    rows = [
        f'{n},"{name}",dropped,{time},{{}}'
        for n, (name, time) in enumerate(zip(NAMES, (21, 20, 22, 23, 24, 25), strict=True))
    ]
    rows += [',"TM=99",excluded,,{}', '9,"TM=7",dropped,30,{}']
    monkeypatch.setattr(sys, "argv", ["prediction.py", *files(tmp_path, rows)])
    assert prediction.main() == 0
    out = capsys.readouterr().out
    assert "all: 6 configurations, Spearman 0.943 [" in out
    assert "1: 5.0%, 5: 0.0%" in out
    assert "measured and not predicted: 1 (TM=7)" in out


def test_a_table_has_several_experiments_for_an_arm(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text(
        "experiment,arm,kernel,time_ms\ne,a/x@p,a,1\nf,a/x@p,a,3\ne,b/x@p,b,4\ne,c/x@p,c,5\ne,d/x@p,d,\ne,l@p,00_cublas,1\n"
    )
    assert prediction.read_measured(table) == {"a/x@p": 2.0, "b/x@p": 4.0, "c/x@p": 5.0}


def test_too_little_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("experiment,arm,kernel,time_ms\ne,a/x@p,a,1\n")
    with pytest.raises(UserError, match="three at least"):
        prediction.read_measured(table)
    with pytest.raises(UserError, match="not what"):
        prediction.read_predictions(table)
