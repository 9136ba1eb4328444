"""The Snakemake profiles mean to Snakemake what they say."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

READ = """
import json, sys
from snakemake.cli import parse_args
_, read = parse_args(sys.argv[1:])
names = ("cores", "scheduler", "keep_going", "rerun_incomplete", "show_failed_logs", "max_checksum_file_size")
triggers = sorted(str(trigger) for trigger in read.rerun_triggers)
print(json.dumps({name: getattr(read, name) for name in names} | {"card": read.resources["card"].value, "triggers": triggers}))
"""


def test_a_bare_snakemake_finds_the_default_profile(root: Path, tmp_path: Path):
    shutil.copytree(root / "profiles", tmp_path / "profiles")
    (tmp_path / "Snakefile").touch()
    done = subprocess.run(
        [sys.executable, "-c", READ, "results/table.csv"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    read = json.loads(done.stdout.splitlines()[-1])
    assert read.pop("cores") >= 1  # all: None would mean that it was not set
    assert read == {
        "scheduler": "greedy",
        "keep_going": True,
        "rerun_incomplete": True,
        "show_failed_logs": True,
        "max_checksum_file_size": 64_000_000,
        "card": 4,
        "triggers": ["input", "mtime", "params"],
    }


@pytest.mark.parametrize(
    "key",
    [
        "scheduler",
        "keep-going",
        "rerun-incomplete",
        "show-failed-logs",
        "max-checksum-file-size",
        "rerun-triggers",
    ],
)
def test_slurm_stands_alone_and_agrees_with_the_default(root: Path, key: str):
    default, slurm = (
        yaml.safe_load((root / "profiles" / name / "config.yaml").read_text())
        for name in ("default", "slurm")
    )
    assert slurm[key] == default[key]


def test_slurm_asks_squeue_and_limits_no_card(root: Path):
    slurm = yaml.safe_load((root / "profiles" / "slurm" / "config.yaml").read_text())
    assert slurm["executor"] == "slurm"
    assert slurm["slurm-status-command"] == "squeue"
    # Cards are the cluster's to give: a limit here would let one job of the whole cluster time.
    assert "resources" not in slurm
