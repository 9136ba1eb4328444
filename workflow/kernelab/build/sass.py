"""Disassemble a cubin with nvdisasm and parse its text into instructions.

One run of nvdisasm for a cubin, whatever the number of entries: 0.16 s of CPU time, of which 0.14 is its
start.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from kernelab.build.toolchain import Tool, tool_environment
from kernelab.errors import UserError


class Instruction(NamedTuple):
    """One machine instruction.

    `predicate` is `@P0`, `@!UP1` or empty; `opcode` carries its modifiers (`LDS.128`); `operands` is the text
    after it; `target` is the address that a branch names, in bytes from the start of the section.
    """

    address: int
    predicate: str
    opcode: str
    operands: str
    target: int | None

    @property
    def base(self) -> str:
        """The opcode without modifiers: `LDS` for `LDS.128`."""
        return self.opcode.partition(".")[0]


_LINE = re.compile(
    r"^\s*(?:"
    r"/\*(?P<address>[0-9a-f]{4,})\*/\s+(?:(?P<predicate>@!?U?P\w+)\s+)?(?P<opcode>[A-Z][\w.]*)\s*(?P<operands>[^;]*?)\s*;"
    r"|(?P<label>[.$\w]+):\s*$"
    r"|\.section\s+\.text\.(?P<entry>[^,\s]+)"
    r"|\.section\s+(?P<other>\S+)"
    r")",
    re.MULTILINE,
)
_LABEL_OPERAND = re.compile(r"`\(([^)]+)\)")


def disassemble(cubin: bytes, nvdisasm: Tool) -> str:
    """The text of `nvdisasm -c`.

    Raises:
        UserError: nvdisasm cannot read this cubin (it is older than the architecture, say).
    """
    with tempfile.TemporaryDirectory(prefix="kernelab-") as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        # without data flow analysis, which only -plr needs: 40 ms less
        command = [str(nvdisasm.path), "-c", "-ndf", str(path)]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=300,
                env=tool_environment(folder),
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UserError(f"{nvdisasm.path} failed: {error}: reinstall nvidia-cuda-nvdisasm") from error
    if done.returncode:
        said = done.stderr.strip().partition("\n")[0].replace(str(path), "the cubin")
        reason = said or f"exit status {done.returncode}"
        raise UserError(f"nvdisasm {nvdisasm.version}: {reason}: install a newer nvidia-cuda-nvdisasm")
    return done.stdout


def parse_sass(text: str) -> dict[str, list[Instruction]]:
    """The instructions of each entry, in order of address, from the text of `nvdisasm -c`."""
    entries: dict[str, list[Instruction]] = {}
    labels: dict[str, int] = {}
    pending: list[str] = []
    current: list[Instruction] | None = None
    for match in _LINE.finditer(text):
        kind = match.lastgroup
        if kind == "operands":
            if current is None:
                continue
            address = int(match["address"], 16)
            for label in pending:
                labels[label] = address
            pending.clear()
            current.append(
                Instruction(address, match["predicate"] or "", match["opcode"], match["operands"], None)
            )
        elif kind == "label":
            pending.append(match["label"])
        elif kind == "entry":
            current = entries.setdefault(match["entry"].strip('"'), [])
            pending.clear()
        else:
            current = None
    return {entry: [_with_target(i, labels) for i in listing] for entry, listing in entries.items()}


def _with_target(instruction: Instruction, labels: dict[str, int]) -> Instruction:
    if "`(" not in instruction.operands:
        return instruction
    named = _LABEL_OPERAND.search(instruction.operands)
    target = labels.get(named[1]) if named else None
    return instruction._replace(target=target)
