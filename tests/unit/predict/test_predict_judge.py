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


def test_a_search_is_judged_by_its_ratio_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # By time the predictions are in order; by the ratio to the base, whose clock fell meanwhile, they are reversed.
    rows = [f'"{name}",{20 + n},{2 - n / 10}' for n, name in enumerate(NAMES)]
    arguments = files(tmp_path, [])
    Path(arguments[0]).write_text("\n".join(["configuration,time_ms,ratio", *rows]) + "\n")
    for extra, rho in (([], "1.000"), (["--ratio"], "-1.000")):
        monkeypatch.setattr(sys, "argv", ["prediction.py", *arguments, *extra])
        assert prediction.main() == 0
        assert f"Spearman {rho} [" in capsys.readouterr().out


def test_a_sample_is_drawn_by_name_and_not_by_time() -> None:
    times = {f"k/TM={n:02}@p": float(n) for n in range(40)}
    drawn = prediction.chosen(times, None, 10)
    again = prediction.chosen({name: -times[name] for name in reversed(times)}, None, 10)
    assert list(drawn) == list(again)
    assert len(drawn) == 10
    assert list(drawn) != sorted(times)[:10]
    assert all(times[name] == time for name, time in drawn.items())


def test_one_problem_of_a_table() -> None:
    times = {f"k/TM={n}@{problem}": float(n) for n in range(4) for problem in ("square_4096", "square_40")}
    kept = prediction.chosen(times, "square_40", None)
    assert set(kept) == {f"k/TM={n}@square_40" for n in range(4)}
    with pytest.raises(UserError, match="leave 0 configurations"):
        prediction.chosen(times, "skinny", None)


def test_builds_of_another_configfile_are_predicted_for_the_card_of_their_own_architecture(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = {}

    def order(candidates, plan, cards, layout):  # type: ignore[no-untyped-def]
        asked.update(cards)
        assert [candidate.name for candidate in candidates] == ["25_matrix_loads/default@square_4096"]
        return []

    monkeypatch.setattr(prediction, "order", order)
    monkeypatch.chdir(Path(__file__).parents[3])
    measured = {"25_matrix_loads/default@square_4096": 2.29}
    assert prediction.predict(measured, Path("table.csv"), "sm_90", [Path("frontier.yaml")]) == {}
    assert {arch: card.arch for arch, card in asked.items()} == {"sm_90a": "sm_90"}
    with pytest.raises(UserError, match=r"is in config\.yaml$"):
        prediction.predict(measured, Path("table.csv"), "sm_90")


def test_too_little_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("experiment,arm,kernel,time_ms\ne,a/x@p,a,1\n")
    with pytest.raises(UserError, match="three at least"):
        prediction.read_measured(table)
    with pytest.raises(UserError, match="not what"):
        prediction.read_predictions(table)
