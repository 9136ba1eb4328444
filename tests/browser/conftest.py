"""Reports in headless Chromium: of invented results, of the same without a GPU, and of the H200 snapshot where it is kept."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
SNAPSHOTS = ROOT / "results" / "snapshots"
CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
# Chromium's own traffic to its vendor is no part of what is tested.
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages by name."""
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    from invented_project import write_project
    from invented_results import CARD, invent

    from kernelab.device.identify import EMULATED
    from kernelab.report.page import render
    from kernelab.report.reader import read_results

    pages = {}
    for name, device in (("gpu", CARD), ("no-gpu", EMULATED)):
        root = tmp_path_factory.mktemp(name)
        write_project(root)
        invent(root, root / "results", device=device)
        pages[name] = root / "results" / "report.html"
        pages[name].write_text(render(read_results(root / "results"), root, pages[name]), encoding="utf-8")
    for snapshot in sorted(SNAPSHOTS.glob("*/plan.json")):
        page = tmp_path_factory.mktemp("snapshot") / "report.html"
        page.write_text(render(read_results(snapshot.parent), ROOT, page), encoding="utf-8")
        pages["snapshot"] = page
    return pages


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield chromium
        chromium.close()
