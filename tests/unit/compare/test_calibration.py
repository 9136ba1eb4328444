"""The verdict's error rates, on small runs of the calibration benchmark at fixed seeds."""

from __future__ import annotations

import csv
import importlib.util
import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]


def load(name: str):
    spec = importlib.util.spec_from_file_location(f"benchmarks_{name}", ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


calibration = load("calibration")
TRIALS = 600


@pytest.mark.parametrize("setting", calibration.SETTINGS, ids=lambda setting: setting.name)
def test_every_setting_meets_its_targets(setting):
    [(_, tally)] = calibration.run([setting], TRIALS, seed=3)
    assert tally.trials == TRIALS
    assert calibration.misses(setting, tally) == []


def test_pooled_rounds_would_call_identical_arms_different():
    setting = next(item for item in calibration.SETTINGS if item.name == "placement 0.2%")
    [(_, tally)] = calibration.run([setting], 200, seed=3)
    assert tally.rate("pooled_excludes_one") > 0.3


def test_a_rule_without_the_process_level_misses_the_target(monkeypatch):
    """The benchmark can fail: intervals of half the width are found out."""
    real = calibration.judge

    def bold(comparisons, sessions, policy):
        return real(comparisons, sessions, replace(policy, alpha=0.2))

    monkeypatch.setattr(calibration, "judge", bold)
    setting = calibration.SETTINGS[0]
    [(_, tally)] = calibration.run([setting], TRIALS, seed=3)
    assert any("false_equivalent" in miss for miss in calibration.misses(setting, tally))


def test_simulated_noise_has_the_documented_size():
    setting = replace(calibration.SETTINGS[0], noise=0.0, placement=0.003)
    medians, _ = calibration.medians_and_pool(setting, 2000, np.random.default_rng(1))
    assert medians.std() == pytest.approx(0.003 * math.sqrt(2.0), rel=0.03)
    shared = replace(setting, placement=0.0, drift=0.03)
    drifting, _ = calibration.medians_and_pool(shared, 200, np.random.default_rng(1))
    assert 0.0 < drifting.std() < 0.002  # mirrored rounds cancel most of a drift of 3%


def test_clock_notes_tell_clock_from_code():
    rates = calibration.clock_notes(200, np.random.default_rng(1))
    assert rates["clock"] > 0.97
    assert rates["code"] < 0.03


def test_command_prints_a_table_and_writes_csv(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(calibration, "SETTINGS", calibration.SETTINGS[:2])
    path = tmp_path / "table.csv"
    assert calibration.main(["--trials", "40", "--csv", str(path)]) == 0
    printed = capsys.readouterr().out
    rows = list(csv.DictReader(path.open()))
    assert [row["setting"] for row in rows] == [item.name for item in calibration.SETTINGS]
    assert all(item.name in printed for item in calibration.SETTINGS)
    assert all(0.0 <= float(row["power_at_1pct"]) <= 1.0 for row in rows)


def test_check_fails_when_a_target_is_missed(monkeypatch, capsys):
    hopeless = replace(calibration.SETTINGS[0], placement=0.02)
    monkeypatch.setattr(calibration, "SETTINGS", (hopeless,))
    assert calibration.main(["--trials", "100"]) == 0
    assert calibration.main(["--trials", "100", "--check"]) == 1
    assert "MISSED white noise 0.1%: power" in capsys.readouterr().out


def test_a_pooled_spread_after_extension_would_err_too_often():
    rule = load("extension_rule")
    medians = np.random.default_rng(2).standard_normal((100_000, 12))
    extended, rates = rule.errors(medians, 0.007, calibration.STANDARD)
    assert 0.75 < extended < 0.85
    assert rates["pooled"][0] > 0.06
    assert rates["stein"][0] == pytest.approx(0.05, abs=0.003)
    assert rates["stein"][1] == pytest.approx(0.05, abs=0.003)
