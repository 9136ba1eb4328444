"""The page: everything that the template shows, put together and rendered."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from kernelab import __version__
from kernelab.records.compare import VERDICTS
from kernelab.report.answers import DECIDED, WORDS, Answer, answer
from kernelab.report.charts.theme import COLOURS, CONFIG
from kernelab.report.figures import drawings
from kernelab.report.gaps import failed, gaps
from kernelab.report.grids import arms_grid, claims_grid, comparisons_grid
from kernelab.report.reader import Results
from kernelab.report.scripts import vega_bundle
from kernelab.report.sections import ExperimentViews, Plot, in_script, ladder_view, plot

TEMPLATES = Path(__file__).parent / "templates"

DARK = {
    "ink": "#e6edf3",
    "muted": "#9da7b3",
    "grid": "#30363d",
    "band": "#21262d",
    "surface": "#161b22",
    "faster": "#56b4e9",
    "slower": "#f0883e",
    "equal": "#9da7b3",
    "unsure": "#d9a62e",
    "refused": "#f778ba",
    "series-1": "#56b4e9",
    "series-2": "#f0883e",
    "series-3": "#8fbc4a",
    "series-4": "#c297ff",
    "series-5": "#d9a62e",
    "series-6": "#f778ba",
    "series-7": "#4fd1c5",
    "series-8": "#9da7b3",
    "series-9": "#7f9cf5",
    "series-10": "#ff9ecb",
    "series-11": "#c9a27e",
    "series-12": "#5fd38d",
}
GLOSSARY = {
    "faster": "The 95% interval excludes no change, and the effect exceeds both 0.5% and what the A/A control could resolve.",
    "slower": "The same in the other direction.",
    "within_margin": "Both: a real difference, and less than 1%.",
    "equivalent": "The 90% interval lies inside ±1%: shown to make no difference, not merely a failure to find one.",
    "identical_code": "The two arms compile to the same machine code and launch it alike.",
    "confounded": "Something other than the one variable differs; it is named.",
    "inconclusive": "The measurement does not decide.",
    "unstable": "The card slowed down for heat or power too often, or the A/A control disagreed with itself.",
    "not_measured": "Nothing was timed.",
}
CLAIM_WORDS = {"no_effect": "no effect"}


def render(results: Results, root: Path, out: Path) -> str:
    """The HTML of a report.

    Args:
        results: what to show.
        root: the project's folder, for the figures that its operations have published.
        out: where the page is written; named in the commands that reproduce it.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=False,
    )
    # Jinja's loader decides by no suffix here: everything that is put in is escaped, but for the parts marked below.
    figures = _figures(results, root)
    css = environment.get_template("report.css").render(light=_properties(COLOURS), dark=_properties(DARK))
    script = (TEMPLATES / "report.js").read_text(encoding="utf-8")
    template = environment.get_template("report.html.j2")
    return template.render(
        **_context(results, figures, root, out),
        css=Markup(css),
        script=Markup(script),
        bundle=Markup(vega_bundle()),
        look=in_script(json.dumps(CONFIG)),
        version=__version__,
        verdict_words=WORDS | CLAIM_WORDS,
        known_verdicts=(
            *VERDICTS,
            "ok",
            "mixed",
            "holds",
            "reversed",
            "weaker",
            "stronger",
            "refused",
            "no_effect",
        ),
        glossary=list(GLOSSARY.items()),
    )


def _figures(results: Results, root: Path) -> dict[str, Plot]:
    drawn = ((drawing.name, drawing.draw()) for drawing in drawings(results, root))
    return {name: plot(figure) for name, figure in drawn if figure is not None}


def _properties(colours: Mapping[str, str]) -> Markup:
    return Markup("\n".join(f"  --{name}: {value};" for name, value in colours.items()))


def _context(results: Results, figures: Mapping[str, Plot], root: Path, out: Path) -> dict[str, Any]:
    experiments = list(results.experiments())
    views = ExperimentViews(results, figures)
    ladders = [ladder_view(results, e, figures, root) for e in experiments if e.design == "ladder"]
    records = {e.name: results.compared(e.name) for e in experiments}
    answers = [
        answer(record) if record else Answer(e.name, e.question, "not_measured", "Not compared yet.")
        for e in experiments
        for record in [records[e.name]]
    ]
    return {
        "title": f"kernelab on {results.plan.device.name}" if results.on_gpu else "kernelab without a GPU",
        "facts": _facts(results),
        "summary": _summary(results),
        "answers": answers,
        "ladders": [ladder for ladder in ladders if ladder],
        "claims": claims_grid(results),
        "experiments": [views.view(e) for e in experiments],
        "comparisons": comparisons_grid(results),
        "arms": arms_grid(results),
        "failed": failed(results),
        "gaps": gaps(results),
        "provenance": _provenance(results),
        "commands": _commands(results, out),
    }


def _card(results: Results) -> str:
    return results.plan.device.name if results.on_gpu else "no GPU"


def _facts(results: Results) -> list[tuple[str, str]]:
    plan = results.plan
    arms = {row["arm"]: row for row in results.table}
    timed = next((record for e in plan.experiments if (record := results.timed(e)) and record.sessions), None)
    compilers = ", ".join(
        facts.get("compiler") or f"{name}: {facts.get('status', '')}"
        for name, facts in results.toolchain.items()
    )
    facts = [
        ("Card", f"{_card(results)} ({', '.join(sorted({build.arch for build in plan.builds.values()}))})"),
        ("Compiler", compilers or "not recorded"),
        (
            "Run",
            f"{len(plan.experiments)} experiments, {len(results.comparisons)} comparisons, {len(arms)} arms",
        ),
        ("Correct", _correct(results)),
    ]
    if timed and timed.card:
        where = timed.sessions[-1].conditions
        facts += [
            ("Driver and cuBLAS", f"{where.driver}, cuBLAS {where.cublas}"),
            ("SMs and L2", f"{timed.card.multiprocessors} SMs, {timed.card.l2_bytes / 2**20:.0f} MB L2"),
        ]
    return facts


def _correct(results: Results) -> str:
    arms = {row["arm"]: row["correct"] for row in results.table if row["correct"]}
    right = sum(correct == "true" for correct in arms.values())
    how = "on the card" if results.on_gpu else "by emulation"
    return f"{right} of {len(arms)} arms checked {how}" if arms else "not checked"


def _summary(results: Results) -> str:
    verdicts = Counter(row["verdict"] for row in results.comparisons)
    if not verdicts:
        return "Nothing was compared."
    if set(verdicts) <= {"not_measured", "confounded", "identical_code"} and not results.on_gpu:
        known = f"{verdicts['identical_code']} of {sum(verdicts.values())} comparisons are known to be identical code"
        return f"Without a GPU, {known} and {verdicts['confounded']} to be confounded; the others wait for a card."
    decided = sum(verdicts[name] for name in DECIDED)
    counts = ", ".join(f"{count} {WORDS.get(name, name)}" for name, count in verdicts.most_common())
    return f"{decided} of {sum(verdicts.values())} comparisons are decided: {counts}."


def _provenance(results: Results) -> list[tuple[str, str]]:
    plan = results.plan
    lines = [tuple(line.partition(" ")[::2]) for line in results.provenance]
    found = [(str(name), str(value)) for name, value in lines] or [("made", f"by kernelab {__version__}")]
    found.append(("results folder", results.folder.as_posix()))
    found.append(("records", f"{plan.device.id} {plan.device.uuid}".strip()))
    for name, facts in results.toolchain.items():
        found.append(
            (
                f"toolchain {name}",
                ", ".join(
                    f"{key} {facts[key]}"
                    for key in ("compiler", "disassembler", "fingerprint", "status")
                    if facts.get(key)
                ),
            )
        )
    found.append(
        ("timing policy", ", ".join(f"{name} {value}" for name, value in plan.timing.model_dump().items()))
    )
    return found


def _commands(results: Results, out: Path) -> str:
    page = f"python -m kernelab report --results {results.folder.as_posix()} --out {out.as_posix()}"
    first = next(iter(results.plan.experiments), "")
    return "\n".join(
        (
            "snakemake results/report.html            # builds, checks, times and compares whatever is out of date",
            f"{page}",
            f"snakemake results/{results.plan.device.id}/compare/{first}.json   # one experiment alone",
            "python -m kernelab figure --list         # every chart of this page as svg, png or pdf",
        )
    )
