"""The emulated device: a PTX interpreter that checks memory behaviour and counts it. docs/emulated-device.md."""

from __future__ import annotations

from .counters import Counters, SiteCounters, WarpAccess
from .emulate import Result, emulate
from .errors import EmulationError, UnsupportedInstruction
from .hazards import HAZARDS, KINDS, MEMORY_FAULTS, TIMEOUTS, Hazard, worst_status
from .launch import Launch
from .memory import GlobalMemory
from .parser import Module, parse_ptx
from .picture import bank_png, bank_svg, bank_text
from .tensormap import TensorMap, tensor_map

__all__ = [
    "HAZARDS",
    "KINDS",
    "MEMORY_FAULTS",
    "TIMEOUTS",
    "Counters",
    "EmulationError",
    "GlobalMemory",
    "Hazard",
    "Launch",
    "Module",
    "Result",
    "SiteCounters",
    "TensorMap",
    "UnsupportedInstruction",
    "WarpAccess",
    "bank_png",
    "bank_svg",
    "bank_text",
    "emulate",
    "parse_ptx",
    "tensor_map",
    "worst_status",
]
