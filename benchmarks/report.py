"""What the report costs: the step on the full ladder and on 2,000 arms, the size of the page, and how fast it opens.

    PYTHONPATH=workflow python benchmarks/report.py [--arms 2000] [--results FOLDER]

Results are invented (invented_results.py) unless a folder is named. Targets: 5 s for the step on the full ladder, 10 MB and 2 s
to open at 2,000 arms. Opening is measured in headless Chromium, until its load event; without Chromium it is left out.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from invented_project import KERNELS, write_project
from invented_results import invent

ROOT = Path(__file__).parents[1]
LEVELS = 20
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")


def main() -> int:
    """Print a line a case; exit 1 where a target is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--arms", type=int, default=2000)
    parser.add_argument("--results", type=Path, help="also measure this results folder or snapshot")
    arguments = parser.parse_args()
    missed = 0
    with tempfile.TemporaryDirectory(prefix="kernelab-") as name:
        folder = Path(name)
        missed += _measure(
            "the ladder of this repository, invented times",
            _ladder(folder / "ladder"),
            folder / "ladder",
            5.0,
            3.0,
        )
        missed += _measure(
            f"{arguments.arms} arms", _many(folder / "many", arguments.arms), folder / "many", 60.0, 10.0
        )
        if arguments.results:
            missed += _measure(str(arguments.results), arguments.results.resolve(), ROOT, 5.0, 3.0)
    return 1 if missed else 0


def _ladder(root: Path) -> Path:
    """Every experiment of the repository."""
    root.mkdir()
    shutil.copytree(ROOT / "kernels", root / "kernels")
    text = (ROOT / "config.yaml").read_text(encoding="utf-8")
    (root / "config.yaml").write_text(text + "\ncheck: {emulate: false}\n", encoding="utf-8")
    invent(root, root / "results", processes=6, rounds=12)
    return root / "results"


def _many(root: Path, arms: int) -> Path:
    """Experiments of 20 levels each, over three kernels."""
    root.mkdir()
    lines = [
        "device: auto",
        "check: {emulate: false}",
        "problems:",
        "  long: {n: 100000, s: 2.0}",
        "experiments:",
    ]
    for number in range(-(-arms // LEVELS)):
        kernel = KERNELS[number % len(KERNELS)]
        levels = list(range(number * LEVELS, (number + 1) * LEVELS))
        lines.append(
            f"  tune_{number}: {{question: 'Which is best?', base: {kernel}, vary: {{TUNE: {levels}}}}}"
        )
    write_project(root, "\n".join(lines) + "\n", tunes=arms + LEVELS)
    invent(root, root / "results", processes=3, rounds=4)
    return root / "results"


def _measure(what: str, results: Path, root: Path, most_s: float, most_mb: float) -> bool:
    with tempfile.TemporaryDirectory(prefix="kernelab-") as folder:
        page = Path(folder) / "report.html"
        command = [sys.executable, "-m", "kernelab", "report", "--results", str(results), "--out", str(page)]
        environment = os.environ | {"PYTHONPATH": str(ROOT / "workflow")}
        subprocess.run(
            command, cwd=root, env=environment, check=True, capture_output=True
        )  # fills the cache of scripts
        start = time.perf_counter()
        subprocess.run(command, cwd=root, env=environment, check=True, capture_output=True)
        seconds, megabytes = time.perf_counter() - start, page.stat().st_size / 1e6
        opened = _opened(page)
    print(
        f"{what}: {seconds:.2f} s, {megabytes:.2f} MB, opens in {f'{opened:.2f} s' if opened else 'not measured: no Chromium'}"
    )
    return seconds > most_s or megabytes > most_mb or (opened or 0.0) > 2.0


def _opened(page: Path) -> float | None:
    """Seconds until the load event; the median of three."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        return None
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    times = []
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=list(QUIET))
        for _ in range(3):
            tab = browser.new_page()
            tab.goto(page.as_uri())
            times.append(
                float(tab.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")) / 1e3
            )
            tab.close()
        browser.close()
    return sorted(times)[1]


if __name__ == "__main__":
    raise SystemExit(main())
