from __future__ import annotations

import pytest

from kernelab.build.cards import default_card, find_card, make_card
from kernelab.build.occupancy import theoretical_occupancy

# NVIDIA's own cuda_occupancy.h (CUDA 13.0), compiled and run on a CPU: architecture, threads a block,
# registers a thread, shared bytes a block, blocks an SM. Drawn from 246,480 rows, all of which agreed with
# cuxray 0.6.0.
NVIDIA = [
    ("sm_75", 160, 117, 512, 3),
    ("sm_75", 1024, 241, 65536, 0),
    ("sm_75", 96, 30, 8192, 8),
    ("sm_75", 192, 109, 33024, 1),
    ("sm_75", 320, 228, 65536, 0),
    ("sm_75", 32, 174, 1024, 8),
    ("sm_75", 32, 253, 8192, 8),
    ("sm_75", 768, 67, 512, 1),
    ("sm_75", 96, 197, 0, 2),
    ("sm_75", 96, 16, 24832, 2),
    ("sm_75", 288, 54, 24832, 2),
    ("sm_80", 64, 92, 65536, 2),
    ("sm_80", 768, 147, 8192, 0),
    ("sm_80", 160, 228, 32768, 1),
    ("sm_80", 32, 220, 65536, 2),
    ("sm_80", 64, 245, 16384, 4),
    ("sm_80", 384, 224, 8192, 0),
    ("sm_80", 384, 139, 65536, 1),
    ("sm_80", 64, 157, 32768, 4),
    ("sm_80", 96, 159, 0, 4),
    ("sm_80", 64, 60, 33024, 4),
    ("sm_80", 768, 52, 24832, 1),
    ("sm_86", 512, 145, 1024, 0),
    ("sm_86", 64, 128, 512, 8),
    ("sm_86", 128, 33, 32768, 3),
    ("sm_86", 192, 146, 0, 2),
    ("sm_86", 64, 144, 32768, 3),
    ("sm_86", 384, 219, 8192, 0),
    ("sm_86", 64, 71, 16384, 5),
    ("sm_86", 192, 133, 512, 2),
    ("sm_86", 96, 134, 0, 4),
    ("sm_86", 768, 58, 24832, 1),
    ("sm_86", 96, 56, 24832, 3),
    ("sm_89", 288, 61, 16384, 3),
    ("sm_89", 512, 113, 512, 1),
    ("sm_89", 128, 155, 16384, 3),
    ("sm_89", 96, 237, 49152, 2),
    ("sm_89", 288, 173, 65536, 0),
    ("sm_89", 160, 132, 49152, 2),
    ("sm_89", 96, 149, 98304, 1),
    ("sm_89", 160, 175, 8192, 1),
    ("sm_89", 96, 176, 0, 2),
    ("sm_89", 96, 19, 33024, 3),
    ("sm_89", 768, 48, 33024, 1),
    ("sm_90", 64, 118, 98304, 2),
    ("sm_90", 1024, 218, 1024, 0),
    ("sm_90", 64, 101, 32768, 6),
    ("sm_90", 160, 180, 65536, 1),
    ("sm_90", 768, 87, 512, 0),
    ("sm_90", 1024, 39, 98304, 1),
    ("sm_90", 384, 191, 1024, 0),
    ("sm_90", 288, 51, 33024, 4),
    ("sm_90", 96, 188, 0, 2),
    ("sm_90", 1024, 39, 33024, 1),
    ("sm_90", 384, 48, 24832, 3),
    ("sm_100", 320, 70, 49152, 2),
    ("sm_100", 256, 213, 512, 1),
    ("sm_100", 192, 172, 49152, 1),
    ("sm_100", 160, 37, 65536, 3),
    ("sm_100", 192, 149, 512, 2),
    ("sm_100", 64, 223, 0, 4),
    ("sm_100", 256, 215, 65536, 1),
    ("sm_100", 768, 244, 8192, 0),
    ("sm_100", 96, 192, 0, 2),
    ("sm_100", 288, 31, 33024, 6),
    ("sm_100", 384, 43, 33024, 3),
    ("sm_120", 288, 51, 24832, 3),
    ("sm_120", 64, 212, 512, 4),
    ("sm_120", 96, 239, 16384, 2),
    ("sm_120", 1024, 186, 0, 0),
    ("sm_120", 512, 107, 512, 1),
    ("sm_120", 160, 38, 49152, 2),
    ("sm_120", 320, 133, 65536, 1),
    ("sm_120", 128, 201, 24832, 2),
    ("sm_120", 96, 191, 0, 2),
    ("sm_120", 320, 63, 33024, 3),
    ("sm_120", 32, 56, 24832, 3),
]


@pytest.mark.parametrize(("arch", "threads", "registers", "shared", "blocks"), NVIDIA)
def test_nvidias_header(arch: str, threads: int, registers: int, shared: int, blocks: int) -> None:
    card = default_card(arch)
    assert card is not None
    found = theoretical_occupancy(card, threads=threads, registers=registers, shared_bytes=shared, blocks=1)
    assert found.blocks_per_sm == blocks


def test_the_last_rung_of_the_ladder() -> None:
    card = make_card("84 SMs", "sm_120", 84)
    found = theoretical_occupancy(card, threads=128, registers=227, shared_bytes=32768, blocks=32 * 32)
    assert (found.blocks_per_sm, found.occupancy_pct, found.limiter) == (2, 16.7, "registers")
    assert found.waves == pytest.approx(1024 / (2 * 84))


def test_a_block_that_does_not_fit_has_no_waves() -> None:
    card = default_card("sm_86")
    assert card is not None
    found = theoretical_occupancy(card, threads=1024, registers=128, shared_bytes=0, blocks=10)
    assert (found.blocks_per_sm, found.occupancy_pct, found.waves) == (0, 0.0, None)


@pytest.mark.parametrize(
    ("name", "sms"),
    [
        ("NVIDIA H200", 132),
        ("NVIDIA GeForce RTX 3060", 28),
        ("NVIDIA GeForce RTX 3060 Ti", 38),
        ("NVIDIA A100-SXM4-80GB", 108),
        ("NVIDIA H100 80GB HBM3", 132),
        ("Tesla T4", 40),
        ("NVIDIA GeForce RTX 5080", 84),
    ],
)
def test_cards_by_the_name_that_the_driver_gives(name: str, sms: int) -> None:
    card = find_card(name)
    assert card is not None
    assert card.sms == sms


def test_a_card_with_almost_the_same_name_is_another_card() -> None:
    assert find_card("NVIDIA GeForce RTX 3060 Laptop GPU") is None


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"])
def test_each_architecture_has_a_default_card_of_its_own(arch: str) -> None:
    card = default_card(arch)
    assert card is not None
    assert card.arch == arch


def test_defaults_of_variants_and_of_unknown_architectures() -> None:
    assert default_card("sm_90a") == default_card("sm_90")
    assert default_card("sm_103") is None


def test_fp32_peak() -> None:
    card = find_card("NVIDIA H200")
    assert card is not None
    assert card.fp32_tflops(1980) == pytest.approx(66.9, abs=0.05)
    a100 = default_card("sm_80")
    assert a100 is not None
    assert a100.fp32_tflops(1410) == pytest.approx(19.5, abs=0.05)
