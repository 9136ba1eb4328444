"""What the pipeline itself costs, as ratios measured in one run.

1. The wall time of a first `snakemake results/table.csv` over the bare sum of its compile times spread over the cores, once up to
   the builds and once with the emulated checks.
2. A no-op `snakemake results/table.csv` over the start-up of a bare Snakemake with an empty workflow.

    python benchmarks/pipeline.py [--csv FILE] [--cores N]

Works on a temporary copy of the repository; needs no GPU (device: emulated).
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("Snakefile", "config.yaml", "kernels", "workflow", "profiles", "envs")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(Path(folder), arguments.cores)
    for name, value, unit, aim in rows:
        print(f"{name:42s} {value:8.2f} {unit:5s} {aim}")
    if arguments.csv:
        with arguments.csv.open("w", newline="", encoding="utf-8") as out:
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow(("figure", "value", "unit", "aim"))
            writer.writerows((name, f"{value:.4g}", unit, aim) for name, value, unit, aim in rows)


def measure(folder: Path, cores: int) -> list[tuple[str, float, str, str]]:
    """Every figure, as (name, value, unit, aim)."""
    project = folder / "project"
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, project / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            project.mkdir(exist_ok=True)
            shutil.copy(source, project)
    options = ["--cores", str(cores), "--config", "device=emulated"]
    dry = snakemake(project, "-n", "results/table.csv", *options)
    builds = sorted({word.strip(",") for word in dry.split() if word.strip(",").endswith("/build.json")})
    build_wall = seconds(project, *builds, *options)
    compiles = [json.loads((project / name).read_text()) for name in builds]
    bare = sum(record["seconds"] for record in compiles)
    rest_wall = seconds(project, "results/table.csv", *options)
    no_op = statistics.median(seconds(project, "results/table.csv", *options) for _ in range(5))

    empty = folder / "empty"
    empty.mkdir()
    (empty / "Snakefile").write_text('rule all:\n    output: "done"\n    shell: "touch {output}"\n')
    snakemake(empty, "--cores", "1")
    start_up = statistics.median(seconds(empty, "--cores", "1") for _ in range(5))
    return [
        ("builds", len(builds), "", ""),
        ("compile time, summed", bare, "s", ""),
        ("builds, wall", build_wall, "s", ""),
        ("builds, wall over compile time per core", build_wall / (bare / cores), "", "aim 1.3"),
        ("checks and table, wall", rest_wall, "s", ""),
        ("first run, wall", build_wall + rest_wall, "s", "aim 60"),
        ("no-op, wall", no_op, "s", "aim 3"),
        ("bare snakemake, wall", start_up, "s", ""),
        ("no-op over bare snakemake", no_op / start_up, "", "aim 2"),
    ]


def seconds(folder: Path, *arguments: str) -> float:
    start = time.monotonic()
    snakemake(folder, *arguments)
    return time.monotonic() - start


def snakemake(folder: Path, *arguments: str) -> str:
    """Run Snakemake and return what it printed; its failure ends the benchmark."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-m", "snakemake", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command[2:])} failed:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout + done.stderr


if __name__ == "__main__":
    main()
