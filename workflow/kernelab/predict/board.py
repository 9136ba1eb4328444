"""Clock and memory bandwidth of the card that a prediction is for."""

from __future__ import annotations

from dataclasses import dataclass

from kernelmeter import gpus

from kernelab.build.cards import Card

# Boost clock in MHz and memory bandwidth in GB/s, from NVIDIA's data sheets, of cards that kernelmeter lacks.
_MORE = {"H200": (1980.0, 4800.0), "H200 NVL": (1785.0, 4800.0), "B200": (1965.0, 8000.0)}
_UNKNOWN = (1700.0, 800.0)
REACHED = 0.88  # of the bandwidth of the data sheet: 4.2 of 4.8 TB/s by a triad on an H200


@dataclass(frozen=True)
class Board:
    """`clock_mhz` of the SMs; `memory_bytes`: bytes in a cycle of that clock that the memory gives to the whole card.
    `known` is False where both are guesses, as for a card in neither table; the order of predictions hardly minds."""

    clock_mhz: float
    memory_bytes: float
    known: bool


def board_of(card: Card) -> Board:
    """Clock and bandwidth of a card, by the name that the driver gives it."""
    name = card.name.removeprefix("NVIDIA ")
    found = _MORE.get(name)
    if found is None:
        for spec in gpus.DATABASE:
            if spec.name.removeprefix("GeForce ") == name.removeprefix("GeForce "):
                found = (float(spec.boost_mhz), spec.mem_bus_bits * spec.mem_gbps / 8)
    clock, gigabytes = found or _UNKNOWN
    return Board(clock, REACHED * gigabytes * 1e9 / (clock * 1e6), found is not None)
