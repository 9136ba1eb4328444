"""What a card can do at most, in FP32 at a clock and in bytes from its memory, and figures above it, which are errors. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from kernelab.records.timing import CardFacts
from kernelab.timing.samples import Sample

# FP32 results per clock and SM: CUDA C++ Programming Guide, "Arithmetic Instructions", throughput table.
_LANES = {
    75: 64,
    80: 64,
    86: 128,
    87: 128,
    88: 128,
    89: 128,
    90: 128,
    100: 128,
    103: 128,
    110: 128,
    120: 128,
    121: 128,
}


def fp32_lanes(arch: str) -> int | None:
    """FP32 lanes of an SM by architecture (sm_86 and the like); None where it is not known."""
    return _LANES.get(int("".join(c for c in arch if c.isdigit()) or 0))


def fp32_peak_tflops(multiprocessors: int, lanes: int, clock_mhz: float) -> float:
    """Peak FP32 rate in TFLOP/s: one fused multiply-add, two operations, a lane and clock."""
    return 2.0 * multiprocessors * lanes * clock_mhz * 1e-6


def impossible(
    samples: Iterable[Sample], flops: float, multiprocessors: int, lanes: int | None
) -> Sample | None:
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


def memory_peak_gb_s(card: CardFacts) -> float | None:
    """What the memory bus carries at its highest clock, in GB/s: two transfers a clock; None where it is not known."""
    if card.memory_clock_mhz is None or card.memory_bus_bits is None:
        return None
    return 2.0 * card.memory_clock_mhz * 1e6 * card.memory_bus_bits / 8 * 1e-9


def above_bandwidth(samples: Iterable[Sample], nbytes: float, card: CardFacts) -> Sample | None:
    """The first cold sample that is faster than the memory bus can carry what must move, or None.

    Args:
        samples: of one arm, taken cold: nothing that it reads is in the L2.
        nbytes: the fewest bytes that one launch must move. As many as the L2 holds are forgiven, since what is
            written last may stay there.
        card: whose bus; where it is not known nothing is judged.
    """
    peak = memory_peak_gb_s(card)
    if peak is None:
        return None
    least_ms = (nbytes - card.l2_bytes) / peak * 1e-6
    return next((sample for sample in samples if sample.time_ms < least_ms), None)
