"""`python -m kernelab report` and `figure`: the page, and one chart of it as a file."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from kernelab.errors import UserError
from kernelab.plan.model import suggestion
from kernelab.records.layout import RESULTS
from kernelab.records.record import write_bytes, write_text

FORMATS = ("svg", "png", "pdf")


def add_report_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `report`."""
    _results(parser)
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="write the page here (default: report.html in the results folder)",
    )


def run_report(arguments: argparse.Namespace) -> None:
    """Write the page."""
    _needs_altair()
    from kernelab.report.page import render
    from kernelab.report.reader import read_results

    out = arguments.out or arguments.results / "report.html"
    text = render(read_results(arguments.results), Path(), out)
    write_text(out, text)
    print(f"{out}: {len(text.encode()) / 1e6:.1f} MB; open it in a browser")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `figure`."""
    parser.add_argument("name", nargs="?", help="the figure, as --list names it")
    parser.add_argument("--list", action="store_true", help="name every figure that can be drawn")
    parser.add_argument("--format", choices=FORMATS, default="svg")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write it here (default: NAME.FORMAT)")
    parser.add_argument(
        "--width",
        type=int,
        default=640,
        metavar="PIXELS",
        help="of the plot, without its axes (default: 640)",
    )
    _results(parser)


def run(arguments: argparse.Namespace) -> None:
    """Draw one figure into a file, or list them."""
    _needs_altair()
    from kernelab.report.figures import drawings
    from kernelab.report.reader import read_results

    known = {drawing.name: drawing for drawing in drawings(read_results(arguments.results), Path())}
    if arguments.list or arguments.name is None:
        for name, drawing in known.items():
            figure = drawing.draw()
            if figure is not None:
                print(f"{name}: {figure.title}")
        return
    if arguments.name not in known:
        raise UserError(
            f"{arguments.name}: no figure of these results{suggestion(arguments.name, list(known))}"
        )
    figure = known[arguments.name].draw()
    if figure is None:
        raise UserError(
            f"{arguments.name}: nothing was measured to draw it from; `python -m kernelab figure --list` names the others"
        )
    out = arguments.out or Path(f"{arguments.name}.{arguments.format}")
    write_bytes(out, draw(figure.spec, arguments.format, arguments.width))
    print(f"{out}: {figure.title}")


def draw(spec: dict[str, object], form: str, width: int) -> bytes:
    """A specification as svg, png or pdf, with a plot of `width` pixels.

    Raises:
        UserError: the width is too small.
    """
    import vl_convert

    from kernelab.report.charts.theme import printable

    if width < 80:
        raise UserError(f"--width {width}: a plot needs 80 pixels or more")
    whole = printable(spec, width)
    # Nothing in a chart names an address; none may be fetched all the same.
    convert: dict[str, Callable[[], str | bytes]] = {
        "svg": lambda: vl_convert.vegalite_to_svg(whole, allowed_base_urls=[]),
        "png": lambda: vl_convert.vegalite_to_png(whole, scale=2.0, allowed_base_urls=[]),
        "pdf": lambda: vl_convert.vegalite_to_pdf(whole, allowed_base_urls=[]),
    }
    made = convert[form]()
    return made.encode() if isinstance(made, str) else made


def _results(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--results",
        type=Path,
        default=RESULTS,
        metavar="FOLDER",
        help="results folder or snapshot (default: results)",
    )


def _needs_altair() -> None:
    """Say what to install, before an import fails with a traceback."""
    from importlib.util import find_spec

    missing = [
        package
        for module, package in (("altair", "altair"), ("vl_convert", "vl-convert-python"))
        if find_spec(module) is None
    ]
    if missing:
        raise UserError(
            f"{' and '.join(missing)}: not installed; the report and its figures need pip install {' '.join(missing)}"
        )
