"""NVML where it is absent, and the names of slowdowns."""

from __future__ import annotations

import pynvml
import pytest

from kernelab.device import nvml
from kernelab.device.nvml import Limits, Monitor, Reading, throttle_reasons


def test_reasons_are_nvmls_own_bits() -> None:
    for bit, name in nvml.REASONS.items():
        constant = "".join(word.capitalize() for word in name.split("_"))
        assert getattr(pynvml, f"nvmlClocksThrottleReason{constant}") == bit
    assert throttle_reasons(0x1) == ()
    assert throttle_reasons(0x44) == ("sw_power_cap", "hw_thermal_slowdown")
    assert set(nvml.REASONS.values()) >= nvml.THERMAL_OR_HARDWARE


def test_an_unknown_card_answers_nothing_and_raises_nothing() -> None:
    with Monitor("GPU-00000000-0000-0000-0000-000000000000") as monitor:
        assert not monitor.available
        assert monitor.why_not
        assert monitor.reading() == Reading()
        assert monitor.limits() == Limits()
        assert monitor.other_processes() is None
        assert monitor.set_locked_clocks(1000) == monitor.why_not
    monitor.close()


def test_a_question_that_nvml_refuses_is_none() -> None:
    monitor = Monitor("GPU-00000000-0000-0000-0000-000000000000")
    # The library itself, without a handle: each call fails as on a card that does not support it.
    monitor._nvml = pynvml
    assert monitor.reading() == Reading()
    assert monitor.other_processes() is None
    if monitor.set_locked_clocks(None) == "":
        pytest.fail("a refusal must say why")
