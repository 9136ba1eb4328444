"""An invented results folder: three kernels, every design, hostile texts; see benchmarks/invented_results.py."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "benchmarks"))

pytest.importorskip("altair")
pytest.importorskip("vl_convert")
