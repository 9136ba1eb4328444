"""docs/getting-started.md, typed in as a new user would."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytest.importorskip("altair")
pytest.importorskip("vl_convert")


def test_every_command_of_getting_started_does_what_it_says(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "getting-started.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```bash\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 6
    # As after `source .venv/bin/activate`, and on a machine without a GPU.
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, command in (("python", '"$@"'), ("snakemake", '-m snakemake "$@" --config device=emulated')):
        (tools / name).write_text(f"#!/bin/sh\nexec {sys.executable} {command}\n")
        (tools / name).chmod(0o755)
    environment = os.environ | {
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "workflow"),
    }
    script = "set -e\n" + "\n".join(f"{block}\necho ---- {number}" for number, block in enumerate(blocks))
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = re.split(r"---- \d\n", done.stdout)
    assert (tmp_path / "mine" / "results" / "report.html").is_file()
    assert "axpy/ELEMENTS=4@stream" in said[1]
    assert "axpy_vector" in said[2]
    assert "true" in said[2]
    assert "identical_code" in said[4]
    assert "memory_fault" in said[5]
