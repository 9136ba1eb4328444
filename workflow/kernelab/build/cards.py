"""The card that a build is meant for: its SMs and its FP32 lanes.

Most cards come from kernelmeter's table; the ones that it lacks are listed here. A card is looked up by the
name that the driver reports, exactly (`RTX 3060 Laptop GPU` and `RTX 3060 Ti` are other chips than the `RTX
3060`); where there is no GPU, each architecture has a default card.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from kernelmeter import gpus, peaks


@dataclass(frozen=True)
class Card:
    """A GPU model. `arch` is what it runs natively, `sms` its multiprocessors, `fp32_lanes` those of one of
    them."""

    name: str
    arch: str
    sms: int
    fp32_lanes: int

    def fp32_tflops(self, sm_clock_mhz: float) -> float:
        """FP32 peak at a clock, in TFLOP/s: every lane finishes one FMA, two operations, a clock."""
        return 2.0 * self.sms * self.fp32_lanes * sm_clock_mhz * 1e-6


# SMs from NVIDIA's data sheets and architecture white papers.
_MORE = {
    "sm_75": {"RTX 2060": 30, "RTX 2070": 36, "RTX 2080": 46},
    "sm_80": {"A100 80GB PCIe": 108, "A100-PCIE-40GB": 108},
    "sm_86": {"RTX 3060 Ti": 38, "RTX 3070 Ti": 48},
    "sm_89": {
        "RTX 4060": 24,
        "RTX 4060 Ti": 34,
        "RTX 4070": 46,
        "RTX 4070 SUPER": 56,
        "RTX 4070 Ti": 60,
        "RTX 4070 Ti SUPER": 66,
        "RTX 4080 SUPER": 80,
        "RTX 6000 Ada Generation": 142,
    },
    "sm_90": {"H100 80GB HBM3": 132, "H200": 132, "H200 NVL": 132, "GH200 480GB": 132},
    "sm_100": {"B200": 148},
    "sm_120": {"RTX PRO 6000 Blackwell Workstation Edition": 188},
}

# Both worklogs' cards (RTX 3060; 84 SMs and 64 MB of L2) are among them.
DEFAULTS = {
    "sm_75": "GeForce RTX 2080 Ti",
    "sm_80": "A100 SXM4 80GB",
    "sm_86": "GeForce RTX 3060",
    "sm_89": "GeForce RTX 4090",
    "sm_90": "H200",
    "sm_100": "B200",
    "sm_120": "GeForce RTX 5080",
}


def make_card(name: str, arch: str, sms: int) -> Card:
    """A card from what the driver reports: name, architecture (`sm_90`) and number of SMs."""
    digits = re.sub(r"\D", "", arch)
    return Card(name, arch, sms, peaks.fp32_cores_per_sm(int(digits[:-1]), int(digits[-1])))


def find_card(name: str) -> Card | None:
    """The card that the driver calls `name`, or None where neither table has it: use `make_card` then."""
    return _table().get(_key(name))


def default_card(arch: str) -> Card | None:
    """The card that stands for an architecture where there is no GPU; None for an architecture without
    one."""
    name = DEFAULTS.get(arch.rstrip("af"))  # sm_90a is sm_90
    return find_card(name) if name else None


@lru_cache(maxsize=1)
def _table() -> dict[str, Card]:
    cards = [make_card(name, arch, sms) for arch, names in _MORE.items() for name, sms in names.items()]
    cards += [
        make_card(spec.name, f"sm_{spec.cc[0]}{spec.cc[1]}", spec.sm_count)
        for spec in gpus.DATABASE
        if spec.cc  # NVIDIA's; AMD's have none
    ]
    return {_key(card.name): card for card in cards}


def _key(name: str) -> str:
    words = re.sub(r"[^a-z0-9]+", " ", name.lower()).split()
    return " ".join(word for word in words if word not in ("nvidia", "geforce", "tesla"))
