"""The FP32 peak of a card at a clock, and figures above it, which are errors. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from kernelab.timing.samples import Sample

# FP32 results per clock and SM: CUDA C++ Programming Guide, "Arithmetic Instructions", throughput table.
_LANES = {75: 64, 80: 64, 86: 128, 87: 128, 88: 128, 89: 128, 90: 128, 100: 128, 103: 128, 110: 128, 120: 128, 121: 128}


def fp32_lanes(arch: str) -> int | None:
    """FP32 lanes of an SM by architecture (sm_86 and the like); None where it is not known."""
    return _LANES.get(int("".join(c for c in arch if c.isdigit()) or 0))


def fp32_peak_tflops(multiprocessors: int, lanes: int, clock_mhz: float) -> float:
    """Peak FP32 rate in TFLOP/s: one fused multiply-add, two operations, a lane and clock."""
    return 2.0 * multiprocessors * lanes * clock_mhz * 1e-6


def impossible(samples: Iterable[Sample], flops: float, multiprocessors: int, lanes: int | None) -> Sample | None:
    """The first sample that is faster than the card's FP32 units allow, or None.

    Each is held against the peak at the clock measured in that very sample, never the nominal clock; a
    sample without a clock is not judged. Such a figure means that work was skipped.

    Args:
        samples: of one arm.
        flops: operations that one launch must do.
        multiprocessors: of the card.
        lanes: FP32 lanes of an SM; None (unknown) judges nothing.
    """
    if lanes is None:
        return None
    for sample in samples:
        if sample.sm_clock_mhz is None:
            continue
        peak = fp32_peak_tflops(multiprocessors, lanes, sample.sm_clock_mhz)
        if flops / (sample.time_ms * 1e9) > peak:
            return sample
    return None
