"""`python -m kernelab doctor`: every probe, in the order in which things are mended."""

from __future__ import annotations

import sys
from pathlib import Path

from kernelab.device.identify import Gpu, list_gpus
from kernelab.doctor import card, libraries, machine, tools
from kernelab.doctor.finding import Finding, ready
from kernelab.doctor.needs import Needs, read_needs
from kernelab.doctor.show import as_json, as_text, print_table


def doctor(root: Path, format: str = "table") -> int:
    """Print what this machine can do for the project in a folder, and the fix for what it cannot.

    Args:
        root: the folder that holds config.yaml.
        format: `table` (coloured on a terminal, plain elsewhere) or `json`.

    Returns:
        0 where everything that the config needs is there, else 1.
    """
    findings = examine(root)
    if format == "json":
        sys.stdout.write(as_json(findings))
    elif sys.stdout.isatty():
        print_table(findings, sys.stdout)
    else:
        sys.stdout.write(as_text(findings))
    return 0 if ready(findings) else 1


def examine(root: Path) -> list[Finding]:
    """All findings for the project in a folder."""
    needs, config = read_needs(root)
    return [
        machine.python(),
        machine.packages(root / "pyproject.toml"),
        config,
        *tools.toolchains(needs.toolchains),
        machine.results(root / "results"),
        machine.disk(root / "results"),
        machine.processor(),
        *_gpu(needs),
    ]


def _gpu(needs: Needs) -> list[Finding]:
    cuda = card.driver_cuda()
    gpu = _chosen(needs)
    findings = [card.driver(cuda), *card.gpus(cuda), libraries.cupy(cuda)]
    if gpu is not None:
        findings += [
            libraries.cublas(tuple(libraries.cupy_packages())),
            libraries.yardstick(),
            card.users(gpu.uuid, needs.exclusive),
            card.clocks(gpu, needs.lock_clocks),
            tools.ncu(needs.profile),
            tools.counters(),
        ]
    return findings


def _chosen(needs: Needs) -> Gpu | None:
    """The card that the config names; the first where no plan could be made."""
    for gpu in list_gpus():
        if needs.device is None or gpu.uuid == needs.device.uuid:
            return gpu
    return None
