"""Errors that a PTX text or a launch can cause."""

from __future__ import annotations

from kernelab.errors import UserError


class EmulationError(UserError):
    """A PTX text or a launch that the emulated device cannot run."""


class UnsupportedInstruction(EmulationError):
    """An instruction outside the documented set; the message names it and its PTX line."""

    def __init__(self, instruction: str, line: int, reason: str = "") -> None:
        self.instruction = instruction
        self.line = line
        detail = f": {reason}" if reason else ""
        super().__init__(
            f"PTX line {line}: the emulated device does not run '{instruction}'{detail}; "
            "docs/emulated-device.md lists what it runs"
        )
