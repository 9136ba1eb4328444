"""MkDocs hooks: the gallery is drawn from the snapshots whenever the site is built, so that no picture is kept twice."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
MARK = "<!-- gallery -->"
KINDS = ("speed", "roofline", "stalls", "occupancy", "bound", "waterfall", "interaction", "forest", "samples")
MOST = 14

_sections: list[str] = []


def on_files(files: Any, config: Any) -> Any:
    """Add a picture for each chart of each snapshot."""
    sys.path.insert(0, str(ROOT / "workflow"))  # MkDocs resets the path after it has read this file
    from kernelab.cli.figure import draw
    from kernelab.report.figures import drawings
    from kernelab.report.reader import read_results

    _sections.clear()
    for path in sorted((ROOT / "results" / "snapshots").glob("*/plan.json")):
        results = read_results(path.parent)
        _sections.append(f"## {results.plan.device.name}\n")
        drawn = (drawing.draw() for drawing in drawings(results, ROOT))
        figures = [
            figure for figure in drawn if figure is not None and figure.name.rpartition("-")[2] in KINDS
        ]
        figures.sort(key=lambda figure: KINDS.index(figure.name.rpartition("-")[2]))
        for figure in figures[:MOST]:
            name = f"gallery/{path.parent.name}-{figure.name}.svg"
            files.append(File.generated(config, name, content=draw(figure.spec, "svg", 620)))
            _sections.append(f"### {figure.name}: {figure.title}\n\n![{figure.alt}]({name})\n")
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the pictures on their page."""
    return markdown.replace(MARK, "\n".join(_sections) or "No snapshot is kept in this checkout.")
