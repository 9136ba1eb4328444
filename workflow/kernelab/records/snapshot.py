"""A snapshot: the part of a results folder worth keeping in git, as evidence of what was measured.

It keeps the layout of a results folder, so that every tool that reads one reads a snapshot too. Machine code,
listings and profiler reports stay behind: they are large and can be made again.
"""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from kernelab import __version__
from kernelab.errors import UserError
from kernelab.plan.arms import Plan
from kernelab.records.layout import Layout
from kernelab.records.record import settings_digest, write_text

KEPT = ("*.csv", "*.json", "*.csv.gz", "*.txt")
PACKAGES = ("snakemake", "numpy", "scipy", "pandas", "pydantic", "cupy-cuda12x", "cupy-cuda13x", "cuda-bench")


def take_snapshot(plan: Plan, layout: Layout, out: Path) -> list[Path]:
    """Copy the tables and records of one device into a folder, and say how they were made.

    Args:
        plan: the plan that the results are of.
        layout: the results folder.
        out: the snapshot's folder; what it held is replaced.

    Raises:
        UserError: there is no table yet, or `out` is the results folder or above it.
    """
    if not layout.table.is_file():
        raise UserError(f"{layout.table}: not made yet; run snakemake {layout.table} first")
    if layout.results.resolve().is_relative_to(out.resolve()):
        raise UserError(
            f"--out {out}: would replace the results themselves; name a folder below results/snapshots"
        )
    if out.is_dir():
        shutil.rmtree(out)
    copied = []
    for path in sorted(_files(layout)):
        target = out / path.relative_to(layout.results)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
        copied.append(target)
    write_text(out / "provenance.txt", _provenance(plan))
    return copied


def _files(layout: Layout) -> Iterator[Path]:
    """The tables at the top, and the records of the builds and of the devices."""
    for pattern in KEPT:
        yield from layout.results.glob(pattern)
        for folder in ("build", layout.device.name, "emulated"):
            for path in (layout.results / folder).rglob(pattern):
                if not any(part.startswith(".") for part in path.relative_to(layout.results).parts):
                    yield path  # a hidden folder is the journal of a run that did not end


def _provenance(plan: Plan) -> str:
    versions = []
    for package in PACKAGES:
        try:
            versions.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    return (
        "\n".join(
            (
                f"made {datetime.now(UTC):%Y-%m-%d %H:%M} UTC by kernelab {__version__} with `snakemake results/table.csv`",
                f"device {plan.device.name} {plan.device.arch} {plan.device.uuid}"
                + ("; the tables were made on another machine" if plan.device.recorded else ""),
                f"host {platform.system()} {platform.release()} {platform.machine()}, Python {sys.version.split()[0]}",
                f"packages {', '.join(versions)}",
                f"plan {settings_digest(plan.model_dump(mode='json'))}",
            )
        )
        + "\n"
    )
